"""What the inputs of a problem hold: normal numbers, or such as a running softmax finds hard."""

import torch

from problems import NORMAL

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
LARGE = 16.0  # of queries and keys: one weight of a row is nearly all; of a hot key: every other is left behind
HOT = 2 / 3  # how far along the keys the hot one lies


def draw(problem, sets, kind=NORMAL, seed=1234, device="cuda"):
    """Sets of (q, k, v), laid out (batch, sequence, heads, dim)."""
    generator = torch.Generator(device).manual_seed(seed)
    shapes = [problem.shapes("bshd")[role] for role in "qkv"]
    normal = ([torch.randn(shape, device=device, generator=generator) for shape in shapes] for _ in range(sets))
    return [[tensor.to(DTYPES[problem.dtype]) for tensor in of_kind(problem, kind, *tensors)] for tensors in normal]


def of_kind(problem, kind, q, k, v):
    """The same made hard; `problems.KINDS` says how."""
    lengths = problem.lengths or (problem.keys,)
    if kind.startswith("ramp"):
        place = torch.cat([torch.linspace(0, 1, length, device=k.device) for length in lengths])
        return q, k * 10 ** (float(kind.removeprefix("ramp")) * place)[:, None, None], v
    if kind == "huge":
        return q * LARGE, k * LARGE, v
    if kind == "hot":
        hot = torch.cat([torch.arange(length, device=k.device) == int(HOT * length) for length in lengths])
        return q + 1, torch.where(hot[:, None, None], LARGE, k), v
    return q, k, v
