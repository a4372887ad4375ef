"""What a run does around its measurements, with a GPU that is not there."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

import side_by_side
from test_recipe import RECIPE, printed

TIMES = {"fa2": 20.0, "cudnn": 15.0, "fa4": 16.0, "prototype": 11.0}


class Contest:
    """Stands in for the measured one: every contestant takes the same time in every round."""

    seen = []

    def __init__(self, problem, kind, driver, warm_up):
        self.problem, self.kind, self.rows, self.contestants = problem, kind, {}, []

    def enter(self, name, ours, us):
        figures = {"us": [us] * 9, "megahertz": [1900.0] * 9, "median_us": us, "tflops": 1.0}
        self.rows[name] = {"problem": str(self.problem), "inputs": self.kind, "name": name, "ours": ours, **figures}
        self.contestants.append(name)
        self.seen.append((self.kind, name))

    def ours(self, kernel, launches, time):
        self.enter(kernel.name, True, 10.0 if self.kind == "normal" else 12.5)

    def peer(self, peer):
        self.enter(peer, False, TIMES[peer])

    def prototype(self, kernel):
        self.enter("prototype", False, TIMES["prototype"])

    def measure(self, rounds, shuffle):
        pass


class Runs(unittest.TestCase):
    def run_it(self, *arguments, peers=("fa2", "cudnn", "fa4")):
        Contest.seen = []
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
            folder = pathlib.Path(name)
            (folder / "config12.ptx").write_text(printed(RECIPE))
            (folder / "config12_full.ptx").write_text(printed(RECIPE.replace("causal-bottom-right", "none")))
            places = ["--kernels", name, "--prototype", str(folder / "config12.ptx"), "--out", str(folder / "rows.jsonl")]
            enter = stack.enter_context
            enter(mock.patch.object(side_by_side, "gpu", lambda: None))
            enter(mock.patch.object(side_by_side, "installed", lambda names, problem: list(peers)))
            enter(mock.patch.dict(sys.modules, {"contest": types.SimpleNamespace(Contest=Contest)}))
            enter(mock.patch.object(sys, "argv", ["side_by_side.py", *places, *arguments]))
            out = enter(contextlib.redirect_stdout(io.StringIO()))
            code = side_by_side.main()
            return code, out.getvalue(), [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]

    def test_all_contestants_of_a_problem_get_the_same_inputs(self):
        code, out, rows = self.run_it("--grid", "small", "--inputs", "normal,huge")
        self.assertEqual(code, 0)
        self.assertEqual([row["inputs"] for row in rows], (["normal"] * 4 + ["huge"] * 4) + (["normal"] * 5 + ["huge"] * 5))
        self.assertIn("inputs: queries and keys 16 times as large", out)
        self.assertIn("least 0.800 (huge) of ", out)
        self.assertIn("geomean 1.500 over cudnn", out)
        self.assertIn("geomean 1.100 over prototype", out)

    def test_the_prototype_takes_part_where_it_has_a_kernel(self):
        _, _, rows = self.run_it("--grid", "small")
        self.assertEqual([row["problem"] for row in rows if row["name"] == "prototype"], ["f16 B2 H8 S512 D64 causal"])

    def test_check_fails_where_a_bar_is_missed(self):
        code, out, _ = self.run_it("--grid", "small", "--check")
        self.assertEqual(code, side_by_side.FAILED)
        self.assertIn("holds  the standard problem: mean 1.500, least 1.500", out)
        self.assertIn("MISSED one block: nothing measured of 1 points", out)

    def test_check_passes_where_all_hold(self):
        with mock.patch.dict(side_by_side.GRIDS, {"small": lambda: side_by_side.bars.each(["B2 H8 S512 D64"])}):
            self.assertEqual(self.run_it("--grid", "small", "--check")[0], 0)
            with mock.patch.dict(TIMES, {"fa4": 14.0}):
                self.assertEqual(self.run_it("--grid", "small", "--check")[0], side_by_side.FAILED)
                self.assertEqual(self.run_it("--grid", "small")[0], 0)

    def test_hard_inputs_are_for_their_grid_where_it_takes_part(self):
        [standard, *_], [hard, *_] = side_by_side.GRIDS["small"](), side_by_side.GRIDS["adverse"]()
        chosen = types.SimpleNamespace(grid=["small", "adverse"], inputs=["normal", "hot"])
        expected = [(standard, "normal"), (hard, "normal"), (hard, "hot")]
        self.assertEqual(side_by_side.contests([standard, hard], chosen), expected)
        chosen.grid = ["small"]
        self.assertEqual(side_by_side.contests([standard], chosen), [(standard, "normal"), (standard, "hot")])

    def test_rounds_of_bars(self):
        for arguments, rounds in ((["--check"], 30), ([], 12), (["--check", "--rounds", "9"], 9)):
            with mock.patch.object(sys, "argv", ["side_by_side.py", *arguments]):
                self.assertEqual(side_by_side.options().rounds, rounds)


class Peers(unittest.TestCase):
    def test_one_that_refuses_a_problem_stays_and_one_that_is_not_installed_goes(self):
        def missing(problem):
            raise ImportError("no flash_attn")

        def refuses(problem):
            raise ValueError("head dimension")

        peers = {name: types.SimpleNamespace(make=make) for name, make in (("fa2", refuses), ("fa4", missing), ("cudnn", str))}
        others = types.SimpleNamespace(PEERS=peers)
        with mock.patch.dict(sys.modules, {"others": others}), contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(side_by_side.installed(["fa2", "fa4", "cudnn"], None), [peers["fa2"], peers["cudnn"]])
        self.assertEqual(out.getvalue(), "skipped peer fa4: ImportError: no flash_attn\n")


if __name__ == "__main__":
    unittest.main()
