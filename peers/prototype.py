#!/usr/bin/env python3
"""Writes the prototype's kernels, with a recipe for each point: `python3 peers/prototype.py OUT`.

`side_by_side.py --prototype OUT` measures them beside ours. The prototype is generated PTX without features, for D64 and D128 laid
out (batch, heads, sequence, dim). `corpus/hopper/generate.py` prints it.
"""

import gzip
import pathlib
import sys

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "corpus"
sys.path.insert(0, str(CORPUS))

from hopper_cases import BY_NAME, attention_case, words  # noqa: E402  (of the corpus)
from problems import bf16, main, small  # noqa: E402

PROCESSORS = 132  # of an H200: a block on each
SECTION_BYTES = 32 << 20  # of keys and values, in the causal order of tiles, where the table says nothing
# What was fastest of its kernels in its last run, with the heads of a section: by D, mask and S.
FASTEST = {
    (128, "full"): {512: "f128_n128v", 1024: "f128_n128v", 2048: "f128_n80w3", 4096: "f128_n80w3", 8192: "f128_n80w3",
                    16384: "f128_n128"},
    (64, "full"): {512: "f64_n64w4v", 1024: "f64_n64w4v", 2048: "f64_n64w4", 4096: "f64_n64w4", 8192: "f64_n64w4",
                   16384: "f64_n64w4"},
    (128, "causal"): {512: "c128_n64s", 1024: "c128_n128", 2048: "c128_n128", 4096: "c128_n128", 8192: "c128_n128",
                      16384: "c128_n128"},
    (64, "causal"): {512: "c64_n64w4s", 1024: "c64_n64w4s", 2048: "c64_n64w4s", 4096: "c64_n64w4s", 8192: "c64_n64w4s",
                     16384: "c64_n64w4"},
}  # fmt: skip
SECTIONS = {
    128: {512: 32, 1024: 32, 2048: 32, 4096: 32, 8192: 16, 16384: 8},
    64: {512: 256, 1024: 128, 2048: 128, 4096: 64, 8192: 32, 16384: 32},
}
STANDARD = {"full": "f64_n128w1", "causal": "c64_n128w1"}
OF_BF16 = {(128, "full"): "b128_n128", (64, "full"): "b64_n64w4", (128, "causal"): "bc128_n128", (64, "causal"): "bc64_n64w4s"}


def choice(problem):
    """The kernel for a problem, and how many heads its sections have."""
    kind, length, heads = (problem.dim, problem.mask), problem.queries, problem.batch * problem.heads
    if problem.batch * length < 16384:
        section = min(heads, SECTION_BYTES // (4 * length * problem.dim))
        return BY_NAME[STANDARD[problem.mask]], section
    name = OF_BF16[kind] if problem.dtype == "bf16" else FASTEST[kind][length]
    return BY_NAME[name], SECTIONS[problem.dim][length]


def write(folder):
    """The recipes and the modules that they name; gives back the problems."""
    problems, written = [*main(), *bf16(), *(problem for problem in small() if problem.batch == 2)], set()
    for problem in problems:
        kernel, section = choice(problem)
        if kernel.name not in written:  # a kernel that is printed twice has its body twice
            (folder / f"{kernel.name}.ptx.gz").write_bytes(gzip.compress(kernel.module().encode(), mtime=0))
            written.add(kernel.name)
        tiles = -(-problem.queries // kernel.rows) * problem.batch * problem.heads
        name = str(problem).replace(" ", "_")
        case = attention_case(
            kernel, name, words(kernel), problem.heads, min(PROCESSORS, tiles), 1.0, problem.queries, problem.batch, section
        )
        (folder / f"{name}.toml").write_text(case.text(case.shared, f'ptx = "{kernel.name}.ptx.gz"'))
    return problems


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    print(f"{len(write(out))} recipes in {out}")
