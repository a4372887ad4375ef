#!/usr/bin/env python3
"""The bars of the Hopper family, held against measurements.

    python3 peers/side_by_side.py --kernels kernels --prototype prototype --grid main,gqa --check
    python3 peers/bars.py rows-of-main.jsonl rows-of-gqa.jsonl --grid main,gqa     (of runs that were made before)

A ratio is a rival's time over that of our fastest kernel, as `report.py` has it; the rival is the fastest peer of a point,
or the prototype. A bar that asks for points of the chosen grids that nobody measured does not hold.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys

import adverse
import interval
import report
from problems import GRIDS, KINDS, NORMAL, bf16, decode, each, gqa, heads, main, mixed, odd, parse, small

BEST_OF = ("fa2", "cudnn", "fa4")
LEAST_SPEED = 0.7  # on inputs of other kinds, over that on normal ones
LONG = 4096  # keys of a single query
MISSED, BAD_INPUT = 1, 2  # exit codes


@dataclasses.dataclass(frozen=True)
class Bar:
    """What is asked of the ratios of some problems; of several thresholds all must hold."""

    name: str
    problems: tuple
    rivals: tuple = BEST_OF
    interval: float = 0.0  # no interval lies below
    ratio: float = 0.0  # no ratio is less
    mean: float = 0.0  # nor the geometric mean


def bars():
    wide = [problem for problem in heads() if problem.dim != 96]
    of_type = {dtype: [problem for problem in gqa() if problem.dtype == dtype] for dtype in ("f16", "bf16")}
    long = [problem for problem in decode() if problem.keys >= LONG]
    prototype = {"rivals": (report.PROTOTYPE,), "interval": 0.97, "mean": 1.00}
    return [
        Bar("main and GQA in f16", (*main(), *of_type["f16"]), interval=1.00, mean=1.13),
        Bar("main and GQA in bf16", (*bf16(), *of_type["bf16"]), interval=1.00, mean=1.13),
        Bar("main in f16, over the prototype", tuple(main()), **prototype),
        Bar("main in bf16, over the prototype", tuple(bf16()), **prototype),
        Bar("D256, D192 and D192/128", tuple(wide), ratio=0.97),
        Bar("D96", tuple(problem for problem in heads() if problem.dim == 96), ratio=1.05),
        Bar("the standard problem", tuple(each(["B2 H8 S512 D64"])), ratio=1.45),
        Bar("few heads of a long sequence", (parse("B1 H8 S4096 D128 causal"),), ratio=1.00),
        Bar("one block", (parse("B1 H1 S128 D64 full"),), ratio=1.2),
        Bar(f"one query, {LONG} keys or more", tuple(long), ratio=0.97),
        Bar("off the grid", tuple(odd()), ratio=1.00),
        Bar("mixed lengths", tuple(mixed()), ratio=1.00),
    ]


def ratios(bar, rows):
    """By problem: our fastest kernel against the fastest of the bar's rivals."""
    found = {}
    for ours, others in report.best(report.of_kind(rows, NORMAL)):
        rounds = report.kept(report.of_kind(rows, NORMAL), ours["problem"])
        against = [interval.in_time(ours, row, rounds) for name, row in others.items() if name in bar.rivals]
        if against:
            found[ours["problem"]] = min(against, key=lambda one: one.ratio)
    return found


def judge(bar, rows, problems):
    """Whether the bar holds on its problems among these, and its figures."""
    asked = [str(problem) for problem in bar.problems if problem in problems]
    known = ratios(bar, rows)
    found = {problem: known[problem] for problem in asked if problem in known}
    if not found:
        return False, f"nothing measured of {len(asked)} points"
    mean = statistics.geometric_mean(one.ratio for one in found.values())
    below = [p for p, one in found.items() if one.high < bar.interval or one.ratio < bar.ratio]
    least = min(found, key=lambda problem: found[problem].ratio)
    asked_of_mean = f" ({bar.mean:.2f} asked)" if bar.mean else ""
    asked_of_least = f"no interval below {bar.interval:.2f}" if bar.interval else f"{bar.ratio:.2f}"
    figures = f"mean {mean:.3f}{asked_of_mean}, least {found[least]} at {least} ({asked_of_least} asked)"
    counts = f"{len(found)} of {len(asked)} points measured, {len(below)} below"
    return len(found) == len(asked) and not below and mean >= bar.mean, f"{figures}; {counts}"


def adverse_bar(rows, problems):
    """The same for inputs of other kinds and windows: each of these problems must have been measured with each."""
    found = list(adverse.ratios(rows))
    done = {(row["problem"], adverse.words(row)) for row, _ in found}
    kinds = [kind for kind in KINDS if kind != NORMAL]
    asked = [(str(problem), kind) for problem in problems for kind in ([problem.mask] if problem.window else kinds)]
    missing = [f"{problem} {kind}" for problem, kind in asked if (problem, kind) not in done]
    slow = [row for row, speed in found if speed.ratio < LEAST_SPEED]
    least = min((speed.ratio for _, speed in found), default=0.0)
    counts = f"{len(asked) - len(missing)} of {len(asked)} measured, {len(slow)} of {len(found)} rows below"
    return not missing and not slow, f"least {least:.3f} ({LEAST_SPEED:.2f} asked); {counts}"


def peers_there(rows):
    """Every peer must have taken part somewhere: the best of two is not the best of three."""
    absent = [peer for peer in BEST_OF if not any(row["name"] == peer and "us" in row for row in rows)]
    return not absent, f"{', '.join(absent)} not measured" if absent else ", ".join(BEST_OF)


def check(rows, grids):
    """Prints every bar of these grids; says whether all hold."""
    problems = {problem for grid in grids if grid != "adverse" for problem in GRIDS[grid]()}
    judged = [(bar.name, *judge(bar, rows, problems)) for bar in bars() if problems.intersection(bar.problems)]
    if judged:
        judged.insert(0, ("peers", *peers_there(rows)))
    if "adverse" in grids:
        judged.append(("speed over that of normal inputs", *adverse_bar(rows, GRIDS["adverse"]())))
    rounds = [len(row["us"]) for row in rows if "us" in row]
    print(f"\nbars, over {min(rounds, default=0)} rounds or more:")
    for name, holds, figures in judged:
        print(f"{'holds ' if holds else 'MISSED'} {name}: {figures}")
    return all(holds for _, holds, _ in judged)


def command():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path, nargs="+", help="what `side_by_side.py --out` wrote")
    parser.add_argument("--grid", default=",".join(GRIDS), help="with commas between; all unless given")
    chosen = parser.parse_args()
    grids = chosen.grid.split(",")
    if not set(grids) <= set(GRIDS):
        parser.error(f"--grid {chosen.grid}: expected some of {','.join(GRIDS)}")
    try:
        rows = report.read(chosen.rows)
    except (OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    right = not [print(f"failed: {line}") for line in report.failures([row for row in rows if row["ours"]])]
    return 0 if check(rows, grids) and right else MISSED


if __name__ == "__main__":
    sys.exit(command())
