"""What the measurements say: the table, and how much faster we are than each peer.

A ratio is the peer's time over ours: above 1, ours is faster. `interval.py` says how it is made of rounds.
"""

import json
import pathlib
import re
import statistics

import interval
from problems import NORMAL

SECOND = "#2"  # ends the name of a peer that is measured a second time, to see the noise
PROTOTYPE = "prototype"  # the name of its kernels' rows


def read(files):
    """The rows that `side_by_side.py --out` wrote, of all files."""
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def config(name):
    """The number of the configuration in a kernel's name, or the name of its file."""
    file = pathlib.Path(name).stem
    found = re.search(r"config(\d+)", file)
    return found[1] if found else file


def of_kind(rows, kind):
    """The rows of one kind of inputs; every function below takes such."""
    return [row for row in rows if row.get("inputs", NORMAL) == kind]


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
    head = ["problem", "kernel", "µs", "TFLOP/s"] + [
        word for peer in peers for word in (f"{peer} µs", f"{peer}/ours", "in cycles")
    ]
    lines = [head, ["---"] * len(head)]
    for ours, others in pairs(rows):
        line = [ours["problem"], ours["name"], microseconds(ours), f"{ours['tflops']:.1f}"]
        for peer in peers:
            line += cells(ours, others[peer], kept(rows, ours["problem"])) if peer in others else [""] * 3
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]


def cells(ours, peer, rounds):
    in_time, in_cycles = interval.in_time(ours, peer, rounds), interval.in_cycles(ours, peer, rounds)
    return [microseconds(peer), str(in_time), str(in_cycles or "")]


def kept(rows, problem):
    """The rounds of a problem that count."""
    clocks = [row.get("megahertz") for row in rows if "us" in row and row["problem"] == problem]
    return interval.kept(clocks)


def microseconds(row):
    return f"{row['median_us']:.2f}" if row["median_us"] < 100 else f"{row['median_us']:.1f}"


def summary(rows, peers):
    """For each peer: the mean of all problems, and the worst of them."""
    lines = []
    for peer in peers:
        ratios = [
            (interval.in_time(ours, others[peer], kept(rows, ours["problem"])).ratio, ours["problem"])
            for ours, others in best(rows)
            if peer in others
        ]
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
        off = sorted(abs(interval.in_time(one, two, kept(rows, one["problem"])).ratio - 1) for one, two in twice)
        lines.append(f"noise: {first} over itself is off by {statistics.median(off):.2%} (median), {off[-1]:.2%} (most)")
    return lines


def failures(rows):
    """What was not measured, and why."""
    return [f"{row['name']} at {row['problem']}: {row['error']}" for row in rows if "error" in row]
