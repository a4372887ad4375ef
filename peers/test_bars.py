"""The bars hold and are missed where they should; hard inputs; the table; the prototype's recipes. Without a GPU."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import adverse
import bars
import prototype
import recipe
import report
import table
from problems import GRIDS, KINDS, NORMAL, gqa, main, parse, small

POINT = "f16 B2 H8 S512 D64 full"


def row(problem, name, us, kind=NORMAL, ours=None):
    ours = name.startswith("config") if ours is None else ours
    return {
        "problem": str(problem), "inputs": kind, "name": name, "ours": ours, "us": us, "megahertz": [1900.0] * len(us),
        "median_us": us[0], "tflops": 1.0,
    }  # fmt: skip


def point(problem, **times):
    return [row(problem, name, [time] * 9) for name, time in times.items()]


def grid(problems, **times):
    return [one for problem in problems for one in point(problem, **times)]


def checked(rows, *grids):
    """Whether the bars of the grids hold, and what was printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        return bars.check(rows, grids), printed.getvalue()


FASTER = {"config10": 10.0, "fa2": 30.0, "cudnn": 12.0, "fa4": 11.5, "prototype": 10.1}


class Bars(unittest.TestCase):
    def test_hold_where_every_point_is_fast_enough(self):
        holds, printed = checked(grid(main(), **FASTER), "main")
        self.assertTrue(holds, printed)
        self.assertIn("holds  main and GQA in f16: mean 1.150 (1.13 asked), least 1.150 [1.150, 1.150]", printed)
        self.assertIn("24 of 24 points measured, 0 below", printed)
        self.assertNotIn("D96", printed)

    def test_the_fastest_peer_counts_and_no_prototype_or_second_reading(self):
        rows = point(POINT, **FASTER, triton=1.0, **{"fa2#2": 1.0})
        [bar] = [bar for bar in bars.bars() if bar.name == "the standard problem"]
        self.assertEqual(bars.ratios(bar, rows)[POINT].ratio, 11.5 / 10)

    def test_a_mean_that_is_too_low_misses(self):
        holds, printed = checked(grid(main(), **{**FASTER, "fa4": 11.2}), "main")
        self.assertFalse(holds)
        self.assertIn("MISSED main and GQA in f16: mean 1.120", printed)
        self.assertIn("holds  main in f16, over the prototype", printed)

    def test_an_interval_below_misses_and_a_wide_one_does_not(self):
        fast = grid(main()[1:], **FASTER)
        slow = point(main()[0], **{**FASTER, "fa4": 9.9})
        holds, printed = checked(fast + slow, "main")
        self.assertFalse(holds)
        self.assertIn("24 of 24 points measured, 1 below", printed)
        slow[3] = row(main()[0], "fa4", [9.5, 10.3] * 4 + [9.9])
        self.assertTrue(checked(fast + slow, "main")[0])

    def test_a_ratio_below_misses_whatever_its_interval(self):
        bar = bars.Bar("one", (parse(POINT),), ratio=1.0)
        rows = [row(POINT, "config12", [10.0] * 9), row(POINT, "fa4", [9.5, 10.3] * 4 + [9.9])]
        self.assertFalse(bars.judge(bar, rows, {parse(POINT)})[0])

    def test_the_prototype_must_not_be_faster(self):
        holds, printed = checked(grid(main(), **{**FASTER, "prototype": 9.9}), "main")
        self.assertFalse(holds)
        self.assertIn("MISSED main in f16, over the prototype: mean 0.990", printed)

    def test_what_nobody_measured_does_not_hold(self):
        rows = grid(main(), **FASTER)
        self.assertIn("MISSED main and GQA in f16: mean 1.150 (1.13 asked)", checked(rows, "main", "gqa")[1])
        self.assertIn("24 of 28 points", checked(rows, "main", "gqa")[1])
        f16 = [problem for problem in gqa() if problem.dtype == "f16"]
        self.assertIn("holds  main and GQA in f16", checked(rows + grid(f16, **FASTER), "main", "gqa")[1])
        without = [one for one in rows if one["name"] != "prototype"]
        self.assertIn("MISSED main in f16, over the prototype: nothing measured", checked(without, "main")[1])
        without = [one for one in rows if one["name"] != "fa2"]
        self.assertIn("MISSED peers: fa2 not measured", checked(without, "main")[1])

    def test_a_peer_that_refuses_one_point_leaves_it_to_the_others(self):
        rows = [one for one in grid(main(), **FASTER) if (one["problem"], one["name"]) != (str(main()[0]), "fa4")]
        self.assertTrue(checked(rows, "main")[0])

    def test_every_grid_has_a_bar_and_every_bar_a_grid(self):
        served = {problem for bar in bars.bars() for problem in bar.problems}
        for name, of_grid in GRIDS.items():
            left = [str(problem) for problem in of_grid() if problem not in served]
            self.assertTrue(name in ("decode", "adverse") or not left, f"{name}: {left}")
        self.assertEqual(served - {problem for of_grid in GRIDS.values() for problem in of_grid()}, set())

    def test_the_standard_problem_has_its_own_bar(self):
        times = {"config12": 10.0, "fa2": 20.0, "cudnn": 15.0, "fa4": 14.6}
        rows = grid(small(), **times)
        self.assertTrue(checked(rows, "small")[0])
        rows = grid(small()[:1], **{**times, "fa4": 14.4}) + grid(small()[1:], **times)
        self.assertIn("MISSED the standard problem", checked(rows, "small")[1])


