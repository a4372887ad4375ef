"""How many calls a sample has, and how the GPU is brought to it: as `veriflash bench` does it (`crates/lab/src/gpu/plan.rs`)."""

import dataclasses
import math

# An H200: operations of tensor cores in f16 and bytes of memory per second, bytes of the second-level cache.
PEAK_FLOPS, PEAK_BYTES, CACHE_BYTES = 4096 * 132 * 1.98e9, 4.8e12, 60 << 20
SAMPLE_SECONDS = 2e-3  # one replay lasts about this long, or longer
CACHES, MOST_BYTES = 2.2, 4e9  # inputs and results of all calls: beyond twice the cache, and not without end
# Before each sample the GPU rests and then replays the same graph: clock and power follow what runs within some
# milliseconds, and what the contestant before it did to them shall not show.
REST_SECONDS, WARM_UP_SECONDS = 2e-3, 10e-3
# To guess how long a call takes: the share of the roofline that it reaches, and seconds per launch.
GUESSED_SHARE, GUESSED_LAUNCH = 0.4, 4e-6


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many calls in one graph, each with inputs and results of its own: the same for all who solve a problem."""

    calls: int
    warm_ups: int

    @classmethod
    def of(cls, problem, warm_up=WARM_UP_SECONDS):
        guess = max(problem.flops() / PEAK_FLOPS, problem.bytes() / PEAK_BYTES) / GUESSED_SHARE + GUESSED_LAUNCH
        wanted = max(math.ceil(SAMPLE_SECONDS / guess), math.ceil(CACHES * CACHE_BYTES / problem.bytes()))
        calls = int(max(2, min(wanted, MOST_BYTES / problem.bytes())))
        # At least two: while the GPU is at them, the host puts the sample behind them.
        return cls(calls, max(2, math.ceil(warm_up / (guess * calls))))
