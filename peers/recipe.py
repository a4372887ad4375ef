"""Kernels as `veriflash ptx --out` writes them: PTX and the recipe that says how to launch it (docs/recipe.md)."""

import ctypes
import dataclasses
import gzip
import itertools
import math
import pathlib
import re
import tomllib

import arguments
from expression import evaluate
from problems import Problem

# What a buffer may start with here. Results and inputs are filled by this program whatever the recipe says.
SCRATCH_INITS = ("poison", "zeros")  # or a list of integers
LAYOUTS = ("bhsd", "bshd")
MASKS = {"none": "full", "causal-top-left": "causal", "causal-bottom-right": "causal"}
WINDOW = re.compile(r"window\((\d+),\s*(\d+)\)")


class RecipeError(ValueError):
    """A kernel that this program cannot launch, or cannot compare."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """One `[[launch]]`, its sizes evaluated; `args` stay as the recipe has them."""

    entry: str
    grid: tuple
    block: tuple
    cluster: tuple | None
    shared: int
    repeat: int
    overlap: bool
    args: list


@dataclasses.dataclass(frozen=True)
class Buffer:
    """One `[buffer]`: its element type, its shape, and what it holds at the start."""

    type: str
    shape: tuple
    init: str | list


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, how to launch it, and the attention problem that it solves."""

    name: str
    ptx: str
    names: dict
    buffers: dict
    launches: list
    roles: dict  # q, k, v, o and perhaps lse, to names of buffers
    layout: str
    problem: Problem

    def scratch(self):
        """The buffers that are neither inputs nor results."""
        return {name: buffer for name, buffer in self.buffers.items() if name not in self.roles.values()}


def find(places):
    """All kernels in these folders and files, as (kernel, None), or (path, the error) where one cannot be used."""
    found = []
    for path in dict.fromkeys(path for place in places for path in candidates(pathlib.Path(place))):
        try:
            found.append((read(path), None))
        except (ValueError, KeyError, OSError) as error:
            found.append((path, f"no {error} in its recipe" if isinstance(error, KeyError) else str(error)))
    return found


def candidates(place):
    """A `.toml` is a recipe; a `.ptx` has one in its head, unless a `.toml` of the same name stands beside it."""
    if not place.exists():
        raise RecipeError(f"{place}: no such file or folder")
    if place.is_file():
        return [place]
    ptx = [path for path in place.rglob("*.ptx") if not path.with_suffix(".toml").exists()]
    return sorted([*ptx, *place.rglob("*.toml")])


def read(path):
    """The kernel whose recipe stands in this file. Its name is its path: files of one name lie in many folders."""
    text = path.read_text()
    if path.suffix == ".ptx":
        return parse(header(text), text, str(path))
    recipe = tomllib.loads(text)
    module = path.parent / recipe.get("ptx", path.with_suffix(".ptx").name)
    ptx = gzip.decompress(module.read_bytes()).decode() if module.suffix == ".gz" else module.read_text()
    return parse(recipe, ptx, str(path))


def header(ptx):
    """The recipe in the `//@ ` lines at the head of a module."""
    lines = []
    for line in map(str.strip, ptx.splitlines()):
        if line and not line.startswith("//"):
            break
        if line.startswith("//@"):
            lines.append(line[3:])
    if not lines:
        raise RecipeError("no recipe: expected lines that begin with `//@ ` at its head")
    return tomllib.loads("\n".join(lines))


def parse(recipe, ptx, name):
    """The kernel that a recipe's tables describe."""
    if "attention" not in recipe:
        raise RecipeError("no [attention] in its recipe")
    # Kernels for different problems often differ in their recipes alone: without them, the driver compiles once.
    ptx = "\n".join(line for line in ptx.splitlines() if not line.startswith("//@"))
    if "target" in recipe:
        ptx = re.sub(r"(?m)^\.target\s+\w+", f".target {recipe['target']}", ptx, count=1)
    names = {}
    for let, expression in recipe.get("let", {}).items():
        names[let] = evaluate(expression, names)
    contract = recipe["attention"]
    buffers = {key: buffer(table, names) for key, table in recipe["buffer"].items()}
    kernel = Kernel(
        name=name,
        ptx=ptx,
        names=names,
        buffers=buffers,
        launches=[launch(table, names, ptx) for table in recipe["launch"]],
        roles={role: contract[role] for role in ("q", "k", "v", "o", "lse") if role in contract},
        layout=contract.get("layout", "given by strides"),
        problem=problem(recipe, names),
    )
    check(kernel)
    return kernel


