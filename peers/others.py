"""The peers: what a user would call for attention, each as `make(problem)`, which gives `call(q, k, v)`.

Tensors are laid out (batch, sequence, heads, dim); SDPA gets transposed views of them, not copies.
"""

import contextlib
import dataclasses
import itertools
import os
import typing

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


@dataclasses.dataclass(frozen=True)
class Peer:
    """A name, how to make the call for a problem, and the context in which it is called."""

    name: str
    make: typing.Callable
    context: typing.Callable = contextlib.nullcontext


def cumulative(problem):
    """Where each sequence begins, and where the last one ends."""
    return torch.tensor([0, *itertools.accumulate(problem.lengths)], dtype=torch.int32, device="cuda")


def make_fa2(problem):
    if not problem.lengths:
        return make_sdpa(problem)
    places, longest, forward = cumulative(problem), problem.keys, torch.ops.aten._flash_attention_forward
    return lambda q, k, v: forward(q, k, v, places, places, longest, longest, 0.0, problem.causal, False)[0]


def make_cudnn(problem):
    if not problem.lengths:
        return make_sdpa(problem)
    # As torch's own varlen_attn calls it: the first of its flags asks for the log-sum-exp.
    places, longest, forward = cumulative(problem), problem.keys, torch.ops.aten._cudnn_attention_forward
    return lambda q, k, v: forward(q, k, v, None, places, places, longest, longest, True, 0.0, problem.causal, False)[0]


def make_sdpa(problem):
    def call(q, k, v):
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
        grouped = problem.heads != problem.kv_heads
        return F.scaled_dot_product_attention(q, k, v, is_causal=problem.causal, enable_gqa=grouped).transpose(1, 2)

    return call


def make_fa4(problem):
    # Its kernels compile for seconds each; the cache on disk spares the next run that.
    os.environ.setdefault("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1")
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func

    if problem.lengths:
        places, longest = cumulative(problem), problem.keys
        sizes = {"cu_seqlens_q": places, "cu_seqlens_k": places, "max_seqlen_q": longest, "max_seqlen_k": longest}
        return lambda q, k, v: flash_attn_varlen_func(q, k, v, **sizes, causal=problem.causal)[0]
    return lambda q, k, v: flash_attn_func(q, k, v, causal=problem.causal)[0]


def make_triton(problem):
    import triton_attention

    return triton_attention.make(problem)


PEERS = {
    "fa2": Peer("fa2", make_fa2, lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION)),
    "cudnn": Peer("cudnn", make_cudnn, lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION)),
    "fa4": Peer("fa4", make_fa4),
    "triton": Peer("triton", make_triton),
}
