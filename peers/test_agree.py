"""Two ways of measuring, compared."""

import io
import json
import pathlib
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import agree

KERNEL = "attention_config9_f16_B2_H8_S512_D64_full"
PROBLEM = "f16 B2 H8 S512 D64 full"


def point(ratio, rounds=12, missing=()):
    def duel(ratio):
        return {"ratio": ratio, "low": ratio * 0.99, "high": ratio * 1.01, "rounds": rounds}

    readings = [{"seconds": 1e-5, "megahertz": clock} for clock in (1800.0, 1800.0, 1870.0)]
    return {
        "problem": PROBLEM,
        "subject": {"kernel": KERNEL},
        "contenders": [{"name": name} for name in ("candidate", "candidate again", "fa2")],
        "missing": [{"name": name, "why": "its process ended"} for name in missing],
        "rounds": [{"readings": readings}] * rounds,
        "duels": [{"peer": "fa2", "time": duel(ratio), "cycles": duel(ratio * 1.04)}],
    }


def rows(rounds=12, name=f"kernels/{KERNEL}.ptx"):
    def row(name, ours, us, clock):
        us = [us * (1 + number % 3 / 1000) for number in range(rounds)]
        return {"problem": PROBLEM, "name": name, "ours": ours, "us": us, "megahertz": [clock] * rounds}

    return [
        row(name, True, 10.0, 1850.0), row("kernels/other.ptx", True, 5.0, 1850.0), row("fa2", False, 17.0, 1850.0),
        {"problem": PROBLEM, "name": "cudnn", "ours": False, "error": "refused"},
    ]


class Agreement(unittest.TestCase):
    def run_on(self, points, rows, *options):
        """The exit code, and the lines."""
        with tempfile.TemporaryDirectory() as name:
            bench, beside = pathlib.Path(name) / "bench.json", pathlib.Path(name) / "rows.jsonl"
            bench.write_text(json.dumps({"points": points, "failures": []}))
            beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
                with mock.patch("sys.argv", ["agree.py", str(bench), str(beside), *options]):
                    code = agree.main()
        return code, out.getvalue().splitlines()

    def test_intervals_that_overlap_agree(self):
        code, lines = self.run_on([point(1.69)], rows())
        self.assertEqual((code, lines[-1]), (0, "agree: 1 of 1"))
        self.assertEqual(
            lines[0],
            f"{PROBLEM}, fa2: bench 1.690 [1.673, 1.707] at 1800 and 1870 MHz, in cycles 1.758; "
            "side by side 1.700 [1.700, 1.700] at 1850 and 1850 MHz, in cycles 1.700: overlap",
        )

    def test_intervals_that_do_not_overlap_do_not(self):
        code, lines = self.run_on([point(1.60)], rows())
        self.assertEqual((code, lines[-1]), (1, "agree: 0 of 1"))
        self.assertTrue(lines[0].endswith(": APART, +6.2%"), lines[0])

    def test_what_one_of_them_lacks_does_not_agree(self):
        code, lines = self.run_on([point(1.70, missing=["fa4"])], rows(), "--peers", "fa2,cudnn,fa4")
        self.assertEqual((code, lines[-1]), (1, "agree: 1 of 3"))
        self.assertEqual([line.split(": ")[1] for line in lines[1:3]], ["not measured by bench"] * 2)
        code, lines = self.run_on([point(1.70, missing=["fa4"])], rows())
        self.assertEqual((code, lines[-1]), (1, "agree: 1 of 2"))

    def test_fewer_rounds_and_another_kernel_are_refused(self):
        code, lines = self.run_on([point(1.70, rounds=18)], rows(rounds=12))
        self.assertEqual((code, "expected --rounds 18 or more" in lines[0]), (2, True), lines)
        code, lines = self.run_on([point(1.70)], rows(name="kernels/attention_config2.ptx"))
        self.assertEqual((code, f"no row of {KERNEL}" in lines[0]), (2, True), lines)
        code, lines = self.run_on([], rows())
        self.assertEqual(code, 2)


if __name__ == "__main__":
    unittest.main()
