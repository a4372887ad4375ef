"""Attention problems, and the named grids of them."""

import dataclasses

TOKENS = 16384  # in each problem of the main grid: enough to fill any GPU
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
HEADS = {64: 32, 128: 16}  # by head dimension: a model 2048 wide


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

    def __str__(self):
        heads = f"H{self.heads}" if self.heads == self.kv_heads else f"H{self.heads}/{self.kv_heads}"
        length = f"S{self.queries}" if self.queries == self.keys else f"Sq{self.queries} Sk{self.keys}"
        return f"{self.dtype} B{self.batch} {heads} {length} D{self.dim} {self.mask}"

    @property
    def causal(self):
        return self.mask == "causal"

    def flops(self):
        """The usual count: two products of 2·queries·keys·dim operations a head, half of it when causal."""
        return 4 * self.batch * self.heads * self.queries * self.keys * self.dim // (2 if self.causal else 1)

    def bytes(self):
        """Q, K, V and O, once each."""
        return 2 * 2 * self.dim * self.batch * (self.queries * self.heads + self.keys * self.kv_heads)

    def shapes(self, layout):
        """The shapes of the contract's tensors; the log-sum-exp lies the same way in both layouts."""

        def tensor(heads, length):
            return (self.batch, heads, length, self.dim) if layout == "bhsd" else (self.batch, length, heads, self.dim)

        query, key = tensor(self.heads, self.queries), tensor(self.kv_heads, self.keys)
        return {"q": query, "k": key, "v": key, "o": query, "lse": (self.batch, self.heads, self.queries)}


def square(batch, heads, length, dim, mask):
    return Problem(batch, heads, heads, length, length, dim, mask)


def small():
    """The standard problem: bound by launch and latency."""
    return [square(2, 8, 512, 64, mask) for mask in ("full", "causal")]


def main():
    """16,384 tokens, cut into ever longer sequences."""
    return [
        square(TOKENS // length, heads, length, dim, mask)
        for dim, heads in HEADS.items()
        for length in LENGTHS
        for mask in ("full", "causal")
    ]


def decode():
    """One query against ever more keys: bound by the memory that they are read from, if the GPU is busy at all."""
    return [
        Problem(1, heads, kv_heads, 1, keys, 128)
        for heads, kv_heads in ((8, 8), (32, 8), (32, 32))
        for keys in (1024, 4096, 8192, 16384, 65536)
    ] + [
        Problem(1, 8, 8, 1, 8192, 64),
        Problem(1, 32, 32, 1, 8192, 64),
        Problem(16, 32, 32, 1, 4096, 64),
        Problem(16, 32, 32, 1, 4096, 128),
    ]


GRIDS = {"small": small, "main": main, "decode": decode}
