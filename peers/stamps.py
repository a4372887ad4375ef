"""A multiprocessor's own clocks at both ends of a sample: how long it took, and how fast the GPU's clock ran meanwhile."""

import ctypes
import pathlib

import torch

import arguments
import recipe


LAUNCHES, REPLAYS = 256, 20  # of what does nothing: as `crates/lab/src/gpu/launches.rs` has them


class Stamps:
    """Two stamps, which a graph may hold; the second is of the last replay."""

    def __init__(self, driver):
        self.driver, module = driver, driver.load(pathlib.Path(__file__).with_name("stamp.ptx").read_text())
        self.function, self.nothing = (driver.function(module, entry, 0) for entry in ("stamp", "nothing"))
        self.words = torch.zeros(6, dtype=torch.int64, device="cuda")

    def stamp(self, which):
        """Puts the first or the second into torch's current stream."""
        self.launch(self.function, [ctypes.c_uint64(self.words[3 * which :].data_ptr())])

    def launch(self, function, values):
        launch = recipe.Launch("", (1, 1, 1), (1, 1, 1), None, 0, 1, False, [])
        self.driver.launch(function, launch, arguments.Packed(values), torch.cuda.current_stream().cuda_stream)

    def seconds(self):
        """Between the two, by the GPU's timer. Events stand outside of a graph, and see how long its launch takes, too."""
        _, _, begin, _, _, end = self.words.tolist()
        return (end - begin) * 1e-9

    def megahertz(self):
        """Of the clock between the two, after both were passed; nothing if they were on different multiprocessors."""
        cycles, seconds = self.cycles(), self.seconds()
        return cycles / seconds * 1e-6 if cycles is not None and seconds > 0 else None

    def cycles(self):
        """Of the clock between the two; nothing if they were on different multiprocessors."""
        place, begin, _, end_place, end, _ = self.words.tolist()
        return end - begin if place == end_place else None

    def launch_cycles(self):
        """What a launch costs in this process: cycles of a kernel that does nothing, in a graph of many."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(torch.cuda.Stream()):
            graph.capture_begin()
            self.stamp(0)
            for _ in range(LAUNCHES):
                self.launch(self.nothing, [])
            self.stamp(1)
            graph.capture_end()
            for _ in range(REPLAYS):
                graph.replay()
        torch.cuda.synchronize()
        cycles = self.cycles()
        return cycles and cycles / LAUNCHES
