"""One problem: our kernels are checked, then measured beside the peers."""

import contextlib
import gc

import torch

import inputs
import measure
import parity
import repeat
from ours import LoadedKernel
from plan import Plan
from report import PROTOTYPE, SECOND
from stamps import Stamps

TWICE = "fa2"  # measured twice, to see the noise
ANOTHER = 10  # a peer's error in units of what is allowed from which it computes something else


class Contest:
    """The rows of one problem. A row is a measurement, or it has an `error`; one of ours that is wrong is not timed."""

    def __init__(self, problem, kind, driver, warm_up):
        # Nothing of the problem before may be freed while a graph is captured.
        gc.collect()
        torch.cuda.empty_cache()
        self.problem, self.kind, self.driver = problem, kind, driver
        self.plan, self.stamps = Plan.of(problem, warm_up), Stamps(driver)
        self.inputs = inputs.draw(problem, self.plan.calls, kind)
        self.reference = parity.reference(problem, self.inputs[0])
        self.stream = torch.cuda.Stream()
        self.contestants, self.rows, self.timed = [], {}, []
        torch.cuda.synchronize()

    def ours(self, kernel, launches, time):
        """Enters one of our kernels, if it is right."""
        with self.row(kernel.name, ours=True) as row:
            loaded = self.load(kernel, row)
            if launches:
                self.repeat(loaded, launches, row)
            if time:
                self.enter_loaded(loaded, row)

    def prototype(self, kernel):
        """Enters a kernel of the prototype, if it is right."""
        with self.row(PROTOTYPE, ours=False) as row:
            row["kernel"] = kernel.name
            self.enter_loaded(self.load(kernel, row), row)

    def load(self, kernel, row):
        """A kernel that is right."""
        loaded = LoadedKernel(kernel, self.driver)
        row.update(loaded.resources)
        first = loaded.bind(self.inputs[0], loaded.memory())
        first.run()
        torch.cuda.synchronize()
        self.judge(row, first.results(), kernel.layout, most=1)
        return loaded

    def judge(self, row, results, layout, most):
        row["parity"] = parity.judge(self.reference, results, layout)
        if not row["parity"] <= most:
            raise ValueError(f"wrong: its error is {row['parity']:.3g} times what is allowed")

    def repeat(self, loaded, launches, row):
        one, eight = row["bit_equal"] = repeat.bit_equal(loaded, self.inputs[0], launches)
        print(f"  {row['name']}: one stream bit-equal {one} of {launches}, eight streams bit-equal {eight} of {launches}")
        if min(one, eight) < launches:
            raise ValueError(f"results differ from launch to launch: bit-equal {min(one, eight)} of {launches}")

    def enter_loaded(self, loaded, row):
        bound = [loaded.bind(tensors, loaded.memory()) for tensors in self.inputs]
        self.enter(measure.Contestant(row["name"], lambda index: bound[index].run()))
        self.timed.append((row, bound))

    def peer(self, peer):
        """Enters a peer; one is entered twice."""
        for name in [peer.name, peer.name + SECOND] if peer.name == TWICE else [peer.name]:
            with self.row(name, ours=False) as row, peer.context():
                call = peer.make(self.problem)
                self.judge(row, {"o": call(*self.inputs[0])}, "bshd", most=ANOTHER)
                step = lambda index, call=call: call(*self.inputs[index])
                self.enter(measure.Contestant(name, step, peer.context))

    def enter(self, contestant):
        """All of its calls run once before one is captured: some compile, some try variants, and some refuse only then."""
        with torch.cuda.stream(self.stream):
            for index in range(self.plan.calls):
                contestant.step(index)
        torch.cuda.synchronize()
        graph, _ = measure.capture(contestant, self.plan, self.stream, self.stamps)
        graph.reset()
        self.contestants.append(contestant)

    @contextlib.contextmanager
    def row(self, name, ours):
        """A row that notes what went wrong, unless the GPU went with it."""
        row = self.rows[name] = {"problem": str(self.problem), "inputs": self.kind, "name": name, "ours": ours}
        try:
            yield row
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(f"  {name}: {row['error']}", flush=True)
            torch.cuda.synchronize()

    def measure(self, rounds, random):
        """Times all that were entered."""
        measure.rounds(self.contestants, self.plan, rounds, self.stream, random, self.stamps, self.driver.neighbour)
        for contestant in self.contestants:
            self.rows[contestant.name].update(measure.figures(contestant, self.problem, self.plan))
        for row, bound in self.timed:
            self.verify(row, bound)

    def verify(self, row, bound):
        """What the timed graph left must be what a launch outside of it gives: it did the work."""
        last = bound[-1]
        timed = [tensor.clone() for tensor in repeat.bits(last)]
        last.poison()
        last.run()
        torch.cuda.synchronize()
        if not repeat.same(timed, repeat.bits(last)):
            del row["us"]
            row["error"] = "what the timed graph computed differs from a launch outside of it"
