"""Attention problems, and the named grids of them."""

import dataclasses
import re

TOKENS = 16384  # in each problem of the main grid: enough to fill any GPU
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
HEADS = {64: 32, 128: 16}  # by head dimension: a model 2048 wide
MASKS = ("full", "causal")
TEXT = re.compile(
    r"(?:(?P<dtype>f16|bf16) )?B(?P<batch>\d+) H(?P<heads>\d+)(?:/(?P<kv_heads>\d+))? "
    r"(?:S(?P<length>\d+)|Sq(?P<queries>\d+) Sk(?P<keys>\d+)) D(?P<dim>\d+)(?:/(?P<value_dim>\d+))?(?: (?P<mask>full|causal))?"
)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A forward pass with the scale 1/sqrt(dim)."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    mask: str = "full"  # or "causal", with as many keys as queries
    dtype: str = "f16"  # or "bf16"
    value_dim: int = 0  # columns of V and O: as many as those of Q and K unless given

    def __post_init__(self):
        object.__setattr__(self, "value_dim", self.value_dim or self.dim)

    def __str__(self):
        heads = f"H{self.heads}" if self.heads == self.kv_heads else f"H{self.heads}/{self.kv_heads}"
        length = f"S{self.queries}" if self.queries == self.keys else f"Sq{self.queries} Sk{self.keys}"
        dim = f"D{self.dim}" if self.dim == self.value_dim else f"D{self.dim}/{self.value_dim}"
        return f"{self.dtype} B{self.batch} {heads} {length} {dim} {self.mask}"

    @property
    def causal(self):
        return self.mask == "causal"

    def flops(self):
        """The usual count: products of 2·queries·keys·columns operations for each head, half of them when causal."""
        columns = self.dim + self.value_dim
        return 2 * self.batch * self.heads * self.queries * self.keys * columns // (2 if self.causal else 1)

    def bytes(self):
        """Q, K, V and O, once each."""
        return 2 * (self.dim + self.value_dim) * self.batch * (self.queries * self.heads + self.keys * self.kv_heads)

    def shapes(self, layout):
        """The shapes of the contract's tensors; the log-sum-exp lies the same way in both layouts."""

        def tensor(heads, length, dim):
            return (self.batch, heads, length, dim) if layout == "bhsd" else (self.batch, length, heads, dim)

        return {
            "q": tensor(self.heads, self.queries, self.dim),
            "k": tensor(self.kv_heads, self.keys, self.dim),
            "v": tensor(self.kv_heads, self.keys, self.value_dim),
            "o": tensor(self.heads, self.queries, self.value_dim),
            "lse": (self.batch, self.heads, self.queries),
        }


def parse(text):
    """The problem that veriflash writes so: `B2 H8/2 S512 D192/128 causal`, `bf16 B1 H8 Sq1 Sk4096 D64`."""
    found = TEXT.fullmatch(text)
    if not found:
        raise ValueError(f"cannot read problem {text!r}: expected one such as 'f16 B2 H8/2 S512 D64 causal'")
    words = found.groupdict()
    number = {name: int(word) for name, word in words.items() if word and word.isdigit()}
    return Problem(
        batch=number["batch"],
        heads=number["heads"],
        kv_heads=number.get("kv_heads", number["heads"]),
        queries=number.get("length") or number["queries"],
        keys=number.get("length") or number["keys"],
        dim=number["dim"],
        mask=words["mask"] or "full",
        dtype=words["dtype"] or "f16",
        value_dim=number.get("value_dim", 0),
    )


def each(texts, masks=MASKS):
    """Every problem with every mask."""
    return [parse(f"{text} {mask}") for text in texts for mask in masks]


def small():
    """The standard problem, bound by launch and latency; few heads of a long sequence; one block."""
    return each(["B2 H8 S512 D64"]) + [parse("B1 H8 S4096 D128 causal"), parse("B1 H1 S128 D64 full")]


def main():
    """16,384 tokens, cut into ever longer sequences."""
    return each(f"B{TOKENS // length} H{heads} S{length} D{dim}" for dim, heads in HEADS.items() for length in LENGTHS)


def bf16():
    """The main grid in the other type."""
    return [dataclasses.replace(problem, dtype="bf16") for problem in main()]


def gqa():
    """Four query heads for each head of keys."""
    return each(f"{dtype} B{TOKENS // length} H32/8 S{length} D128" for dtype in ("f16", "bf16") for length in (4096, 8192))


def heads():
    """Heads of other widths."""
    widths = {"256": (8, (2048, 16384)), "192": (10, (2048, 8192)), "192/128": (10, (2048, 8192)), "96": (20, (2048, 8192))}
    return each(
        f"B{TOKENS // length} H{heads} S{length} D{dim}" for dim, (heads, lengths) in widths.items() for length in lengths
    )


def decode():
    """One query against ever more keys: bound by the memory that they are read from, if the GPU is busy at all."""
    sizes = [f"B1 {heads} Sq1 Sk{keys} D128" for heads in ("H8", "H32/8", "H32") for keys in (1024, 4096, 8192, 16384, 65536)]
    others = ["B1 H8 Sq1 Sk8192 D64", "B1 H32 Sq1 Sk8192 D64", "B16 H32 Sq1 Sk4096 D64", "B16 H32 Sq1 Sk4096 D128"]
    return each([*sizes, *others, "B16 H32/8 Sq1 Sk8192 D128"], ["full"])


def odd():
    """Lengths that no block divides, head counts that do not fill the 132 processors of an H200, more keys than queries.

    These are full: implementations differ in where a causal mask lies then.
    """
    squares = [
        "B8 H16 S1000 D128", "B4 H16 S3001 D128", "B3 H7 S2048 D128", "B2 H5 S4097 D128", "B1 H12 S6000 D128",
        "B1 H5 S1537 D64", "B5 H11 S777 D64", "B1 H40 S2048 D64", "B7 H9 S1023 D64", "B2 H24 S5000 D64",
    ]  # fmt: skip
    oblong = ["B4 H16 Sq512 Sk4096 D128", "B4 H16 Sq777 Sk3001 D128", "B2 H12 Sq100 Sk8192 D64", "B4 H32 Sq2048 Sk512 D64"]
    return each(squares) + each(oblong, ["full"])


GRIDS = {"small": small, "main": main, "bf16": bf16, "gqa": gqa, "heads": heads, "decode": decode, "odd": odd}
