"""What needs no GPU: expressions, recipes, arguments, which problem a kernel solves."""

import ctypes
import pathlib
import re
import tempfile
import unittest

import arguments
import driver
import recipe
import tensor_map
from expression import ExpressionError, evaluate
from problems import GRIDS, Problem, parse

RECIPE = """\
[let]
b = 2
h = 8
hk = 8
sq = 512
sk = 512
d = 64
[buffer.q]
type = "f16"
shape = ["b", "h", "sq", "d"]
init = "normal(1.0)"
[buffer.k]
type = "f16"
shape = ["b", "hk", "max(sk,1)", "d"]
init = "normal(1.0)"
[buffer.v]
type = "f16"
shape = ["b", "hk", "max(sk,1)", "d"]
init = "normal(1.0)"
[buffer.o]
type = "f16"
shape = ["b", "h", "sq", "d"]
[buffer.lse]
type = "f32"
shape = ["b", "h", "sq"]
[buffer.counters]
type = "u32"
shape = [2]
init = "zeros"
[[launch]]
grid = ["ceil_div(sq,32)", "h", "b"]
block = [128, 1, 1]
cluster = [2, 1, 1]
shared = 46080
args = [
  { buffer = "q", offset = "2*d" },
  { u64 = "h*sq*d", name = "q_batch_stride" },
  { u32 = "d" },
  { map = "k", dims = ["d", "sk", "hk*b"], strides = ["2*d", "2*d*sk"], box = [64, 128, 1], swizzle = "128B" },
  { buffer = "v" }, { buffer = "o" }, { buffer = "lse" }, { buffer = "counters" },
  { null = true },
  { f32 = 0.18033688011112042, name = "scale_log2" },
]
[attention]
q = "q"
k = "k"
v = "v"
o = "o"
lse = "lse"
scale = { arg = "scale_log2", factor = "log2e" }
layout = "bhsd"
mask = "causal-bottom-right"
lengths = { q = "sq", k = "sk", batch = "b", heads = "h", kv_heads = "hk", dim = "d" }
"""
MODULE = ".version 8.0\n.target sm_90a\n.visible .entry attention_forward(.param .u64 q)\n{ ret; }\n"
# Two launches: what the first leaves in scratch memory, the second makes a result of.
PARTS = '[buffer.parts]\ntype = "f32"\nshape = ["b", "sq", "h", "splits", "d"]\ninit = "poison"\n'
SPLIT = (
    RECIPE.replace("d = 64\n", "d = 64\nsplits = 3\n")
    .replace("[[launch]]\n", PARTS + '[[launch]]\nentry = "attention_forward"\n')
    .replace('grid = ["ceil_div(sq,32)"', 'grid = ["ceil_div(sq,32)*splits"')
    .replace('{ buffer = "o" }, { buffer = "lse" }', '{ buffer = "parts" }, { u32 = "splits" }')
    .replace(
        "[attention]",
        '[[launch]]\nentry = "attention_combine"\ngrid = ["sq", "h", "b"]\nblock = [32, 1, 1]\n'
        'args = [{ buffer = "o" }, { buffer = "lse" }, { buffer = "parts" }, { u32 = "splits" }]\n[attention]',
    )
)
CUMULATIVE = "".join(f'[buffer.cu_{x}]\ntype = "u32"\nshape = [4]\ninit = [0, 512, 812, 820]\n' for x in "qk")
PACKED = (
    re.sub(r'"b", "(h|hk)", "(?:sq|max\(sk,1\))", "d"', r'820, "\1", "d"', RECIPE)
    .replace('shape = ["b", "h", "sq"]', 'shape = ["h", 820]')
    .replace("b = 2", "b = 3")
    .replace("[[launch]]\n", CUMULATIVE + "[[launch]]\n")
    .replace('"bhsd"', '"bshd"\ncumulative = { q = "cu_q", k = "cu_k" }')
)
STANDARD = Problem(batch=2, heads=8, kv_heads=8, queries=512, keys=512, dim=64, mask="causal", dtype="f16")


def printed(text):
    """A module with its recipe in its head, as `veriflash ptx` prints it."""
    return "".join(f"//@ {line}\n" for line in text.splitlines()) + MODULE


def kernel(text=RECIPE):
    return recipe.parse(recipe.header(printed(text)), MODULE, "ours")


class Expressions(unittest.TestCase):
    def test_values(self):
        names = {"sq": 100, "sk": 7, "_x1": 3}
        cases = {
            "ceil_div(sq,32)": 4, "ceil_div(-7, 2)": -3, "max(sk,1)": 7, "min(sq, sk) * 2": 14, "2+3*4": 14,
            "(2 + 3)*4": 20, "sq/sk%5": 4, "-7/2": -3, "-7%2": -1, "10-4-3": 3, "--2": 2, "1_000": 1000, " _x1 ": 3,
        }
        for text, value in cases.items():
            self.assertEqual(evaluate(text, names), value, text)
        self.assertEqual(evaluate(5, {}), 5)

    def test_what_has_no_value(self):
        for text in ("", "1+", "(1", "1)", "n", "1/0", "1%0", "ceil_div(1,0)", "pow(2,3)", "min(1)", "2 3", "1.5", 0.5, True):
            with self.assertRaises(ExpressionError, msg=text):
                evaluate(text, {})


