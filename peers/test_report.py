"""Ratios, their intervals, and what is printed of them."""

import unittest

import report


class Reports(unittest.TestCase):
    def rows(self):
        def row(problem, name, ours, us):
            return {"problem": problem, "name": name, "ours": ours, "us": us, "median_us": sorted(us)[len(us) // 2], "tflops": 1.0}

        return [
            row("P", "slow", True, [40.0] * 9), row("P", "fast", True, [10.0] * 9), row("P", "fa2", False, [20.0] * 9),
            row("P", "fa2#2", False, [20.2] * 9), row("Q", "fast", True, [10.0] * 9), row("Q", "fa2", False, [5.0] * 9),
            {"problem": "Q", "name": "cudnn", "ours": False, "error": "refused"},
        ]

    def test_ratios_are_paired_and_their_interval_leaves_out_one_of_nine_at_each_end(self):
        ours = {"us": [1.0, 2.0, 4.0] * 3}
        peer = {"us": [2.0, 4.0, 8.0, 2.0, 4.0, 8.0, 1.0, 20.0, 12.0]}
        self.assertEqual(report.ratio(ours, peer), (2.0, 2.0, 3.0))
        self.assertEqual([report.lowest_rank(count) for count in (1, 2, 5, 6, 8, 9, 12, 25)], [0, 0, 0, 0, 0, 1, 2, 7])

    def test_the_fastest_kernel_of_each_problem_counts(self):
        self.assertEqual(report.summary(self.rows(), ["fa2", "cudnn"]), ["geomean 1.000 over fa2, worst 0.500 at Q"])

    def test_the_table_has_every_kernel(self):
        lines = report.table(self.rows(), ["fa2", "cudnn"])
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[2].split(" | ")[1].strip(), "slow")
        self.assertIn("20.00  | 2.000 [2.000, 2.000]", lines[3])

    def test_noise_and_failures_are_told(self):
        self.assertIn("off by 1.00% (median)", report.noise(self.rows())[0])
        self.assertEqual(report.failures(self.rows()), ["cudnn at Q: refused"])


if __name__ == "__main__":
    unittest.main()
