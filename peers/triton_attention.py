"""A forward pass in Triton, as a user of Triton writes it: pointers, blocks, a running softmax, and its autotuner.

Tensors are laid out (batch, sequence, heads, dim). Block sizes are chosen by timing them the first time that a problem is
met, which must be before a graph is captured.
"""

import math

import torch
import triton
import triton.language as tl

HEAD_DIMS = (64, 128)
CONFIGS = [
    triton.Config({"ROWS": rows, "KEYS": keys}, num_warps=warps, num_stages=stages)
    for rows, keys, warps, stages in (
        (128, 128, 8, 2),
        (128, 128, 4, 2),
        (128, 64, 8, 3),
        (128, 64, 4, 3),
        (64, 128, 4, 2),
        (64, 64, 4, 3),
        (64, 32, 4, 4),
    )
]
MASKED = tl.constexpr(-1.0e30)  # not infinite: infinity minus itself is no number


@triton.jit
def attend(
    output, largest, total, q, k_first, v_first, k_stride, v_stride, first, last, rows, key_count, scale,
    CAUSAL: tl.constexpr, EDGE: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Goes over the keys from `first` to `last`, which is a block's edge; at an EDGE some keys are masked."""
    for start in tl.range(first, last, KEYS):
        keys = start + tl.arange(0, KEYS)
        if EDGE:
            k = tl.load(k_first + start * k_stride, mask=keys[None, :] < key_count, other=0.0)
            v = tl.load(v_first + start * v_stride, mask=keys[:, None] < key_count, other=0.0)
        else:
            k = tl.load(k_first + start * k_stride)
            v = tl.load(v_first + start * v_stride)
        scores = tl.dot(q, k)
        if EDGE:
            seen = keys[None, :] < key_count
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            scores = tl.where(seen, scores, MASKED)
        new_largest = tl.maximum(largest, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - new_largest[:, None])
        shrink = tl.math.exp2(largest - new_largest)
        total = total * shrink + tl.sum(weights, 1)
        output = tl.dot(weights.to(v.dtype), v, output * shrink[:, None])
        largest = new_largest
    return output, largest, total


@triton.autotune(CONFIGS, key=["batch", "heads", "row_count", "key_count", "DIM", "CAUSAL"])
@triton.jit(do_not_specialize=["batch", "heads", "group"])  # a single sequence would be compiled for once more
def forward(
    q, k, v, o,
    q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row, o_head,
    batch, heads, group, row_count, key_count, scale,
    DIM: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """One block of rows of one head. The last rows come first: when causal, they take longest."""
    first_row = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS
    # In 64 bits: sizes times strides may not fit in 32.
    sequence = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows, dims, keys = first_row + tl.arange(0, ROWS), tl.arange(0, DIM), tl.arange(0, KEYS)
    place = rows[:, None] * q_row + dims[None, :]
    block = tl.load(q + sequence * q_batch + head * q_head + place, mask=rows[:, None] < row_count, other=0.0)
    k_first = k + sequence * k_batch + (head // group) * k_head + keys[None, :] * k_row + dims[:, None]
    v_first = v + sequence * v_batch + (head // group) * v_head + keys[:, None] * v_row + dims[None, :]
    output = tl.zeros((ROWS, DIM), tl.float32)
    largest = tl.full((ROWS,), MASKED, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    last = key_count
    edge = key_count // KEYS * KEYS
    if CAUSAL:
        last = tl.minimum(key_count, first_row + ROWS)
        edge = tl.minimum(edge, first_row // KEYS * KEYS)
    output, largest, total = attend(
        output, largest, total, block, k_first, v_first, k_row, v_row, 0, edge, rows, key_count, scale, CAUSAL, False, KEYS
    )
    output, largest, total = attend(
        output, largest, total, block, k_first, v_first, k_row, v_row, edge, last, rows, key_count, scale, CAUSAL, True, KEYS
    )
    place = rows[:, None] * o_row + dims[None, :]
    result = (output / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + sequence * o_batch + head * o_head + place, result, mask=rows[:, None] < row_count)


def make(problem):
    """The call for a problem."""
    if problem.dim not in HEAD_DIMS or problem.value_dim != problem.dim:
        raise ValueError(f"head dimension {problem.dim}/{problem.value_dim} is not supported: expected one of {HEAD_DIMS} twice")
    if problem.lengths:
        raise ValueError("mixed lengths are not supported")
    if problem.causal and problem.queries != problem.keys:
        raise ValueError("a causal mask needs as many keys as queries")

    def call(q, k, v):
        o = torch.empty_like(q)
        strides = [stride for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]
        forward[lambda config: (triton.cdiv(problem.queries, config["ROWS"]), problem.batch * problem.heads)](
            *(q, k, v, o), *strides,
            problem.batch, problem.heads, problem.heads // problem.kv_heads, problem.queries, problem.keys,
            problem.dim**-0.5 * math.log2(math.e),
            DIM=problem.dim, CAUSAL=problem.causal,
        )  # fmt: skip
        return o

    return call
