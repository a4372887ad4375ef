#!/usr/bin/env python3
"""Measurements as a table for a document: `python3 peers/table.py rows.jsonl …`, what `side_by_side.py --out` wrote.

Our fastest kernel of each problem, with its configuration, and the ratios of each peer's time over its own.
"""

import math
import pathlib
import sys

import interval
import report
from problems import NORMAL

TITLES = {
    "fa2": "FlashAttention-2",
    "cudnn": "cuDNN",
    "fa4": "FlashAttention-4",
    "triton": "Triton",
    report.PROTOTYPE: "the prototype",
}


def lines(rows):
    rows = report.of_kind(rows, NORMAL)
    best = list(report.best(rows))
    rivals = [name for name in TITLES if any(name in others for _, others in best)]
    yield f"| problem | config | µs | TFLOP/s | {' | '.join(f'over {TITLES[name]}' for name in rivals)} |"
    yield "|---" * (4 + len(rivals)) + "|"
    for ours, others in best:
        rounds = report.kept(rows, ours["problem"])
        ratios = [str(interval.in_time(ours, others[name], rounds)) if name in others else "" for name in rivals]
        figures = [ours["problem"], report.config(ours["name"]), four_digits(ours["median_us"]), f"{ours['tflops']:.0f}"]
        yield f"| {' | '.join(figures + ratios)} |"


def four_digits(number):
    return f"{number:.{max(0, 3 - math.floor(math.log10(number)))}f}"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(*lines(report.read(map(pathlib.Path, sys.argv[1:]))), sep="\n")
