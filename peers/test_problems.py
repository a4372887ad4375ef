"""Problems: their text, their size, the grids."""

import unittest

from problems import GRIDS, Problem, parse


class Problems(unittest.TestCase):
    def test_texts_are_those_of_veriflash(self):
        for text in (
            "f16 B2 H8 S512 D64 causal",
            "bf16 B4 H32/8 S4096 D128 full",
            "f16 B1 H8 Sq1 Sk8192 D64 full",
            "f16 B2 H10 S2048 D192/128 causal",
            "f16 B1 H8 S512 D64 window64/0",
            "f16 B3 H8/2 S97,33,4 D64 causal",
        ):
            self.assertEqual(str(parse(text)), text)
        self.assertEqual(parse("B1 H4/2 Sq3 Sk5 D64"), Problem(1, 4, 2, 3, 5, 64, "full", "f16"))
        self.assertEqual(parse("H4 S3,5 D64"), Problem(2, 4, 4, 5, 5, 64, lengths=(3, 5)))
        for text in ("", "B2 H8 S512", "f32 B2 H8 S512 D64 full", "B2 H8 S512 D64 window64", "B2 H8 S512 D64 causal "):
            with self.assertRaisesRegex(ValueError, "cannot read problem", msg=text):
                parse(text)

    def test_columns_of_values_are_counted_for_themselves(self):
        square, narrow = parse("B2 H10 S8 D192 causal"), parse("B2 H10 S8 D192/128 causal")
        self.assertEqual(square.flops(), 4 * 2 * 10 * 8 * 8 * 192 // 2)
        self.assertEqual(narrow.flops(), 2 * 2 * 10 * 8 * 8 * (192 + 128) // 2)
        self.assertEqual((square.bytes(), narrow.bytes()), (2 * 4 * 2 * 10 * 8 * 192, 2 * 2 * 2 * 10 * 8 * (192 + 128)))
        shapes = narrow.shapes("bhsd")
        self.assertEqual([shapes[role][-1] for role in "qkvo"], [192, 192, 128, 128])

    def test_mixed_lengths_lie_one_behind_the_other(self):
        mixed = parse("H8/2 S97,33 D64")
        self.assertEqual(mixed.flops(), sum(mixed.one(length).flops() for length in (97, 33)))
        self.assertEqual(mixed.bytes(), sum(mixed.one(length).bytes() for length in (97, 33)))
        shapes = mixed.shapes("bshd")
        self.assertEqual([shapes[role] for role in ("q", "k", "o", "lse")], [(130, 8, 64), (130, 2, 64), (130, 8, 64), (8, 130)])

    def test_a_window_shows_pairs(self):
        self.assertEqual(parse("B2 H1 S4 D64 window1/0").pairs(), 2 * (1 + 2 + 2 + 2))
        self.assertEqual(parse("B1 H1 Sq2 Sk4 D64 window0/9").pairs(), 2 + 1)

    def test_grids(self):
        count = {name: len(set(grid())) for name, grid in GRIDS.items()}
        self.assertEqual(count, {"small": 4, "main": 24, "bf16": 24, "gqa": 8, "heads": 16, "decode": 20, "odd": 24, "mixed": 4, "adverse": 8})
        self.assertEqual({problem.dtype for problem in GRIDS["bf16"]()}, {"bf16"})
        self.assertEqual({problem.batch * problem.queries for name in ("main", "bf16", "gqa") for problem in GRIDS[name]()}, {16384})

    def test_no_causal_mask_has_two_readings(self):
        for grid in GRIDS.values():
            for problem in grid():
                self.assertTrue(problem.queries == problem.keys or not problem.causal, problem)


if __name__ == "__main__":
    unittest.main()
