"""Inputs and the oracle, where torch is installed; no GPU."""

import unittest

from problems import KINDS, parse

try:
    import torch

    import inputs
    import parity
except ImportError as error:
    torch, MISSING = None, str(error)
else:
    MISSING = ""

MIXED = parse("H4/2 S97,33,5 D64/32 causal")


@unittest.skipIf(MISSING, f"torch: {MISSING}")
class Inputs(unittest.TestCase):
    def draw(self, problem, kind):
        [tensors] = inputs.draw(problem, 1, kind, device="cpu")
        return tensors

    def test_kinds_are_what_they_are_called(self):
        normal = self.draw(MIXED, "normal")
        large = {kind: (self.draw(MIXED, kind)[1] / normal[1]).abs() for kind in KINDS if kind != "hot"}
        for kind, most in (("normal", 1), ("ramp1.2", 10**1.2), ("ramp2.2", 10**2.2), ("huge", 16)):
            for last in (96, 129, 134):  # of each sequence
                torch.testing.assert_close(large[kind][last], torch.full_like(large[kind][last], most), rtol=1e-2, atol=0)
        self.assertEqual(large["ramp2.2"][97].median(), 1)  # the second one begins anew
        q, k, v = self.draw(MIXED, "hot")
        self.assertEqual((k == 16).all(dim=(1, 2)).nonzero().flatten().tolist(), [64, 97 + 22, 130 + 3])
        last = parity.reference(MIXED, [q, k, v]).exact["o"][:, [96, 129, 134]]
        torch.testing.assert_close(last, v[[64, 119, 133]].double().transpose(0, 1).repeat_interleave(2, dim=0), rtol=1e-3, atol=1e-3)

    def test_every_kind_is_finite_and_plain_attention_is_right_on_it(self):
        for problem in (MIXED, parse("bf16 B1 H2 Sq3 Sk300 D64"), parse("B1 H2 S200 D64 window50/0")):
            for kind in KINDS:
                tensors = self.draw(problem, kind)
                reference = parity.reference(problem, tensors)
                found = {"o": reference.plain["o"].transpose(-3, -2), "lse": reference.plain["lse"]}
                self.assertLessEqual(parity.judge(reference, found, "bshd"), 1, f"{problem} {kind}")
                found["o"] = found["o"] * 1.1
                self.assertGreater(parity.judge(reference, found, "bshd"), 1, f"{problem} {kind}")

    def test_each_of_mixed_sequences_is_a_problem_of_its_own(self):
        tensors = self.draw(MIXED, "normal")
        together, begin = parity.reference(MIXED, tensors).exact, 0
        for length in MIXED.lengths:
            alone = parity.reference(MIXED.one(length), [tensor[None, begin : begin + length] for tensor in tensors]).exact
            for role in ("o", "lse"):
                self.assertTrue(torch.equal(together[role][:, begin : begin + length], alone[role][0]))
            begin += length

    def test_a_window_hides_what_it_says(self):
        for text in ("B1 H1 S9 D64 window2/0", "B1 H1 Sq5 Sk9 D64 window2/1", "B1 H1 S9 D64 window0/9"):
            seen = parity.seen(parse(text), "cpu")
            before, behind = parse(text).window
            places = [(row, key) for row in range(len(seen)) for key in range(9) if -before <= key - row - 9 + len(seen) <= behind]
            self.assertEqual(seen.nonzero().tolist(), [list(place) for place in places])
            self.assertEqual(parse(text).pairs(), seen.sum())


if __name__ == "__main__":
    unittest.main()
