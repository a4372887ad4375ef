"""Times of several implementations of one problem, taken side by side.

All are alive together. One's calls are captured into a CUDA graph that walks over several sets of inputs, so that
none finds its inputs in the cache; one replay, by the GPU's own timer, is one sample, and some replays before it bring the GPU
to the clock that this implementation gives it. Every round takes a sample of each, in a fresh random order.
"""

import contextlib
import dataclasses
import statistics
import time
import typing

import torch

from plan import REST_SECONDS


@dataclasses.dataclass
class Contestant:
    """One implementation, `step(call)` in a context of its own; its times in microseconds per call, and the clocks meanwhile."""

    name: str
    step: typing.Callable
    context: typing.Callable = contextlib.nullcontext
    times: list = dataclasses.field(default_factory=list)
    clocks: list = dataclasses.field(default_factory=list)


def capture(contestant, plan, stream, stamps):
    """A graph of the plan's calls, between two stamps, and its results: none lies where another's does."""
    with contestant.context(), torch.cuda.stream(stream):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            stamps.stamp(0)
            results = [contestant.step(call) for call in range(plan.calls)]
            stamps.stamp(1)
        finally:
            graph.capture_end()
    return graph, results


def rest(seconds=REST_SECONDS):
    """Lets the GPU be idle for a moment, after all that it was given: so begins every sample, whoever's it is."""
    torch.cuda.synchronize()
    time.sleep(seconds)


def sample(contestant, plan, stream, stamps, neighbour):
    """Microseconds of a call, and megahertz. Nothing stands between the warm-up and what is timed; the neighbour works before.

    The graph is captured for this sample alone: where results lie makes a difference of up to a percent, and several graphs at once are
    not what anybody else measures.
    """
    graph, results = capture(contestant, plan, stream, stamps)
    neighbour.work()
    rest()
    with torch.cuda.stream(stream):
        for _ in range(plan.warm_ups):
            graph.replay()
        graph.replay()
    torch.cuda.synchronize()
    del results
    graph.reset()
    return stamps.seconds() * 1e6 / plan.calls, stamps.megahertz()


def rounds(contestants, plan, count, stream, random, stamps, neighbour):
    """Takes `count` samples of each; one round before them warms up."""
    for number in range(count + 1):
        for contestant in random.sample(contestants, len(contestants)):
            microseconds, megahertz = sample(contestant, plan, stream, stamps, neighbour)
            if number:
                contestant.times.append(microseconds)
                contestant.clocks.append(megahertz)


def figures(contestant, problem, plan):
    """A measurement as it is written down."""
    median = statistics.median(contestant.times)
    return {
        "calls": plan.calls,
        "us": [round(time, 4) for time in contestant.times],
        "megahertz": [clock and round(clock, 1) for clock in contestant.clocks],
        "median_us": median,
        "tflops": problem.flops() / median / 1e6,
    }
