#!/usr/bin/env python3
"""Our attention kernels beside others' on one GPU: FlashAttention-2 and cuDNN through torch, FlashAttention-4, Triton.

    veriflash ptx --problem 'B2 H8 S512 D64 causal' --arch sm_90 --out kernels/small   (anywhere)
    python3 peers/side_by_side.py --kernels kernels --grid small --out rows.jsonl      (with a GPU)
"""

import argparse
import json
import pathlib
import random
import sys
import time

import arguments
import recipe
import report
from plan import WARM_UP_SECONDS
from problems import GRIDS

PEER_NAMES = ("fa2", "cudnn", "fa4", "triton")
FAILED, BAD_INPUT = 1, 2  # exit codes


class NoGpu(RuntimeError):
    """Nothing can be measured here."""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kernels", nargs="+", default=[], metavar="DIR", help="folders of kernels, or single files")
    add("--grid", type=names_of(GRIDS), default=list(GRIDS), help=f"some of {','.join(GRIDS)}; all unless given")
    add("--peers", type=names_of(PEER_NAMES), default=list(PEER_NAMES), help=f"some of {','.join(PEER_NAMES)}; all unless given")
    add("--rounds", type=int, default=12, help="samples of each; 0 measures nothing (default: 12)")
    add("--warm-up", type=float, default=WARM_UP_SECONDS * 1e3, metavar="MILLISECONDS", help="before each sample (default: 10)")
    add("--launches", type=int, default=0, metavar="N", help="also compare N launches on one stream, and on eight, to the bit")
    add("--out", type=pathlib.Path, metavar="FILE", help="write every row as a line of JSON")
    add("--list", action="store_true", help="print the problems of the grids, for `veriflash ptx --problem`, and nothing else")
    add("--dry-run", action="store_true", help="say what would be launched, and how; needs no GPU")
    return parser.parse_args()


def names_of(known):
    """Reads a list of names with commas between."""

    def read(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown name {name}: expected some of {','.join(known)}")
        return names

    return read


def match(folders, grids):
    """The problems of the grids in order, each with the kernels that solve it; says which kernels and problems are left."""
    served = {problem: [] for grid in grids for problem in GRIDS[grid]()}
    for kernel, error in recipe.find(folders):
        if error:
            print(f"skipped {kernel}: {error}")
        elif kernel.problem not in served:
            print(f"skipped {kernel.name}: {kernel.problem} is in no grid")
        else:
            served[kernel.problem].append(kernel)
    for problem in (problem for problem, kernels in served.items() if not kernels):
        print(f"no kernel for {problem}")
    return {problem: kernels for problem, kernels in served.items() if kernels}


def describe(served):
    """Every launch with its arguments, as they would be passed."""
    for problem, kernels in served.items():
        for kernel in kernels:
            print(f"{problem}: {kernel.name}, {kernel.layout}")
            for launch in kernel.launches:
                print(f"  {launch.entry} grid {launch.grid} block {launch.block} cluster {launch.cluster} shared {launch.shared}")
                for arg in launch.args:
                    print(f"    {arguments.describe(arg, kernel)}")


def gpu():
    """The driver, with torch's context made current."""
    try:
        import torch
    except ImportError as error:
        raise NoGpu(f"torch is missing ({error}): install it, or use --dry-run") from None
    if not torch.cuda.is_available():
        raise NoGpu("torch finds no GPU: expected an NVIDIA GPU and a torch with CUDA, or use --dry-run")
    from driver import Driver

    torch.zeros(1, device="cuda")
    cudnn = torch.backends.cudnn.version()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}", flush=True)
    return Driver()


def installed(names, problem):
    """The peers whose packages are there; says which are not. What one of them refuses, its row of that problem says."""
    from others import PEERS

    peers = []
    for name in names:
        try:
            PEERS[name].make(problem)
        except ImportError as error:
            print(f"skipped peer {name}: {type(error).__name__}: {error}", flush=True)
            continue
        except Exception:
            pass  # refuses this problem, perhaps not the next
        peers.append(PEERS[name])
    return peers


def compete(problem, kernels, peers, driver, chosen, shuffle):
    """All rows of one problem."""
    from contest import Contest

    entered = Contest(problem, driver, chosen.warm_up * 1e-3)
    for kernel in kernels:
        entered.ours(kernel, chosen.launches, time=chosen.rounds > 0)
    if entered.contestants:
        for peer in () if problem.window else peers:  # a window's speed is told against that of the whole
            entered.peer(peer)
        entered.measure(chosen.rounds, shuffle)
    return list(entered.rows.values())


def run(served, chosen):
    """The rows of all problems, one problem after the other; what is there is written at once."""
    driver, shuffle, rows = gpu(), random.Random(0), []
    peers = installed(chosen.peers, next(iter(served)))
    for number, (problem, kernels) in enumerate(served.items(), 1):
        print(f"[{number}/{len(served)}] {problem}: {', '.join(kernel.name for kernel in kernels)}", flush=True)
        start, lost = time.perf_counter(), False
        try:
            new = compete(problem, kernels, peers, driver, chosen, shuffle)
        except Exception as error:
            new = [{"problem": str(problem), "name": "all", "ours": True, "error": f"{type(error).__name__}: {error}"}]
            lost = not alive()
        times = ", ".join(f"{row['name']} {report.microseconds(row)} µs" for row in new if "us" in row)
        print(f"  {times or 'nothing measured'} ({time.perf_counter() - start:.1f} s)", flush=True)
        rows += new
        if chosen.out:
            chosen.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if lost:
            print("error: the CUDA context is lost, so the run ends here", file=sys.stderr)
            break
    return rows


def alive():
    """Whether the GPU still answers: a kernel that faults takes torch's context with it."""
    import torch

    try:
        torch.cuda.synchronize()
        return True
    except Exception:
        return False


def conclude(rows, peers):
    """Prints the table and what follows from it; says whether all of ours were right."""
    for line in ["", *report.table(rows, peers), ""]:
        print(line)
    for failure in report.failures(rows):
        print(f"failed: {failure}")
    for line in [*report.noise(rows), *report.summary(rows, peers)]:
        print(line)
    return not any(row["ours"] and "error" in row for row in rows)


def main():
    chosen = options()
    if chosen.list:
        print(*dict.fromkeys(problem for grid in chosen.grid for problem in GRIDS[grid]()), sep="\n")
        return 0
    try:
        served = match(chosen.kernels, chosen.grid)
        if not served:
            raise recipe.RecipeError("no kernel solves a problem of these grids: see --grid")
        if chosen.dry_run:
            describe(served)
            return 0
        rows = run(served, chosen)
    except (recipe.RecipeError, NoGpu) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0 if conclude(rows, chosen.peers) else FAILED


if __name__ == "__main__":
    sys.exit(main())
