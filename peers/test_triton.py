"""The peer in Triton computes attention: on plain cores, by Triton's interpreter, where torch and Triton are installed."""

import os
import unittest

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported

from problems import Problem

try:
    import torch
    import triton_attention
except ImportError as error:
    triton_attention, MISSING = None, str(error)
else:
    MISSING = ""

# In f16: the interpreter multiplies the bits of bf16 as if they were integers. On a GPU every peer is checked before it is timed.
PROBLEMS = [
    Problem(1, 2, 2, 200, 200, 64, "causal"),
    Problem(1, 4, 2, 130, 200, 64),
    Problem(1, 1, 1, 256, 256, 128, "causal"),
    Problem(2, 2, 1, 1, 300, 128),
]


@unittest.skipIf(MISSING, f"torch and triton: {MISSING}")
class Triton(unittest.TestCase):
    def test_every_configuration_is_right(self):
        import parity

        for configuration in triton_attention.CONFIGS:
            triton_attention.forward.configs = [configuration]  # one: nothing is timed here
            for problem in PROBLEMS:
                torch.manual_seed(0)
                inputs = [torch.randn(problem.shapes("bshd")[role]).half() for role in "qkv"]
                found = triton_attention.make(problem)(*inputs)
                error = parity.judge(parity.reference(problem, inputs), {"o": found}, "bshd")
                self.assertLessEqual(error, 1, f"{problem}, {configuration}")

    def test_what_it_has_no_kernel_for(self):
        for problem in (Problem(1, 1, 1, 64, 64, 96), Problem(1, 1, 1, 64, 64, 128, value_dim=64), Problem(1, 1, 1, 1, 64, 64, "causal")):
            with self.assertRaises(ValueError):
                triton_attention.make(problem)


if __name__ == "__main__":
    unittest.main()
