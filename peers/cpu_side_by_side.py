#!/usr/bin/env python3
"""Attention on plain cores beside torch's CPU SDPA, in one process.

    cargo build --release -p attention --example cpu_attention
    pip install torch
    python3 peers/cpu_side_by_side.py                       # the grid of the bars: about 4 minutes
    python3 peers/cpu_side_by_side.py --grid small,decode   # short sequences, and one query against many keys
    python3 peers/cpu_side_by_side.py --instructions avx2   # ours with AVX2 alone; torch as it is

Rounds are paired: both are timed in each, in turns, and a ratio is the median over the rounds; those in which other
processes kept the cores busy are repeated. Results are compared before anything is timed. The last line is `geomean R`:
torch's time over ours.
"""
import argparse
import ctypes
import math
import os
import statistics
import sys
import time

CORES = len(os.sched_getaffinity(0))
os.environ.setdefault("RAYON_NUM_THREADS", str(CORES))
os.environ.setdefault("OMP_NUM_THREADS", str(CORES))

import torch  # noqa: E402  (reads the number of threads when it starts)

TYPES = {"f32": (0, torch.float32), "f16": (1, torch.float16), "bf16": (2, torch.bfloat16)}
INSTRUCTIONS = {"portable": 0, "neon": 1, "avx2": 2, "avx512": 3, "avx512bf16": 4, "best": 99}
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/examples/libcpu_attention.so")
# Bars: the least ratio of any point, and the least geometric mean of a type.
LEAST_POINT = {"main": 1.05, "small": 1.0, "decode": 1.2}
LEAST_MEAN = {"f32": 1.4, "f16": 2.2, "bf16": 2.5}
LEAST_MEAN_FORCED = 1.3
LEAST_MEAN_OF_ALL = 2.0  # over the grid `main`, all types, with the best instructions
# How far outputs may differ from torch's: both round to the type, at values up to about 4.
TOLERANCE = {"f32": 1e-3, "f16": 0.01, "bf16": 0.05}


class Sizes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim", "dtype", "causal", "instructions")]


def points(grids, types):
    for grid in grids:
        for dtype in types:
            for dim in (64, 128):
                if grid == "decode":
                    yield grid, dtype, 8, 1, 8192, dim, False
                    continue
                for length in (512, 1024, 2048, 4096) if grid == "main" else (16, 32, 64, 128, 256):
                    for causal in (False, True):
                        yield grid, dtype, 8, length, length, dim, causal


def tensors(dtype, heads, queries, keys, dim):
    torch.manual_seed(queries * dim + keys)
    make = lambda rows: torch.randn(1, heads, rows, dim).to(TYPES[dtype][1])
    return make(queries), make(keys), make(keys)


def ours(library, instructions, dtype, q, k, v, causal):
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    sizes = Sizes(q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3],
                  TYPES[dtype][0], int(causal), INSTRUCTIONS[instructions])
    memory = (q, k, v, o, lse)

    def call():  # holds the tensors, so that their memory stays
        pointers = [tensor.data_ptr() for tensor in memory]
        status = library.veriflash_cpu_attention(ctypes.byref(sizes), *pointers)
        if status == 2:
            sys.exit(f"this processor has no {instructions}")
        if status != 0:
            sys.exit("the library refused the problem")
    return call, o, lse


