"""Whether a result is right: the rule of the kernels' own oracle, computed on the GPU.

A kernel may be twice as wrong as the plain computation, plus one rounding. Exact is float64; plain is float32 with the
weights rounded to the dtype before they meet V and the output rounded once.
"""

import dataclasses
import math

import torch

SCORES_AT_ONCE = 2**28  # 2 GiB of float64
LOG_SUM_EXP_ROUNDING = 2.0**-19  # relative to max(1, |LSE|): tensor cores that truncate, and ex2.approx
FRACTION_BITS = {torch.float16: 10, torch.bfloat16: 7}  # IEEE 754-2019, table 3.5; binary32 with 16 bits less


@dataclasses.dataclass(frozen=True)
class Reference:
    """Output and log-sum-exp in float64, (batch, heads, sequence, dim) and (batch, heads, sequence)."""

    exact: dict
    plain: dict
    dtype: torch.dtype


def reference(problem, inputs):
    """What the inputs, laid out (batch, sequence, heads, dim), give."""
    if problem.lengths:
        return one_behind_the_other(problem, inputs)
    group = problem.heads // problem.kv_heads
    q, k, v = (tensor.transpose(1, 2) for tensor in inputs)
    k, v = (tensor.repeat_interleave(group, dim=1) for tensor in (k, v))
    q, k, v = (tensor.flatten(0, 1) for tensor in (q, k, v))
    mask = seen(problem, q.device)
    step = max(1, SCORES_AT_ONCE // (problem.queries * problem.keys))
    parts = [[attend(*part, mask, kind) for kind in (exact, plain)] for part in zip(*(x.split(step) for x in (q, k, v)))]
    both = []
    for results in zip(*parts):
        output, log_sum_exp = (torch.cat(tensors) for tensors in zip(*results))
        shape = (problem.batch, problem.heads, problem.queries)
        both.append({"o": output.view(*shape, problem.value_dim), "lse": log_sum_exp.view(shape)})
    return Reference(*both, q.dtype)


def one_behind_the_other(problem, inputs):
    """The same of (rows of all sequences, heads, dim): (heads, rows, dim) and (heads, rows)."""
    sequences = zip(problem.lengths, zip(*(tensor.split(problem.lengths) for tensor in inputs)))
    parts = [reference(problem.one(length), [tensor[None] for tensor in tensors]) for length, tensors in sequences]
    both = [
        {role: torch.cat([results[role][0] for results in of_kind], dim=1) for role in ("o", "lse")}
        for of_kind in ([part.exact for part in parts], [part.plain for part in parts])
    ]
    return Reference(*both, inputs[0].dtype)


def seen(problem, device):
    """Which keys each query sees; nothing if all."""
    every = torch.ones(problem.queries, problem.keys, dtype=torch.bool, device=device)
    if problem.window:
        before, behind = problem.window
        return every.tril(problem.keys - problem.queries + behind).triu(problem.keys - problem.queries - before)
    return every.tril() if problem.causal else None


def exact(q):
    """Computes in float64 and rounds nothing."""
    return torch.float64, torch.float64


def plain(q):
    """Computes in float32 and rounds to the inputs' type."""
    return torch.float32, q.dtype


def attend(q, k, v, mask, kind):
    compute, rounded = kind(q)
    scores = (q.to(compute) @ k.to(compute).transpose(-1, -2)).mul_(1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores.masked_fill_(~mask, -math.inf)
    largest = scores.amax(-1, keepdim=True)
    weights = scores.sub_(largest).exp_()
    total = weights.sum(-1, keepdim=True)
    output = weights.to(rounded).to(compute) @ v.to(compute) / total
    return output.to(rounded).double(), (largest + total.log()).squeeze(-1).double()


def judge(reference, results, layout):
    """The largest error in units of what is allowed: at most 1 if the results are right."""
    ratios = []
    for role, found in results.items():
        found = found.transpose(-3, -2) if role == "o" and layout == "bshd" else found
        rounding = half_step(reference.exact[role], reference.dtype) if role == "o" else (
            LOG_SUM_EXP_ROUNDING * reference.exact[role].abs().clamp(min=1.0))
        ratios.append(compare(reference.exact[role], reference.plain[role], found.double(), rounding))
    return max(ratios)


def half_step(values, dtype):
    """The most that rounding to nearest moves each value."""
    least = torch.finfo(dtype).smallest_normal
    exponent = values.abs().clamp(min=least).log2().floor()
    return torch.exp2(exponent - FRACTION_BITS[dtype] - 1)


def compare(exact, plain, found, rounding):
    if not found.isfinite().all():
        return math.inf
    error, plain_error = (found - exact).abs(), (plain - exact).abs()
    element = (error / (2 * plain_error.max() + rounding)).max()
    together = error.norm() / (2 * plain_error.norm() + rounding.norm())
    return max(element.item(), together.item())