def buffer(table, names):
    return Buffer(table["type"], sizes(table["shape"], names), table.get("init", "poison"))


def launch(table, names, ptx):
    return Launch(
        entry=table.get("entry") or only_entry(ptx),
        grid=sizes(table["grid"], names),
        block=sizes(table["block"], names),
        cluster=sizes(table["cluster"], names) if "cluster" in table else None,
        shared=evaluate(table.get("shared", 0), names),
        repeat=evaluate(table.get("repeat", 1), names),
        overlap=table.get("overlap", False),
        args=table["args"],
    )


def sizes(expressions, names):
    return tuple(evaluate(expression, names) for expression in expressions)


def only_entry(ptx):
    entries = re.findall(r"\.entry\s+([\w$]+)", ptx)
    if len(entries) != 1:
        raise RecipeError(f"a launch names no entry and the module has {len(entries)}")
    return entries[0]


def problem(recipe, names):
    """The problem of `[attention]`, in the peers' words."""
    contract = recipe["attention"]
    lengths = {key: evaluate(value, names) for key, value in contract["lengths"].items()}
    mask = mask_of(contract.get("mask", "none"))
    if mask == "causal" and lengths["q"] != lengths["k"]:
        raise RecipeError(f"mask causal of {lengths['q']} queries and {lengths['k']} keys: expected as many of each")
    expected = 1 / math.sqrt(lengths["dim"])
    found = scale(recipe, names)
    if found is not None and not math.isclose(found, expected, rel_tol=1e-5):
        raise RecipeError(f"scale {found}: expected {expected}, which the peers use")
    return Problem(
        batch=lengths["batch"],
        heads=lengths["heads"],
        kv_heads=lengths.get("kv_heads", lengths["heads"]),
        queries=lengths["q"],
        keys=lengths["k"],
        dim=lengths["dim"],
        value_dim=lengths.get("value_dim", lengths["dim"]),
        mask=mask,
        dtype=recipe["buffer"][contract["q"]]["type"],
        lengths=packed_lengths(recipe),
    )


def mask_of(said):
    """The mask in the peers' words."""
    window = WINDOW.fullmatch(said)
    if not window and said not in MASKS:
        raise RecipeError(f"mask {said} has no counterpart among the peers: expected a window or one of {', '.join(MASKS)}")
    return f"window{window[1]}/{window[2]}" if window else MASKS[said]


def packed_lengths(recipe):
    """The lengths of sequences that lie one behind the other; none where all have one length."""
    cumulative = recipe["attention"].get("cumulative")
    if not cumulative:
        return ()
    queries, keys = (recipe["buffer"][cumulative[role]]["init"] for role in ("q", "k"))
    if queries != keys:
        raise RecipeError(f"sequences of {queries} queries and {keys} keys: expected as many of each")
    return tuple(end - start for start, end in itertools.pairwise(keys))


def scale(recipe, names):
    """The scale of the scores, out of the argument that carries it."""
    said = recipe["attention"].get("scale")
    if said is None:
        return None
    factor = said.get("factor", 1.0)
    factor = math.log2(math.e) if factor == "log2e" else factor
    for arg in recipe["launch"][0]["args"]:
        if arg.get("name") == said["arg"]:
            return float(arg["f32"]) / factor
    raise RecipeError(f"no argument is called {said['arg']}, which carries the scale")


def check(kernel):
    """Refuses what would be launched wrongly."""
    if kernel.layout not in LAYOUTS:
        raise RecipeError(f"layout {kernel.layout}: expected one of {', '.join(LAYOUTS)}")
    if kernel.problem.dtype not in ("f16", "bf16"):
        raise RecipeError(f"type {kernel.problem.dtype}: expected f16 or bf16")
    for role, shape in kernel.problem.shapes(kernel.layout).items():
        if role in kernel.roles and math.prod(kernel.buffers[kernel.roles[role]].shape) != math.prod(shape):
            raise RecipeError(f"{role} has shape {kernel.buffers[kernel.roles[role]].shape}: expected {shape}")
    for name, scratch in kernel.scratch().items():
        if not isinstance(scratch.init, list) and scratch.init not in SCRATCH_INITS:
            raise RecipeError(f"buffer {name} starts as {scratch.init}: expected one of {', '.join(SCRATCH_INITS)}")
    for launch in kernel.launches:
        arguments.pack(launch, kernel, dict.fromkeys(kernel.buffers, 0), lambda described, address: ctypes.c_uint64())
