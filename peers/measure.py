"""Times of several implementations of one problem, taken side by side.

All are alive together. Each one's calls are captured into one CUDA graph that walks over several sets of inputs, so that
none finds its inputs in the cache; one replay between two events is one sample, and some replays before it bring the GPU
to the clock that this implementation gives it. Every round takes each graph once, in a fresh random order.
"""

import dataclasses
import math
import statistics
import time
import typing

import torch

ROTATED_BYTES, MOST_BYTES = 132e6, 4e9  # beyond twice the 60 MB of an H200's second-level cache
SAMPLE_SECONDS = 2e-3  # one replay lasts about this long, or longer
# Before each sample the GPU rests and then replays the same graph: clock and power follow what runs within some
# milliseconds, and what the contestant before it did to them shall not show.
REST_SECONDS, WARM_UP_SECONDS = 2e-3, 10e-3
# To guess how many calls that takes; operations and bytes per second and seconds per launch, below what an H200 does.
GUESS_FLOPS, GUESS_BYTES, GUESS_LAUNCH = 4e14, 3.5e12, 4e-6


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many calls in one graph, each with inputs and results of its own: the same for all who solve a problem."""

    calls: int
    warm_ups: int

    @classmethod
    def of(cls, problem):
        guess = problem.flops() / GUESS_FLOPS + problem.bytes() / GUESS_BYTES + GUESS_LAUNCH
        wanted = max(math.ceil(SAMPLE_SECONDS / guess), math.ceil(ROTATED_BYTES / problem.bytes()))
        calls = int(max(2, min(wanted, MOST_BYTES // problem.bytes())))
        return cls(calls, max(2, math.ceil(WARM_UP_SECONDS / (guess * calls))))


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
    results: list  # of every call: none may lie where another's does
    start: typing.Any = dataclasses.field(default_factory=lambda: torch.cuda.Event(enable_timing=True))
    end: typing.Any = dataclasses.field(default_factory=lambda: torch.cuda.Event(enable_timing=True))
    times: list = dataclasses.field(default_factory=list)


def capture(name, step, plan, stream):
    """A graph of the plan's calls of `step(call)`, all of which have run before."""
    with torch.cuda.stream(stream):
        for call in range(plan.calls):
            step(call)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            results = [step(call) for call in range(plan.calls)]
        finally:
            graph.capture_end()
    return Contestant(name, graph, results)


def rounds(contestants, plan, count, stream, random):
    """Takes `count` samples of each; one round before them warms up."""
    for number in range(count + 1):
        with torch.cuda.stream(stream):
            for contestant in random.sample(contestants, len(contestants)):
                stream.synchronize()
                time.sleep(REST_SECONDS)
                for _ in range(plan.warm_ups):
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
        "us": [round(time, 4) for time in contestant.times],
        "median_us": median,
        "tflops": problem.flops() / median / 1e6,
    }