class HardInputs(unittest.TestCase):
    def rows(self, slow=12.0):
        rows = []
        for problem in GRIDS["adverse"]():
            config = f"config10_{problem.mask}_D{problem.dim}".replace("/", "_")
            normal = 10.0 * problem.flops() / (problem.whole if problem.window else problem).flops()
            rows.append(row(problem, config, [normal] * 9))
            rows += [row(problem, config, [slow] * 9, kind) for kind in KINDS if kind != NORMAL and not problem.window]
        return rows

    def test_speed_is_told_over_that_of_normal_inputs(self):
        holds, printed = checked(self.rows(), "adverse")
        self.assertTrue(holds, printed)
        self.assertIn("least 0.833 (0.70 asked); 20 of 20 measured, 0 of 20 rows below", printed)
        lines = adverse.lines(self.rows())
        self.assertIn("config10_full_D64: ramp1.2 0.833, ramp2.2 0.833, huge 0.833, hot 0.833", lines[0])
        self.assertIn("config10_window2000_0_D64: window2000/0 1.000", "\n".join(lines))
        self.assertIn("least 0.833", lines[-1])

    def test_slow_or_missing_rows_miss_the_bar(self):
        self.assertIn("least 0.667 (0.70 asked); 20 of 20 measured, 16 of 20 rows below", checked(self.rows(15.0), "adverse")[1])
        holds, printed = checked([one for one in self.rows() if one["inputs"] != "hot"], "adverse")
        self.assertFalse(holds)
        self.assertIn("16 of 20 measured", printed)

    def test_a_window_counts_what_it_shows(self):
        whole, window = parse("B1 H8 S4096 D64 causal"), parse("B1 H8 S4096 D64 window1000/0")
        rows = [row(whole, "a/config10_x.ptx", [10.0] * 9, ours=True), row(window, "config10_y.ptx", [5.0] * 9, ours=True)]
        [(_, speed)] = adverse.ratios(rows)
        self.assertAlmostEqual(speed.ratio, 2 * window.flops() / whole.flops())
        rows[1]["name"] = "config15_y.ptx"
        self.assertEqual(list(adverse.ratios(rows)), [])

    def test_they_are_in_no_table_of_normal_inputs(self):
        rows = [*point(POINT, **FASTER), row(POINT, "config10", [1.0] * 9, "huge"), row(POINT, "fa4", [1.0] * 9, "huge")]
        self.assertIn("| 10 | 10.00 |", list(table.lines(rows))[2])
        self.assertEqual(len(report.of_kind(rows, "huge")), 2)
        self.assertEqual(bars.ratios(bars.bars()[0], rows)[POINT].ratio, 1.15)


class Tables(unittest.TestCase):
    def test_the_table_of_a_document(self):
        rows = [
            row(POINT, "kernels/attention_config12_f16.ptx", [6.806] * 9, ours=True), row(POINT, "fa2", [13.612] * 9),
            row(parse("B1 H8 S64 D64"), "own.ptx", [12345.6] * 9, ours=True), row(parse("B1 H8 S64 D64"), "fa4", [24691.2] * 9),
        ]  # fmt: skip
        self.assertEqual(list(table.lines(rows)), [
            "| problem | config | µs | TFLOP/s | over FlashAttention-2 | over FlashAttention-4 |",
            "|---|---|---|---|---|---|",
            f"| {POINT} | 12 | 6.806 | 1 | 2.000 [2.000, 2.000] |  |",
            "| f16 B1 H8 S64 D64 full | own | 12346 | 1 |  | 2.000 [2.000, 2.000] |",
        ])  # fmt: skip


class Prototypes(unittest.TestCase):
    def test_every_point_has_a_recipe_that_solves_it(self):
        with tempfile.TemporaryDirectory() as name:
            written = prototype.write(pathlib.Path(name))
            found = recipe.find([name])
        self.assertEqual([error for _, error in found if error], [])
        self.assertEqual({kernel.problem for kernel, _ in found}, set(written))
        self.assertEqual(len(found), 24 + 24 + 2)
        for kernel, _ in found:
            labels = [line for line in kernel.ptx.splitlines() if line.startswith("$") and line.endswith(":")]
            self.assertEqual(len(labels), len(set(labels)), kernel.name)

    def test_choices(self):
        for text, expected in {
            "B1 H16 S16384 D128 causal": ("c128_n128", 8),
            "bf16 B32 H32 S512 D64 causal": ("bc64_n64w4s", 256),
            "B2 H8 S512 D64 causal": ("c64_n128w1", 16),
            "B8 H16 S2048 D128 full": ("f128_n80w3", 32),
        }.items():
            kernel, section = prototype.choice(parse(text))
            self.assertEqual((kernel.name, section), expected)
            self.assertEqual(parse(text).batch * parse(text).heads % section, 0)


if __name__ == "__main__":
    unittest.main()
