"""A worker's samples say what three clocks showed, tried on a GPU in a model."""

import contextlib
import types
import unittest

import worker

CALLS, SECONDS = 4, 2e-3


class Gpu:
    """A stream whose work takes its time when somebody waits for it."""

    def __init__(self):
        self.queue, self.host = 0.0, 0.0

    def work(self):
        self.queue += SECONDS

    def wait(self, until):
        self.host = max(self.host, until)

    def event(self, enable_timing):
        gpu, event = self, types.SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", gpu.queue)
        event.synchronize = lambda: gpu.wait(event.at)
        event.elapsed_time = lambda end: (end.at - event.at) * 1e3
        return event


class Worker(unittest.TestCase):
    def sample(self, contract):
        gpu = Gpu()
        cuda = types.SimpleNamespace(
            Event=gpu.event, synchronize=lambda: gpu.wait(gpu.queue), stream=lambda stream: contextlib.nullcontext()
        )
        worker.torch = types.SimpleNamespace(cuda=cuda)
        worker.measure = types.SimpleNamespace(rest=lambda seconds: None)
        worker.time = types.SimpleNamespace(perf_counter=lambda: gpu.host)
        opened = object.__new__(worker.Opened)
        opened.plan = {"contract": contract, "calls": CALLS, "sets": 2, "warm_ups": 3, "rest": 0}
        opened.peer = types.SimpleNamespace(context=contextlib.nullcontext)
        opened.stream = types.SimpleNamespace(synchronize=lambda: gpu.wait(gpu.queue))
        opened.stamps = types.SimpleNamespace(
            stamp=lambda which: None, seconds=lambda: CALLS * SECONDS, megahertz=lambda: 1980.0
        )
        opened.inputs, opened.outputs = [(), ()], [None, None]
        opened.step = gpu.work
        replay = lambda: [gpu.work() for _ in range(CALLS)]
        opened.graph = types.SimpleNamespace(replay=replay) if contract == "graph" else None
        return opened.sample()

    def test_every_contract_tells_what_three_clocks_say_of_all_calls(self):
        for contract in ["graph", "stream", "latency", "host"]:
            sample = self.sample(contract)
            for clock in ["events", "timer", "host"]:
                self.assertAlmostEqual(sample["clocks"][clock], CALLS * SECONDS, msg=f"{contract}: {clock}")

    def test_a_call_takes_its_share_of_what_the_clock_of_the_contract_says(self):
        for contract in ["graph", "stream", "latency"]:
            self.assertAlmostEqual(self.sample(contract)["seconds"], SECONDS, msg=contract)
        self.assertEqual(self.sample("host")["seconds"], 0, "nobody waits for the calls")


if __name__ == "__main__":
    unittest.main()
