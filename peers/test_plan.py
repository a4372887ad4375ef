"""Plans are those of `veriflash bench`: `crates/lab/src/gpu/plan.rs` has the same table."""

import unittest

from plan import Plan
from problems import Problem

PLANS = {
    Problem(2, 8, 8, 512, 512, 64, "full"): Plan(308, 5),
    Problem(2, 8, 8, 512, 512, 64, "causal"): Plan(324, 5),
    Problem(8, 32, 32, 2048, 2048, 64, "causal"): Plan(7, 5),
    Problem(4, 16, 16, 4096, 4096, 128, "full"): Plan(2, 4),
    Problem(4, 16, 16, 4096, 4096, 128, "causal"): Plan(4, 4),
    Problem(1, 32, 32, 16384, 16384, 64, "full"): Plan(2, 2),
    Problem(1, 32, 32, 1, 8192, 128, "full"): Plan(28, 5),
}


class Plans(unittest.TestCase):
    def test_bench_makes_the_same(self):
        for problem, expected in PLANS.items():
            self.assertEqual(Plan.of(problem), expected, problem)

    def test_a_longer_warm_up_is_more_of_the_same(self):
        problem, expected = next(iter(PLANS.items()))
        self.assertEqual(Plan.of(problem, warm_up=50e-3), Plan(expected.calls, 25))


if __name__ == "__main__":
    unittest.main()
