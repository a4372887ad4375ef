"""Ratios, their intervals, and what is printed of them."""

import math
import unittest

import interval
import report


class Intervals(unittest.TestCase):
    def test_the_interval_is_students(self):
        # Logs of 0.01, 0.02 and 0.03: mean 0.02, standard error 0.01/√3, t of 2 degrees 4.303. So in measure/interval.rs.
        found = interval.of_logs([0.01, 0.02, 0.03])
        self.assertAlmostEqual(math.log(found.ratio), 0.02)
        self.assertAlmostEqual(math.log(found.high / found.low) / 2, 4.3027 * 0.01 / math.sqrt(3), places=5)
        self.assertEqual((interval.of_logs([0.0]).low, interval.of_logs([0.0]).high), (0.0, math.inf))

    def test_between_known_degrees_of_freedom_the_wider_counts(self):
        self.assertEqual([interval.student(freedom) for freedom in (11, 29, 30, 5000)], [2.2010, 2.0484, 2.0423, 1.9623])

    def test_a_round_at_another_clock_counts_for_nobody(self):
        clocks = [[1980.0] * 9 + [1500.0], [1980.0] * 9 + [1500.0]]
        self.assertEqual(interval.kept(clocks), list(range(9)))
        self.assertEqual(interval.kept([[1980.0, None, 1980.0], [1980.0, 1500.0, 1990.0]]), [0, 1, 2])
        self.assertIsNone(interval.kept([[1980.0], None]))

    def test_ratios_are_paired_by_round(self):
        ours, peer = {"us": [1.0, 2.0, 4.0]}, {"us": [2.0, 4.0, 8.0]}
        self.assertEqual(str(interval.in_time(ours, peer)), "2.000 [2.000, 2.000]")
        self.assertEqual(str(interval.in_time(ours, {"us": [2.0, 4.0, 80.0]}, [0, 1])), "2.000 [2.000, 2.000]")

    def test_cycles_are_time_and_clock(self):
        ours, peer = {"us": [1.0, 1.0], "megahertz": [1000.0] * 2}, {"us": [2.0, 2.0], "megahertz": [1100.0] * 2}
        self.assertEqual(str(interval.in_cycles(ours, peer)), "2.200 [2.200, 2.200]")
        self.assertIsNone(interval.in_cycles(ours, {"us": [2.0, 2.0]}))
        self.assertIsNone(interval.in_cycles(ours, {"us": [2.0, 2.0], "megahertz": [1100.0, None]}))
        self.assertEqual(interval.in_cycles(ours, {"us": [2.0, 2.0], "megahertz": [1100.0, None]}, [0]).ratio, 2.2)


class Reports(unittest.TestCase):
    def rows(self):
        def row(problem, name, ours, us):
            row = {"problem": problem, "name": name, "ours": ours, "us": us, "megahertz": [1900.0] * len(us)}
            return {**row, "median_us": sorted(us)[len(us) // 2], "tflops": 1.0}

        return [
            row("P", "slow", True, [40.0] * 9), row("P", "fast", True, [10.0] * 9), row("P", "fa2", False, [20.0] * 9),
            row("P", "fa2#2", False, [20.2] * 9), row("Q", "fast", True, [10.0] * 9), row("Q", "fa2", False, [5.0] * 9),
            {"problem": "Q", "name": "cudnn", "ours": False, "error": "refused"},
        ]

    def test_the_fastest_kernel_of_each_problem_counts(self):
        self.assertEqual(report.summary(self.rows(), ["fa2", "cudnn"]), ["geomean 1.000 over fa2, worst 0.500 at Q"])

    def test_the_table_has_every_kernel_in_time_and_in_cycles(self):
        lines = report.table(self.rows(), ["fa2", "cudnn"])
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[2].split(" | ")[1].strip(), "slow")
        self.assertIn("20.00  | 2.000 [2.000, 2.000] | 2.000 [2.000, 2.000]", lines[3])

    def test_rows_without_clocks_have_no_cycles(self):
        rows = [{key: value for key, value in row.items() if key != "megahertz"} for row in self.rows()]
        self.assertIn("20.00  | 2.000 [2.000, 2.000] |           |", report.table(rows, ["fa2"])[3])

    def test_noise_and_failures_are_told(self):
        self.assertIn("off by 1.00% (median)", report.noise(self.rows())[0])
        self.assertEqual(report.failures(self.rows()), ["cudnn at Q: refused"])


if __name__ == "__main__":
    unittest.main()
