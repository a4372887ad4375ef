"""How fast our kernels are on inputs that a running softmax finds hard, and under windows, against normal ones in the same run."""

import interval
import report
from problems import NORMAL, parse


def ratios(rows):
    """Each of our rows of other inputs, or of a window, with its speed over that of the same kernel's normal row.

    A window's speed counts the pairs that it shows; its kernel is told against that of the same configuration without it.
    """
    timed = [row for row in rows if row["ours"] and "us" in row]
    normal = {(row["problem"], row["name"]): row for row in report.of_kind(timed, NORMAL)}
    whole = {(row["problem"], report.config(row["name"])): row for row in normal.values()}
    for row in timed:
        problem, usual = parse(row["problem"]), None
        if row.get("inputs", NORMAL) != NORMAL:
            usual = normal.get((row["problem"], row["name"]))
        elif problem.window:
            usual = whole.get((str(problem.whole), report.config(row["name"])))
        if usual:
            share = problem.flops() / parse(usual["problem"]).flops()
            yield row, interval.in_time({"us": [time / share for time in row["us"]]}, usual)


def words(row):
    """What is hard about a row."""
    return row["inputs"] if row.get("inputs", NORMAL) != NORMAL else parse(row["problem"]).mask


def lines(rows):
    """One for each kernel, and the least of all."""
    kernels = {}
    for row, speed in ratios(rows):
        kernels.setdefault(row["name"], []).append((speed.ratio, words(row)))
    every = [f"{name}: {', '.join(f'{word} {ratio:.3f}' for ratio, word in found)}" for name, found in kernels.items()]
    least = [f"least {ratio:.3f} ({word}) of {name}" for ratio, word, name in
             sorted((ratio, word, name) for name, found in kernels.items() for ratio, word in found)[:1]]
    return [f"speed over that of normal inputs: {line}" for line in every + least]