def log_sum_exp(q, k, causal):
    """In f64, head by head: the scores of all at once would take a gigabyte."""
    def of_head(head):
        scores = q[:, head].double() @ k[:, head].double().transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            scores.masked_fill_(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        return scores.logsumexp(-1)
    return torch.stack([of_head(head) for head in range(q.shape[1])], dim=1)


def seconds(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def busy():
    """Seconds that all cores have worked for anybody."""
    fields = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def paired(first, second, rounds, target=0.06, loud=0.08, patience=4.0):
    """Medians over rounds: second / first, first, second."""
    counts = []
    for call in (first, second):
        call()
        counts.append(max(1, min(3000, round(target / min(seconds(call, 1), seconds(call, 1))))))
    times, begun, turn = [], time.time(), 0
    while len(times) < rounds:
        before, own, start = busy(), time.process_time(), time.perf_counter()
        measured = [0.0, 0.0]
        for which in ((0, 1), (1, 0))[turn % 2]:
            time.sleep(0.004)  # threads of the other that still spin go to sleep
            call = (first, second)[which]
            call()
            measured[which] = seconds(call, counts[which])
        turn += 1
        others = (busy() - before - (time.process_time() - own)) / (CORES * (time.perf_counter() - start))
        if others > loud and time.time() - begun < patience:
            time.sleep(0.1)
            continue
        times.append(measured)
    return (statistics.median(b / a for a, b in times), statistics.median(a for a, _ in times),
            statistics.median(b for _, b in times))


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", dest="path", default=LIBRARY, help="libcpu_attention.so (default: that of this checkout)")
    parser.add_argument("--grid", default="main", help="main, small, decode, or several with commas")
    parser.add_argument("--types", default="f32,bf16,f16")
    parser.add_argument("--instructions", default="best", choices=INSTRUCTIONS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    options = parser.parse_args()
    try:
        library = ctypes.CDLL(options.path)
    except OSError as error:
        sys.exit(f"{error}\nbuild it first: cargo build --release -p attention --example cpu_attention")
    library.veriflash_cpu_attention.argtypes = [ctypes.c_void_p] * 6
    torch.set_num_threads(CORES)
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {CORES} cores")
    ratios, missed = {}, []
    for grid, dtype, heads, queries, keys, dim, causal in points(options.grid.split(","), options.types.split(",")):
        q, k, v = tensors(dtype, heads, queries, keys, dim)
        call, o, lse = ours(library, options.instructions, dtype, q, k, v, causal)
        theirs = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        call()
        difference = (o.double() - theirs().double()).abs().max().item()
        if not difference < TOLERANCE[dtype]:
            sys.exit(f"{dtype} D{dim} {queries}x{keys}: results differ by {difference}")
        difference = (lse.double() - log_sum_exp(q, k, causal)).abs().max().item()
        if not difference < 1e-3:  # scores are f32 in every type
            sys.exit(f"{dtype} D{dim} {queries}x{keys}: log-sum-exps differ by {difference}")
        ratio, mine, other = paired(call, theirs, options.rounds)
        operations = 4 * heads * queries * keys * dim * (0.5 if causal else 1)
        name = f"{grid} {dtype} D{dim} Sq{queries} Sk{keys} {'causal' if causal else 'full'}"
        print(f"{name:38} {ratio:5.2f}   {operations / mine / 1e9:6.1f} and {operations / other / 1e9:6.1f} GFLOP/s"
              f"   {mine * 1e6:9.1f} and {other * 1e6:9.1f} us", flush=True)
        ratios.setdefault((grid, dtype), []).append(ratio)
        if options.instructions == "best" and ratio < LEAST_POINT[grid]:
            missed.append(f"{name}: {ratio:.2f}, and the bar is {LEAST_POINT[grid]}")
    for (grid, dtype), values in ratios.items():
        mean = geomean(values)
        print(f"{grid} {dtype}: geomean {mean:.2f}, least {min(values):.2f}")
        least = LEAST_MEAN[dtype] if options.instructions == "best" else LEAST_MEAN_FORCED
        if grid == "main" and mean < least:
            missed.append(f"{grid} {dtype}: {mean:.2f} in the mean, and the bar is {least}")
    of_main = [ratio for (grid, _), values in ratios.items() if grid == "main" for ratio in values]
    all_types = {dtype for grid, dtype in ratios if grid == "main"} == set(TYPES)
    if options.instructions == "best" and all_types and geomean(of_main) < LEAST_MEAN_OF_ALL:
        missed.append(f"main: {geomean(of_main):.2f} in the mean of all types, and the bar is {LEAST_MEAN_OF_ALL}")
    for line in missed:
        print("missed:", line)
    print(f"geomean {geomean([ratio for values in ratios.values() for ratio in values]):.2f}")
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
