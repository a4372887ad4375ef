"""What the measurements say: the table, and how much faster we are than each peer.

A ratio is the peer's time over ours, round by round: above 1, ours is faster. The figure is the median of the rounds'
ratios; its interval holds the true median with 95 % confidence, whatever the distribution (the binomial interval of
order statistics).
"""

import math
import statistics

CONFIDENCE = 0.95
SECOND = "#2"  # ends the name of a peer that is measured a second time, to see the noise


def ratio(ours, peer):
    """The median of peer / ours over the rounds, with the ends of its interval."""
    ratios = sorted(theirs / own for own, theirs in zip(ours["us"], peer["us"]))
    low = lowest_rank(len(ratios))
    return statistics.median(ratios), ratios[low], ratios[-1 - low]


def lowest_rank(count):
    """The largest rank, from 0, such that the median lies between it and its mirror image often enough."""
    outside, rank = 0.0, 0
    for below in range(count // 2):
        outside += 2 * math.comb(count, below) / 2**count
        if 1 - outside < CONFIDENCE:
            break
        rank = below
    return rank


def pairs(rows):
    """Each of our rows with the peers' rows of the same problem."""
    timed = [row for row in rows if "us" in row]
    for ours in (row for row in timed if row["ours"]):
        yield ours, {row["name"]: row for row in timed if row["problem"] == ours["problem"] and not row["ours"]}


def best(rows):
    """The same, with only our fastest kernel of each problem."""
    fastest = {}
    for ours, peers in pairs(rows):
        if ours["problem"] not in fastest or ours["median_us"] < fastest[ours["problem"]][0]["median_us"]:
            fastest[ours["problem"]] = ours, peers
    return fastest.values()


def table(rows, peers):
    """One line for each kernel and problem."""
    head = ["problem", "kernel", "µs", "TFLOP/s"] + [word for peer in peers for word in (f"{peer} µs", f"{peer}/ours")]
    lines = [head, ["---"] * len(head)]
    for ours, others in pairs(rows):
        line = [ours["problem"], ours["name"], microseconds(ours), f"{ours['tflops']:.1f}"]
        for peer in peers:
            line += cells(ours, others[peer]) if peer in others else ["", ""]
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]


def cells(ours, peer):
    middle, low, high = ratio(ours, peer)
    return [microseconds(peer), f"{middle:.3f} [{low:.3f}, {high:.3f}]"]


def microseconds(row):
    return f"{row['median_us']:.2f}" if row["median_us"] < 100 else f"{row['median_us']:.1f}"


def summary(rows, peers):
    """For each peer: the mean of all problems, and the worst of them."""
    lines = []
    for peer in peers:
        ratios = [(ratio(ours, others[peer])[0], ours["problem"]) for ours, others in best(rows) if peer in others]
        if ratios:
            mean = statistics.geometric_mean(value for value, _ in ratios)
            worst, problem = min(ratios)
            lines.append(f"geomean {mean:.3f} over {peer}, worst {worst:.3f} at {problem}")
    return lines


def noise(rows):
    """How far the peer that was measured twice is from itself."""
    lines = []
    timed = {(row["problem"], row["name"]): row for row in rows if "us" in row}
    names = {name for _, name in timed if name.endswith(SECOND)}
    for name in sorted(names):
        first = name.removesuffix(SECOND)
        twice = [(timed[problem, first], row) for (problem, other), row in timed.items() if other == name]
        off = sorted(abs(ratio(one, two)[0] - 1) for one, two in twice)
        lines.append(f"noise: {first} over itself is off by {statistics.median(off):.2%} (median), {off[-1]:.2%} (most)")
    return lines


def failures(rows):
    """What was not measured, and why."""
    return [f"{row['name']} at {row['problem']}: {row['error']}" for row in rows if "error" in row]