class Recipes(unittest.TestCase):
    def test_says_how_to_launch(self):
        [launch] = kernel().launches
        self.assertEqual((launch.entry, launch.grid, launch.block), ("attention_forward", (16, 8, 2), (128, 1, 1)))
        self.assertEqual((launch.cluster, launch.shared, launch.repeat, launch.overlap), ((2, 1, 1), 46080, 1, False))

    def test_launches_follow_each_other(self):
        split = kernel(SPLIT)
        self.assertEqual([launch.entry for launch in split.launches], ["attention_forward", "attention_combine"])
        self.assertEqual([launch.grid for launch in split.launches], [(48, 8, 2), (512, 8, 2)])
        self.assertEqual([launch.shared for launch in split.launches], [46080, 0])
        self.assertEqual(split.problem, STANDARD)
        self.assertEqual(list(split.scratch()), ["counters", "parts"])
        self.assertEqual((split.buffers["parts"].shape, split.buffers["parts"].init), ((2, 512, 8, 3, 64), "poison"))

    def test_a_launch_of_several_entries_names_its_own(self):
        text, module = SPLIT.replace('entry = "attention_combine"\n', ""), MODULE + MODULE.replace("_forward", "_combine")
        with self.assertRaisesRegex(recipe.RecipeError, "names no entry and the module has 2"):
            recipe.parse(recipe.header(printed(text)), module, "ours")

    def test_says_which_problem(self):
        self.assertEqual(kernel().problem, STANDARD)
        self.assertEqual(kernel().layout, "bhsd")
        self.assertEqual(list(kernel().scratch()), ["counters"])

    def test_other_masks_types_and_lengths_are_other_problems(self):
        full = kernel(RECIPE.replace("causal-bottom-right", "none")).problem
        self.assertEqual(str(full), "f16 B2 H8 S512 D64 full")
        grouped = kernel(RECIPE.replace('"f16"', '"bf16"').replace("hk = 8", "hk = 2")).problem
        self.assertEqual(str(grouped), "bf16 B2 H8/2 S512 D64 causal")
        self.assertNotIn(grouped, GRIDS["small"]())

    def test_a_window_counts_the_pairs_that_it_shows(self):
        window = kernel(RECIPE.replace("causal-bottom-right", "window(64,0)")).problem
        self.assertEqual((str(window), window.window), ("f16 B2 H8 S512 D64 window64/0", (64, 0)))
        self.assertEqual(window.pairs(), 2 * sum(min(row, 64) + 1 for row in range(512)))

    def test_sequences_of_mixed_lengths(self):
        mixed = kernel(PACKED)
        self.assertEqual((mixed.problem, mixed.problem.lengths), (parse("H8 S512,300,8 D64 causal"), (512, 300, 8)))
        self.assertEqual(mixed.buffers["cu_q"].init, [0, 512, 812, 820])
        self.assertEqual(mixed.problem.shapes("bshd")["lse"], (8, 820))
        with self.assertRaisesRegex(recipe.RecipeError, "as many of each"):
            kernel(PACKED.replace("[0, 512, 812, 820]", "[0, 512, 811, 820]", 1))
        with self.assertRaisesRegex(recipe.RecipeError, "q has shape"):
            kernel(PACKED.replace("812, 820]", "812, 819]"))

    def test_values_may_have_columns_of_their_own(self):
        text = RECIPE.replace("d = 64\n", "d = 64\ndv = 32\n").replace('dim = "d" }', 'dim = "d", value_dim = "dv" }')
        with self.assertRaisesRegex(recipe.RecipeError, "v has shape"):
            kernel(text)
        text = text.replace('"max(sk,1)", "d"]\ninit = "normal(1.0)"\n[buffer.o]', '"max(sk,1)", "dv"]\n[buffer.o]')
        text = text.replace('shape = ["b", "h", "sq", "d"]\n[buffer.lse]', 'shape = ["b", "h", "sq", "dv"]\n[buffer.lse]')
        self.assertEqual(str(kernel(text).problem), "f16 B2 H8 S512 D64/32 causal")

    def test_refuses_what_peers_do_not_compute(self):
        changes = {
            "mask prefix": ("causal-bottom-right", "prefix"),
            "scale": ("0.18033688011112042", "0.2"),
            "as many of each": ("sk = 512", "sk = 1024"),
            "layout": ('"bhsd"', '"sbhd"'),
            "lse has shape": ('type = "f32"\nshape = ["b", "h", "sq"]', 'type = "f32"\nshape = ["b", "h"]'),
            "counters": ('"zeros"', '"ramp"'),
            "expected a buffer": ("{ null = true }", '{ bytes = "x.bin" }'),
            r"no \[attention\]": ("[attention]", "[other]"),
        }
        for message, (old, new) in changes.items():
            with self.assertRaisesRegex(ValueError, message):
                kernel(RECIPE.replace(old, new))

    def test_a_module_without_a_recipe_is_refused(self):
        with self.assertRaisesRegex(recipe.RecipeError, "no recipe"):
            recipe.header(MODULE)

    def test_the_target_is_replaced_where_the_recipe_says_so(self):
        self.assertIn(".target sm_90\n", kernel('target = "sm_90"\n' + RECIPE).ptx)


