#!/usr/bin/env python3
"""Whether two ways of measuring agree: `veriflash bench` beside `side_by_side.py`, on the same problems and the same GPU.

    veriflash bench --problem 'B2 H8 S512 D64' --rounds 40 --format json > bench.json
    python3 peers/side_by_side.py --kernels kernels --grid small --rounds 40 --out rows.jsonl
    python3 peers/agree.py bench.json rows.jsonl

A ratio is the peer's time over ours. Two agree if their 95 % intervals overlap. Exit 0 if all do, 1 if not, 2 if the files
cannot be compared.
"""

import argparse
import json
import pathlib
import statistics
import sys

import interval
import report
from interval import Interval
from problems import NORMAL

APART, BAD_INPUT = 1, 2  # exit codes


class Incomparable(ValueError):
    """What the two files lack."""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=pathlib.Path, help="what `veriflash bench --format json` printed")
    parser.add_argument("rows", type=pathlib.Path, help="what `side_by_side.py --out` wrote")
    parser.add_argument("--peers", help="with commas between; all that `bench` was asked for unless given")
    return parser.parse_args()


def points(text):
    found = json.loads(text)
    for failure in found.get("failures", []):
        raise Incomparable(f"bench failed at {failure['problem']}: {failure['why']}")
    if not found.get("points"):
        raise Incomparable("bench has no points: expected what `veriflash bench --format json` printed")
    return found["points"]


def of_bench(point):
    """By peer: the ratio in time and in cycles, and the median clocks of ours and of the peer."""
    clocks = [[reading["megahertz"] for reading in one["readings"]] for one in point["rounds"]]
    names = [contender["name"] for contender in point["contenders"]]
    found = {missing["name"]: None for missing in point["missing"]}
    for duel in point["duels"]:
        cycles = duel["cycles"] and Interval(**duel["cycles"])
        both = [median(of_round[place] for of_round in clocks) for place in (0, names.index(duel["peer"]))]
        found[duel["peer"]] = Interval(**duel["time"]), cycles, both
    return found


def of_rows(rows, point):
    """The same of the rows of the point's problem, which must have as many rounds, and the same kernel."""
    of_problem = [row for row in rows if row["problem"] == point["problem"] and "us" in row]
    ours = [row for row in of_problem if row["ours"] and point["subject"]["kernel"] in row["name"]]
    if not ours:
        raise Incomparable(f"{point['problem']}: no row of {point['subject']['kernel']}: print it with `veriflash ptx --arch`")
    if len(ours[0]["us"]) < len(point["rounds"]):
        raise Incomparable(f"{point['problem']}: fewer rounds than bench: expected --rounds {len(point['rounds'])} or more")
    rounds, found = report.kept(rows, point["problem"]), {}
    for row in of_problem:
        both = [median(one.get("megahertz") or []) for one in (ours[0], row)]
        found[row["name"]] = interval.in_time(ours[0], row, rounds), interval.in_cycles(ours[0], row, rounds), both
    return found


def median(clocks):
    known = [clock for clock in clocks if clock]
    return statistics.median(known) if known else None


def compare(points, rows, peers=None):
    """A line for each ratio, and whether it agrees."""
    for point in points:
        bench, beside = of_bench(point), of_rows(rows, point)
        for peer in peers or bench:
            head = f"{point['problem']}, {peer}:"
            if not bench.get(peer) or not beside.get(peer):
                yield f"{head} not measured {'by bench' if not bench.get(peer) else 'side by side'}", False
                continue
            agree = bench[peer][0].overlaps(beside[peer][0])
            word = "overlap" if agree else f"APART, {beside[peer][0].ratio / bench[peer][0].ratio - 1:+.1%}"
            yield f"{head} bench {words(*bench[peer])}; side by side {words(*beside[peer])}: {word}", agree


def words(time, cycles, clocks):
    own, theirs = (f"{clock:.0f}" if clock else "?" for clock in clocks)
    in_cycles = f", in cycles {cycles.ratio:.3f}" if cycles else ""
    return f"{time} at {own} and {theirs} MHz{in_cycles}"


def main():
    chosen = options()
    try:
        rows = report.of_kind(report.read([chosen.rows]), NORMAL)
        peers = chosen.peers and chosen.peers.split(",")
        compared = list(compare(points(chosen.bench.read_text()), rows, peers))
    except (OSError, ValueError, KeyError) as error:
        print(f"error: {type(error).__name__}: {error}" if isinstance(error, KeyError) else f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    for line, _ in compared:
        print(line)
    agreeing = sum(agree for _, agree in compared)
    print(f"agree: {agreeing} of {len(compared)}")
    return 0 if agreeing == len(compared) > 0 else APART


if __name__ == "__main__":
    sys.exit(main())
