"""The peers: what a user would call for attention, each as `make(problem)`, which gives `call(q, k, v)`.

Tensors are laid out (batch, sequence, heads, dim); SDPA gets transposed views of them, not copies.
"""

import contextlib
import dataclasses
import os
import typing

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


@dataclasses.dataclass(frozen=True)
class Peer:
    """A name, how to make the call for a problem, and the context in which it is called."""

    name: str
    make: typing.Callable
    context: typing.Callable = contextlib.nullcontext


def make_sdpa(problem):
    def call(q, k, v):
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
        grouped = problem.heads != problem.kv_heads
        return F.scaled_dot_product_attention(q, k, v, is_causal=problem.causal, enable_gqa=grouped).transpose(1, 2)

    return call


def make_fa4(problem):
    # Its kernels compile for seconds each; the cache on disk spares the next run that.
    os.environ.setdefault("FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "1")
    from flash_attn.cute import flash_attn_func

    return lambda q, k, v: flash_attn_func(q, k, v, causal=problem.causal)[0]


def make_triton(problem):
    import triton_attention

    return triton_attention.make(problem)


PEERS = {
    "fa2": Peer("fa2", make_sdpa, lambda: sdpa_kernel(SDPBackend.FLASH_ATTENTION)),
    "cudnn": Peer("cudnn", make_sdpa, lambda: sdpa_kernel(SDPBackend.CUDNN_ATTENTION)),
    "fa4": Peer("fa4", make_fa4),
    "triton": Peer("triton", make_triton),
}