class Folders(unittest.TestCase):
    def test_finds_headers_and_files_beside_modules_and_names_what_it_cannot_use(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "kernels"
            (folder / "small").mkdir(parents=True)
            (folder / "small" / "a.ptx").write_text(printed(RECIPE))
            (folder / "b.ptx").write_text(MODULE)
            (folder / "b.toml").write_text(RECIPE)
            (folder / "c.ptx").write_text(MODULE)
            (folder / "d.ptx").write_text(printed(RECIPE.replace("[buffer.v]", "[buffer.w]")))
            found = recipe.find([folder, folder / "b.toml"])
        usable = [kernel.name for kernel, error in found if error is None]
        self.assertEqual(usable, [str(folder / "b.toml"), str(folder / "small" / "a.ptx")])
        self.assertEqual({path.name: error for path, error in found if error}, {
            "c.ptx": "no recipe: expected lines that begin with `//@ ` at its head", "d.ptx": "no 'v' in its recipe"})
        self.assertEqual({kernel.problem for kernel, error in found if error is None}, {STANDARD})

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(recipe.RecipeError, "no such file"):
            recipe.find(["/no/such/folder"])


class Arguments(unittest.TestCase):
    ADDRESSES = {"q": 0x1000, "k": 0x2000, "v": 0x3000, "o": 0x4000, "lse": 0x5000, "counters": 0x6000}

    def pack(self, text=RECIPE):
        maps = []

        def encode_map(described, address):
            maps.append((described, address))
            return tensor_map.aligned_object()

        ours = kernel(text)
        return arguments.pack(ours.launches[0], ours, self.ADDRESSES, encode_map), maps

    def test_pointers_lead_to_values_of_the_parameters_sizes(self):
        packed, _ = self.pack()
        sizes = [ctypes.sizeof(value) for value in packed.values]
        self.assertEqual(sizes, [8, 8, 4, 128, 8, 8, 8, 8, 8, 4])
        self.assertEqual(len(packed.pointers), 10)

        def read(index, ctype):
            return ctype.from_address(packed.pointers[index]).value

        self.assertEqual(read(0, ctypes.c_uint64), 0x1000 + 128)
        self.assertEqual(read(1, ctypes.c_uint64), 8 * 512 * 64)
        self.assertEqual(read(2, ctypes.c_uint32), 64)
        self.assertEqual([read(index, ctypes.c_uint64) for index in (4, 5, 6, 7, 8)], [0x3000, 0x4000, 0x5000, 0x6000, 0])
        self.assertAlmostEqual(read(9, ctypes.c_float), 0.18033688, places=7)

    def test_both_launches_get_the_same_scratch_memory(self):
        split = kernel(SPLIT)
        addresses = {**self.ADDRESSES, "parts": 0x7000}
        packed = [arguments.pack(launch, split, addresses, lambda *_: tensor_map.aligned_object()) for launch in split.launches]
        values = [[getattr(value, "value", None) for value in one.values] for one in packed]
        self.assertEqual((values[0][5:7], values[1]), ([0x7000, 3], [0x4000, 0x5000, 0x7000, 3]))

    def test_a_map_is_encoded_for_its_buffer(self):
        packed, [(described, address)] = self.pack()
        self.assertEqual(address, 0x2000)
        self.assertEqual((described.dims, described.strides, described.box), ((64, 512, 16), (128, 65536), (64, 128, 1)))
        self.assertEqual((described.element_strides, described.type, described.swizzle), ((1, 1, 1), 6, 3))
        self.assertEqual(packed.pointers[3] % tensor_map.ALIGNMENT, 0)

    def test_numbers_that_do_not_fit(self):
        with self.assertRaisesRegex(ValueError, "does not fit in u32"):
            self.pack(RECIPE.replace('{ u32 = "d" }', '{ u32 = "d-65" }'))

    def test_words_for_a_dry_run(self):
        ours = kernel()
        words = [arguments.describe(arg, ours) for arg in ours.launches[0].args]
        self.assertEqual(words[1], "q_batch_stride = u64 262144")
        self.assertEqual(words[3], "map of k [64, 512, 16] in boxes of [64, 128, 1]")


class DriverStructures(unittest.TestCase):
    def test_sizes_and_offsets_are_those_of_the_header(self):
        self.assertEqual((ctypes.sizeof(driver.LaunchAttribute), driver.LaunchAttribute.value.offset), (72, 8))
        self.assertEqual(ctypes.sizeof(driver.LaunchConfig), 56)
        self.assertEqual(driver.LaunchConfig.stream.offset, 32)

    def test_a_cluster_is_a_launch_attribute(self):
        [attribute] = driver.launch_attributes(kernel().launches[0])
        self.assertEqual((attribute.id, list(attribute.value)[:4]), (4, [2, 1, 1, 0]))


if __name__ == "__main__":
    unittest.main()
