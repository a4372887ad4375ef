#!/usr/bin/env python3
"""One peer for `veriflash bench`, in a process of its own: answers lines of JSON with lines of JSON.

    python3 peers/worker.py fa2

    {"open": {"batch": 2, …}, "plan": {"contract": "graph", "calls": 300, "sets": 300, "warm_ups": 3, "rest": 0.002}}
                          → {"error": 0.4}
    {"sample": true}      → {"seconds": 7.1e-6, "megahertz": 1965.0, "clocks": {"events": 2.14e-3, "timer": 2.13e-3, "host": 2.15e-3}}
    {"verify": true}      → {"error": 0.4}
    {"launch": true}      → {"cycles": 993.0}

What goes wrong is answered with {"failed": why}; the process stays.
"""

import contextlib
import gc
import json
import os
import random
import sys
import time

# The answers have the standard output for themselves: libraries that print go to the other one.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


class Opened:
    """A peer made ready for a problem."""

    def __init__(self, peer, problem, plan, stamps):
        gc.collect()
        torch.cuda.empty_cache()
        self.peer, self.problem, self.plan, self.stamps = peer, problem, plan, stamps
        self.stream = torch.cuda.Stream()
        self.inputs = inputs.draw(problem, plan["sets"])
        # They are drawn in another stream, which the one below does not wait for.
        torch.cuda.synchronize()
        self.outputs = [None] * plan["sets"]
        with peer.context(), torch.cuda.stream(self.stream):
            self.step = peer.make(problem)
            self.calls(plan["sets"])
            torch.cuda.synchronize()
            self.graph = self.capture() if plan["contract"] == "graph" else None

    def calls(self, count):
        for call in range(count):
            index = call % self.plan["sets"]
            self.outputs[index] = self.step(*self.inputs[index])

    def capture(self):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        try:
            self.stamps.stamp(0)
            self.calls(self.plan["calls"])
            self.stamps.stamp(1)
        finally:
            graph.capture_end()
        return graph

    def run(self):
        """Puts the plan's calls into the stream."""
        if self.graph:
            self.graph.replay()
        else:
            self.calls(self.plan["calls"])

    def sample(self):
        with self.peer.context(), torch.cuda.stream(self.stream):
            measure.rest(self.plan["rest"])
            for _ in range(self.plan["warm_ups"]):
                self.run()  # the clock follows; meanwhile the host puts the sample behind
            seconds, clocks = self.in_a_graph() if self.graph else self.call_by_call()
        return {"seconds": seconds / self.plan["calls"], "megahertz": self.stamps.megahertz(), "clocks": clocks}

    def in_a_graph(self):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.run()
        end.record()
        start.synchronize()  # warm-ups are still under way
        begun = time.perf_counter()
        end.synchronize()
        clocks = self.clocks(start, end, time.perf_counter() - begun)
        return clocks["timer"], clocks

    def clocks(self, start, end, host):
        """What each says of all calls, in seconds: whoever asked compares them."""
        torch.cuda.synchronize()
        return {"events": start.elapsed_time(end) * 1e-3, "timer": self.stamps.seconds(), "host": host}

    def call_by_call(self):
        """What the host does is part of what is timed, and stamps are not."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.stamps.stamp(0)
        torch.cuda.synchronize()
        begun, waited = time.perf_counter(), 0
        start.record()
        if self.plan["contract"] == "latency":
            waited = self.one_by_one()
        else:
            self.run()
        issued = time.perf_counter() - begun
        end.record()
        self.stamps.stamp(1)
        end.synchronize()
        clocks = self.clocks(start, end, time.perf_counter() - begun)
        return {"stream": clocks["events"], "latency": waited, "host": issued}[self.plan["contract"]], clocks

    def one_by_one(self):
        """Seconds of all calls, each waited for before the next begins."""
        seconds = 0
        for call in range(self.plan["calls"]):
            index = call % self.plan["sets"]
            begun = time.perf_counter()
            self.outputs[index] = self.step(*self.inputs[index])
            self.stream.synchronize()
            seconds += time.perf_counter() - begun
        return seconds

    def error(self):
        """Of a set that is drawn now, in units of what is allowed: results are poisoned, and the calls made once more, as they are timed."""
        index = random.randrange(self.plan["sets"])
        with self.peer.context(), torch.cuda.stream(self.stream):
            for output in self.outputs:
                output.fill_(float("nan"))
            self.run()
            torch.cuda.synchronize()
            reference = parity.reference(self.problem, self.inputs[index])
            return parity.judge(reference, {"o": self.outputs[index]}, "bshd")


def answer(**fields):
    ANSWERS.write(json.dumps(fields) + "\n")
    ANSWERS.flush()


def versions(name):
    parts = [f"torch {torch.__version__}", f"CUDA {torch.version.cuda}"]
    if name == "cudnn":
        parts.append(f"cuDNN {torch.backends.cudnn.version()}")
    package = {"fa4": "flash-attn-4", "triton": "triton"}.get(name)
    if package:
        from importlib import metadata

        with contextlib.suppress(metadata.PackageNotFoundError):
            parts.append(f"{package} {metadata.version(package)}")
    return ", ".join(parts)


def serve(name):
    peer = PEERS[name]
    torch.zeros(1, device="cuda")
    driver = Driver()
    stamps, opened = Stamps(driver), None
    answer(ready=versions(name))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "open" in request:
                opened = None
                opened = Opened(peer, Problem(**request["open"]), request["plan"], stamps)
                answer(error=opened.error())
            elif "sample" in request:
                answer(**opened.sample())
            elif "launch" in request:
                answer(cycles=stamps.launch_cycles())
            else:
                answer(error=opened.error())
        except Exception as error:
            answer(failed=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


if __name__ == "__main__":
    try:
        import torch

        import inputs
        import measure
        import parity
        from driver import Driver
        from others import PEERS
        from problems import Problem
        from stamps import Stamps

        serve(sys.argv[1])
    except Exception as error:  # before anything was asked
        answer(failed=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
