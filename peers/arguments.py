"""A launch's arguments as the driver takes them: an array of pointers to the values."""

import ctypes

import tensor_map
from expression import evaluate

INTEGERS = {
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8,
    "s16": ctypes.c_int16,
    "s32": ctypes.c_int32,
    "s64": ctypes.c_int64,
}
FLOATS = {"f32": ctypes.c_float, "f64": ctypes.c_double}


class Packed:
    """Arguments of one launch. The driver reads them while it launches, so this must live until then."""

    def __init__(self, values):
        self.values = values
        self.pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))


def pack(launch, kernel, addresses, encode_map):
    """Packs a launch's arguments.

    `addresses` gives the address of each buffer, `encode_map(map, address)` the 128 bytes of a tensor map.
    """
    return Packed([value(arg, kernel, addresses, encode_map) for arg in launch.args])


def value(arg, kernel, addresses, encode_map):
    """One argument as a ctypes value of the parameter's size."""
    if "buffer" in arg:
        return ctypes.c_uint64(addresses[arg["buffer"]] + evaluate(arg.get("offset", 0), kernel.names))
    if "map" in arg:
        described = tensor_map.resolve(arg, kernel.names, kernel.buffers)
        return encode_map(described, addresses[described.buffer])
    if "null" in arg:
        return ctypes.c_uint64(0)
    for kind, ctype in INTEGERS.items():
        if kind in arg:
            return integer(kind, ctype, evaluate(arg[kind], kernel.names))
    for kind, ctype in FLOATS.items():
        if kind in arg:
            return ctype(arg[kind])
    raise ValueError(f"argument {arg}: expected a buffer, a map, null, or one of {', '.join([*INTEGERS, *FLOATS])}")


def integer(kind, ctype, number):
    packed = ctype(number)
    if packed.value != number:  # ctypes wraps around silently
        raise ValueError(f"argument {number} does not fit in {kind}")
    return packed


def describe(arg, kernel):
    """One argument in words, its expressions evaluated."""
    name = f"{arg['name']} = " if "name" in arg else ""
    if "buffer" in arg:
        return f"{name}address of {arg['buffer']} {list(kernel.buffers[arg['buffer']].shape)}"
    if "map" in arg:
        described = tensor_map.resolve(arg, kernel.names, kernel.buffers)
        return f"{name}map of {described.buffer} {list(described.dims)} in boxes of {list(described.box)}"
    kind = next(kind for kind in arg if kind != "name")
    return f"{name}{kind} {value(arg, kernel, {}, None).value}"
