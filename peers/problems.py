"""Attention problems, and the named grids of them."""

import dataclasses
import re

TOKENS = 16384  # in each problem of the main grid: enough to fill any GPU
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
HEADS = {64: 32, 128: 16}  # by head dimension: a model 2048 wide
MASKS = ("full", "causal")
NORMAL = "normal"
KINDS = {
    NORMAL: "normal numbers",
    "ramp1.2": "keys that grow by 10^1.2 along the sequence, and scores with them",
    "ramp2.2": "keys that grow by 10^2.2",
    "huge": "queries and keys 16 times as large: scores in the hundreds",
    "hot": "one key that takes nearly all the weight of every query that sees it",
}
TEXT = re.compile(
    r"(?:(?P<dtype>f16|bf16) )?(?:B(?P<batch>\d+) )?H(?P<heads>\d+)(?:/(?P<kv_heads>\d+))? "
    r"(?:S(?P<lengths>\d+(?:,\d+)*)|Sq(?P<queries>\d+) Sk(?P<keys>\d+)) "
    r"D(?P<dim>\d+)(?:/(?P<value_dim>\d+))?(?: (?P<mask>full|causal|window\d+/\d+))?"
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
    mask: str = "full"  # or "causal", with as many keys as queries, or "window100/0": so many before and behind a query's place
    dtype: str = "f16"  # or "bf16"
    value_dim: int = 0  # columns of V and O: as many as those of Q and K unless given
    lengths: tuple = ()  # of sequences that lie one behind the other; `queries` and `keys` are then the longest

    def __post_init__(self):
        object.__setattr__(self, "value_dim", self.value_dim or self.dim)

    def __str__(self):
        heads = f"H{self.heads}" if self.heads == self.kv_heads else f"H{self.heads}/{self.kv_heads}"
        length = f"S{self.queries}" if self.queries == self.keys else f"Sq{self.queries} Sk{self.keys}"
        length = f"S{','.join(map(str, self.lengths))}" if self.lengths else length
        dim = f"D{self.dim}" if self.dim == self.value_dim else f"D{self.dim}/{self.value_dim}"
        return f"{self.dtype} B{self.batch} {heads} {length} {dim} {self.mask}"

    @property
    def causal(self):
        return self.mask == "causal"

    @property
    def whole(self):
        """The problem without the window's end."""
        return dataclasses.replace(self, mask="full" if self.window[1] else "causal")

    @property
    def window(self):
        """How many keys before and behind its place a query sees, if its mask is a window."""
        return tuple(map(int, self.mask.removeprefix("window").split("/"))) if self.mask.startswith("window") else None

    def pairs(self):
        """Of queries and keys that they see, in one head of all sequences; half of them when causal, as everybody counts."""
        if self.window:
            before, behind = self.window
            places = range(self.keys - self.queries, self.keys)
            return self.batch * sum(max(0, min(self.keys, at + behind + 1) - max(0, at - before)) for at in places)
        pairs = sum(length**2 for length in self.lengths) or self.batch * self.queries * self.keys
        return pairs // (2 if self.causal else 1)

    def flops(self):
        """Two products of 2·columns operations for each pair."""
        return 2 * self.heads * self.pairs() * (self.dim + self.value_dim)

    def bytes(self):
        """Q, K, V and O, once each."""
        queries, keys = [sum(self.lengths) or self.batch * length for length in (self.queries, self.keys)]
        return 2 * (self.dim + self.value_dim) * (queries * self.heads + keys * self.kv_heads)

    def one(self, length):
        """One of the sequences as a problem of its own."""
        return dataclasses.replace(self, batch=1, queries=length, keys=length, lengths=())

    def shapes(self, layout):
        """The shapes of the contract's tensors; the log-sum-exp lies the same way in both layouts.

        Where lengths are mixed there is one layout: (rows of all sequences, heads, dim).
        """

        def tensor(heads, length, dim):
            if self.lengths:
                return sum(self.lengths), heads, dim
            return (self.batch, heads, length, dim) if layout == "bhsd" else (self.batch, length, heads, dim)

        return {
            "q": tensor(self.heads, self.queries, self.dim),
            "k": tensor(self.kv_heads, self.keys, self.dim),
            "v": tensor(self.kv_heads, self.keys, self.value_dim),
            "o": tensor(self.heads, self.queries, self.value_dim),
            "lse": (self.heads, sum(self.lengths)) if self.lengths else (self.batch, self.heads, self.queries),
        }


def parse(text):
    """The problem that veriflash writes so: `B2 H8/2 S512 D192/128 causal`, `bf16 B1 H8 Sq1 Sk4096 D64`, `H8 S97,33 D64`."""
    found = TEXT.fullmatch(text)
    if not found:
        raise ValueError(f"cannot read problem {text!r}: expected one such as 'f16 B2 H8/2 S512 D64 causal'")
    words = found.groupdict()
    lengths = tuple(map(int, words["lengths"].split(","))) if words["lengths"] else ()
    number = {name: int(word) for name, word in words.items() if word and name != "lengths" and word.isdigit()}
    return Problem(
        batch=number.get("batch", len(lengths)),
        heads=number["heads"],
        kv_heads=number.get("kv_heads", number["heads"]),
        queries=number.get("queries") or max(lengths),
        keys=number.get("keys") or max(lengths),
        dim=number["dim"],
        mask=words["mask"] or "full",
        dtype=words["dtype"] or "f16",
        value_dim=number.get("value_dim", 0),
        lengths=lengths if len(lengths) > 1 else (),
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


def adverse():
    """What inputs of all kinds are measured on. A window leaves rows of a block nothing of the first block of keys."""
    return each(["B4 H32 S4096 D64", "B4 H16 S4096 D128"], [*MASKS, "window2000/2000", "window2000/0"])


def mixed():
    """16,384 tokens as sequences of all lengths, one behind the other."""
    lengths = "4096,3000,2048,2048,1500,1024,1000,512,512,300,200,100,44"
    return each([f"H16 S{lengths} D128", f"H32 S{lengths} D64"])


GRIDS = {grid.__name__: grid for grid in (small, main, bf16, gqa, heads, decode, odd, mixed, adverse)}
