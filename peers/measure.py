"""Times of several implementations of one problem, taken side by side.

All are alive together. Each one's calls are captured into one CUDA graph that walks over several sets of inputs, so that
none finds its inputs in the cache; one replay between two events is one sample, and some replays before it bring the GPU
to the clock that this implementation gives it. Every round takes each graph once, in a fresh random order.
"""

import dataclasses
import math
import statistics
import typing

import torch

ROTATED_BYTES, MOST_SETS = 256e6, 64  # several times the 60 MB of an H200's second-level cache
SAMPLE_SECONDS = 3e-3  # one replay lasts about this long, or longer
WARM_UPS = 3  # replays before each sample: clock and power follow what runs within some milliseconds
# To guess how many calls that takes; operations and bytes per second and seconds per launch, below what an H200 does.
GUESS_FLOPS, GUESS_BYTES, GUESS_LAUNCH = 4e14, 3.5e12, 4e-6


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many sets of inputs, and how many calls in one graph: the same for all who solve a problem."""

    sets: int
    calls: int

    @classmethod
    def of(cls, problem):
        sets = max(1, min(MOST_SETS, math.ceil(ROTATED_BYTES / problem.bytes())))
        guess = problem.flops() / GUESS_FLOPS + problem.bytes() / GUESS_BYTES + GUESS_LAUNCH
        return cls(sets, max(2, sets * math.ceil(SAMPLE_SECONDS / guess / sets)))


def draw(problem, sets, seed=1234):
    """Sets of random normal (q, k, v), laid out (batch, sequence, heads, dim)."""
    generator = torch.Generator("cuda").manual_seed(seed)
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[problem.dtype]
    shapes = problem.shapes("bshd")
    return [
        [torch.randn(shapes[role], device="cuda", generator=generator).to(dtype) for role in "qkv"] for _ in range(sets)
    ]


@dataclasses.dataclass
class Contestant:
    """One implementation, captured, and its times in microseconds per call."""

    name: str
    graph: torch.cuda.CUDAGraph
    start: typing.Any = dataclasses.field(default_factory=lambda: torch.cuda.Event(enable_timing=True))
    end: typing.Any = dataclasses.field(default_factory=lambda: torch.cuda.Event(enable_timing=True))
    times: list = dataclasses.field(default_factory=list)


def capture(name, step, plan, stream):
    """A graph of the plan's calls of `step(set)`, which has run on every set before."""
    with torch.cuda.stream(stream):
        for index in range(plan.sets):
            step(index)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            for call in range(plan.calls):
                step(call % plan.sets)
        finally:
            graph.capture_end()
    return Contestant(name, graph)


def rounds(contestants, plan, count, stream, random):
    """Takes `count` samples of each; one round before them warms up."""
    for number in range(count + 1):
        with torch.cuda.stream(stream):
            for contestant in random.sample(contestants, len(contestants)):
                for _ in range(WARM_UPS):
                    contestant.graph.replay()
                contestant.start.record()
                contestant.graph.replay()
                contestant.end.record()
        stream.synchronize()
        for contestant in contestants if number else []:
            contestant.times.append(contestant.start.elapsed_time(contestant.end) * 1e3 / plan.calls)


def row(contestant, problem, plan):
    """A measurement as it is written down."""
    median = statistics.median(contestant.times)
    return {
        "problem": str(problem),
        "name": contestant.name,
        "calls": plan.calls,
        "sets": plan.sets,
        "us": [round(time, 4) for time in contestant.times],
        "median_us": median,
        "tflops": problem.flops() / median / 1e6,
    }
