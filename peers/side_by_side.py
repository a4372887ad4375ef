#!/usr/bin/env python3
"""Our attention kernels beside others' on one GPU: FlashAttention-2 and cuDNN through torch, FlashAttention-4, Triton.

    veriflash ptx --problem 'B2 H8 S512 D64 causal' --arch sm_90 --out kernels         (anywhere)
    python3 peers/side_by_side.py --kernels kernels --grid small --out rows.jsonl      (with a GPU)
    python3 peers/side_by_side.py --kernels kernels --grid main,gqa --check            (fails where a bar is missed)
"""

import argparse
import json
import pathlib
import random
import sys
import time

import adverse
import arguments
import bars
import recipe
import report
from plan import WARM_UP_SECONDS
from problems import GRIDS, KINDS, NORMAL

PEER_NAMES = ("fa2", "cudnn", "fa4", "triton")
ROUNDS, ROUNDS_OF_BARS = 12, 30
FAILED, BAD_INPUT = 1, 2  # exit codes


class NoGpu(RuntimeError):
    """Nothing can be measured here."""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kernels", nargs="+", default=[], metavar="DIR", help="folders of kernels, or single files")
    add("--prototype", nargs="+", default=[], metavar="DIR", help="kernels of `prototype.py`, to be beaten as well")
    add("--grid", type=names_of(GRIDS), default=list(GRIDS), help=f"some of {','.join(GRIDS)}; all unless given")
    add("--peers", type=names_of(PEER_NAMES), default=list(PEER_NAMES), help=f"some of {','.join(PEER_NAMES)}; all unless given")
    add("--inputs", type=names_of(KINDS), default=[NORMAL], help=f"some of {','.join(KINDS)}; normal unless given")
    add("--check", action="store_true", help="exit 1 unless the bars of the grids hold (bars.py)")
    add("--rounds", type=int, help=f"samples of each; 0 measures nothing (default: {ROUNDS}, with --check {ROUNDS_OF_BARS})")
    add("--warm-up", type=float, default=WARM_UP_SECONDS * 1e3, metavar="MILLISECONDS", help="before each sample (default: 10)")
    add("--launches", type=int, default=0, metavar="N", help="also compare N launches on one stream, and on eight, to the bit")
    add("--out", type=pathlib.Path, metavar="FILE", help="write every row as a line of JSON")
    add("--list", action="store_true", help="print the problems of the grids, for `veriflash ptx --problem`, and nothing else")
    add("--dry-run", action="store_true", help="say what would be launched, and how; needs no GPU")
    chosen = parser.parse_args()
    if chosen.rounds is None:
        chosen.rounds = ROUNDS_OF_BARS if chosen.check else ROUNDS
    return chosen


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


def prototype(folders):
    """Its kernel for each problem that it has one for."""
    found = recipe.find(folders)
    for path, error in found:
        if error:
            raise recipe.RecipeError(f"{path}: {error}")
    return {kernel.problem: kernel for kernel, _ in found}


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
    from stamps import Stamps

    driver = Driver()
    print(f"a launch that does nothing: {Stamps(driver).launch_cycles():.0f} cycles", flush=True)
    return driver


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


def compete(problem, kind, kernels, rivals, driver, chosen, shuffle):
    """All rows of one problem and one kind of inputs."""
    from contest import Contest

    entered = Contest(problem, kind, driver, chosen.warm_up * 1e-3)
    peers, of_prototype = rivals
    for kernel in kernels:
        entered.ours(kernel, chosen.launches, time=chosen.rounds > 0)
    if entered.contestants:
        for peer in () if problem.window else peers:  # a window's speed is told against that of the whole
            entered.peer(peer)
        if problem in of_prototype:
            entered.prototype(of_prototype[problem])
        entered.measure(chosen.rounds, shuffle)
    return list(entered.rows.values())


def contests(problems, chosen):
    """Each problem with each kind of inputs; where the grid for hard ones is among the grids, it alone has them."""
    hard = GRIDS["adverse"]() if "adverse" in chosen.grid else problems
    return [(problem, kind) for problem in problems for kind in chosen.inputs if kind == NORMAL or problem in hard]


def run(served, of_prototype, chosen):
    """The rows of all problems, one problem after the other; what is there is written at once."""
    driver, shuffle, rows = gpu(), random.Random(0), []
    rivals = installed(chosen.peers, next(iter(served))), of_prototype
    planned = contests(served, chosen)
    for number, (problem, kind) in enumerate(planned, 1):
        kernels = served[problem]
        print(f"[{number}/{len(planned)}] {problem}, {kind}: {', '.join(kernel.name for kernel in kernels)}", flush=True)
        start, lost = time.perf_counter(), False
        try:
            new = compete(problem, kind, kernels, rivals, driver, chosen, shuffle)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            new = [{"problem": str(problem), "inputs": kind, "name": "all", "ours": True, "error": said}]
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


def conclude(rows, chosen):
    """Prints the tables and what follows from them; says whether all of ours were right, and the bars hold if that is asked."""
    peers = [*chosen.peers, *([report.PROTOTYPE] if chosen.prototype else [])]
    for kind in chosen.inputs:
        of_kind = report.of_kind(rows, kind)
        failed = [f"failed: {failure}" for failure in report.failures(of_kind)]
        conclusion = [*report.noise(of_kind), *report.summary(of_kind, peers)]
        for line in ["", f"inputs: {KINDS[kind]}", *report.table(of_kind, peers), "", *failed, *conclusion]:
            print(line)
    for line in adverse.lines(rows):
        print(line)
    right = not any(row["ours"] and "error" in row for row in rows)
    return bars.check(rows, chosen.grid) and right if chosen.check else right


def main():
    chosen = options()
    if chosen.list:
        print(*dict.fromkeys(problem for grid in chosen.grid for problem in GRIDS[grid]()), sep="\n")
        return 0
    try:
        served = match(chosen.kernels, chosen.grid)
        if not served:
            raise recipe.RecipeError("no kernel solves a problem of these grids: see --grid")
        of_prototype = prototype(chosen.prototype)
        if chosen.dry_run:
            describe(served)
            return 0
        rows = run(served, of_prototype, chosen)
    except (recipe.RecipeError, NoGpu) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0 if conclude(rows, chosen) else FAILED


if __name__ == "__main__":
    sys.exit(main())
