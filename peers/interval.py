"""A ratio and how sure it is, as `veriflash bench` computes it (`crates/lab/src/measure/`).

The unit is the round: the logarithm of the peer's time over ours, both taken in it. The ratio is the geometric mean; its
95 % interval is Student's. Rounds whose clock is off by more than 2 % of the median count for nobody.
"""

import dataclasses
import math
import statistics

CLOCK_TOLERANCE = 0.02
# Student's t at 97.5 %, by degrees of freedom; between two of these the smaller number's counts, which is on the safe side.
STUDENT = {
    1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622, 10: 2.2281,
    11: 2.2010, 12: 2.1788, 13: 2.1604, 14: 2.1448, 15: 2.1314, 16: 2.1199, 17: 2.1098, 18: 2.1009, 19: 2.0930, 20: 2.0860,
    22: 2.0739, 24: 2.0639, 26: 2.0555, 28: 2.0484, 30: 2.0423, 35: 2.0301, 40: 2.0211, 50: 2.0086, 60: 2.0003, 80: 1.9901,
    100: 1.9840, 120: 1.9799, 200: 1.9719, 500: 1.9647, 1000: 1.9623,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Interval:
    ratio: float
    low: float
    high: float
    rounds: int

    def __str__(self):
        return f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def overlaps(self, other):
        return self.low <= other.high and other.low <= self.high


def of_logs(logs):
    """Of at least one round; one knows nothing of its noise."""
    mean = statistics.fmean(logs)
    half = math.inf
    if len(logs) > 1:
        half = student(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(*(exponential(log) for log in (mean, mean - half, mean + half)), len(logs))


def exponential(log):
    return math.inf if log == math.inf else math.exp(log)


def student(freedom):
    return STUDENT[max(known for known in STUDENT if known <= freedom)]


def kept(clocks):
    """The numbers of the rounds that count; `clocks` has the megahertz of each contestant, round by round, or nothing."""
    if not clocks or not all(clocks):
        return None
    means = [statistics.fmean(of_round) if all(of_round) else None for of_round in zip(*clocks)]
    known = sorted(mean for mean in means if mean)
    if not known:
        return None
    median = known[len(known) // 2]
    return [number for number, mean in enumerate(means) if mean is None or abs(mean / median - 1) <= CLOCK_TOLERANCE]


def in_time(ours, peer, rounds=None):
    """Of two rows of the same problem, over these rounds, or all."""
    rounds = range(min(len(ours["us"]), len(peer["us"]))) if rounds is None else rounds
    return of_logs([math.log(peer["us"][number] / ours["us"][number]) for number in rounds])


def in_cycles(ours, peer, rounds=None):
    """The same of cycles; nothing unless every round that counts has both clocks."""
    if not ours.get("megahertz") or not peer.get("megahertz"):
        return None
    rounds = range(len(ours["us"])) if rounds is None else rounds
    clocks = [(ours["megahertz"][number], peer["megahertz"][number]) for number in rounds]
    if not all(own and theirs for own, theirs in clocks):
        return None
    cycles = [{"us": [row["us"][number] * row["megahertz"][number] for number in rounds]} for row in (ours, peer)]
    return in_time(*cycles)
