"""A multiprocessor's own clocks at both ends of a sample: how long it took, and how fast the GPU's clock ran meanwhile."""

import ctypes
import pathlib

import torch

import arguments
import recipe


class Stamps:
    """Two stamps, which a graph may hold; the second is of the last replay."""

    def __init__(self, driver):
        self.driver, module = driver, driver.load(pathlib.Path(__file__).with_name("stamp.ptx").read_text())
        self.function = driver.function(module, "stamp", 0)
        self.words = torch.zeros(6, dtype=torch.int64, device="cuda")

    def stamp(self, which):
        """Puts the first or the second into torch's current stream."""
        launch = recipe.Launch("stamp", (1, 1, 1), (1, 1, 1), None, 0, 1, False, [])
        packed = arguments.Packed([ctypes.c_uint64(self.words[3 * which :].data_ptr())])
        self.driver.launch(self.function, launch, packed, torch.cuda.current_stream().cuda_stream)

    def seconds(self):
        """Between the two, by the GPU's timer. Events stand outside of a graph, and see how long its launch takes, too."""
        _, _, begin, _, _, end = self.words.tolist()
        return (end - begin) * 1e-9

    def megahertz(self):
        """Of the clock between the two, after both were passed; nothing if they were on different multiprocessors."""
        place, cycles, nanoseconds, end_place, end_cycles, end_nanoseconds = self.words.tolist()
        if place != end_place or end_nanoseconds <= nanoseconds:
            return None
        return (end_cycles - cycles) / (end_nanoseconds - nanoseconds) * 1e3
