"""Tensor maps: how a bulk tensor copy sees a buffer (CUDA driver API, cuTensorMapEncodeTiled)."""

import ctypes
import dataclasses

from expression import evaluate

BYTES = 128  # of an encoded map, cuda.h, CU_TENSOR_MAP_NUM_QWORDS
ALIGNMENT = 64  # of the place that cuTensorMapEncodeTiled writes to

# The recipe's words in the order of cuda.h's enumerations, which count from 0.
SWIZZLES = ("none", "32B", "64B", "128B")
INTERLEAVES = ("none", "16B", "32B")
PROMOTIONS = ("none", "64B", "128B", "256B")
FILLS = ("zero", "nan")
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """A `{ map = … }` argument, its sizes evaluated and its words numbered."""

    buffer: str
    type: int
    dims: tuple
    strides: tuple
    box: tuple
    element_strides: tuple
    interleave: int
    swizzle: int
    promotion: int
    fill: int


def resolve(arg, names, buffers):
    """The map that an argument describes."""

    def sizes(key, default):
        return tuple(evaluate(expression, names) for expression in arg.get(key, default))

    dims = sizes("dims", ())
    tensor_map = TensorMap(
        buffer=arg["map"],
        type=TYPES.index(buffers[arg["map"]].type),
        dims=dims,
        strides=sizes("strides", ()),
        box=sizes("box", ()),
        element_strides=sizes("element_strides", [1] * len(dims)),
        interleave=INTERLEAVES.index(arg.get("interleave", "none")),
        swizzle=SWIZZLES.index(arg.get("swizzle", "none")),
        promotion=PROMOTIONS.index(arg.get("l2", "none")),
        fill=FILLS.index(arg.get("oob", "zero")),
    )
    counts = [len(tensor_map.strides) + 1, len(tensor_map.box), len(tensor_map.element_strides)]
    if counts != [len(dims)] * 3:
        raise ValueError(f"tensor map of {tensor_map.buffer}: strides, box and element_strides do not fit {len(dims)} dims")
    return tensor_map


def aligned_object():
    """Zeroed memory for an encoded map."""
    memory = (ctypes.c_char * (BYTES + ALIGNMENT))()
    return (ctypes.c_char * BYTES).from_buffer(memory, -ctypes.addressof(memory) % ALIGNMENT)
