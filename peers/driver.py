"""The few calls of the CUDA driver that launch a kernel, through ctypes.

They work in the context that torch has made current. Signatures and numbers are those of cuda.h, CUDA 12 and 13.
"""

import ctypes
import functools
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint32, c_uint64, c_void_p

import tensor_map

JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 5, 6  # CUjit_option
LOCAL_SIZE_BYTES, NUM_REGS, MAX_DYNAMIC_SHARED_SIZE_BYTES = 3, 4, 8  # CUfunction_attribute
CLUSTER_DIMENSION, PROGRAMMATIC_STREAM_SERIALIZATION = 4, 6  # CUlaunchAttributeID
LOG_BYTES = 8192


class DriverError(RuntimeError):
    """What the driver refused, and its reason."""


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number, and a union of 64 bytes at offset 8."""

    _fields_ = [("id", c_int), ("pad", c_char * 4), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


SIGNATURES = {
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuCtxCreate_v2": (POINTER(c_void_p), c_uint, c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemsetD8_v2": (c_uint64, c_ubyte, c_size_t),
    "cuModuleLoadDataEx": (POINTER(c_void_p), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuLaunchKernelEx": (POINTER(LaunchConfig), c_void_p, POINTER(c_void_p), POINTER(c_void_p)),
    # map, type, rank, address, dims, strides, box, element strides, interleave, swizzle, L2 promotion, fill
    "cuTensorMapEncodeTiled": (
        *(c_void_p, c_int, c_uint32, c_void_p),
        *(POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint32), POINTER(c_uint32)),
        *(c_int, c_int, c_int, c_int),
    ),
}


class Driver:
    """libcuda, with what it needs to know about its functions."""

    def __init__(self, library="libcuda.so.1"):
        self.library = ctypes.CDLL(library)
        for name, types in SIGNATURES.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, c_int

    def call(self, name, *args):
        """Calls a function of the driver; an error becomes an exception."""
        status = getattr(self.library, name)(*args)
        if status:
            raise DriverError(f"{name}: {self.text('cuGetErrorName', status)}: {self.text('cuGetErrorString', status)}")

    def text(self, name, status):
        text = c_char_p()
        getattr(self.library, name)(status, byref(text))
        return (text.value or b"unknown").decode()

    @functools.cached_property
    def neighbour(self):
        """One for the life of the process."""
        return Neighbour(self)

    @functools.cache
    def load(self, ptx):
        """The module that the driver compiles out of PTX, for the life of the process."""
        module, log = c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 2)(JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        # An option's value stands in place of the pointer to it.
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        try:
            self.call("cuModuleLoadDataEx", byref(module), ptx.encode(), 2, options, values)
        except DriverError as error:
            raise DriverError(f"{error}; {' '.join(log.value.decode(errors='replace').split())}") from None
        return module

    def function(self, module, entry, shared_bytes):
        """An entry of a module, allowed to take this much dynamic shared memory."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, entry.encode())
        self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        return function

    def attribute(self, function, number):
        value = c_int()
        self.call("cuFuncGetAttribute", byref(value), number, function)
        return value.value

    def resources(self, function):
        """What the compiler gave the kernel."""
        return {
            "registers": self.attribute(function, NUM_REGS),
            "local_bytes": self.attribute(function, LOCAL_SIZE_BYTES),
        }

    def launch(self, function, launch, packed, stream):
        """Launches a kernel on a stream, which may be capturing."""
        attributes = launch_attributes(launch)
        config = LaunchConfig(launch.grid, launch.block, launch.shared, stream, attributes, len(attributes))
        self.call("cuLaunchKernelEx", byref(config), function, packed.pointers, None)

    def encode_map(self, described, address):
        """The 128 bytes of a tensor map of a buffer at this address."""
        encoded = tensor_map.aligned_object()
        rank = len(described.dims)
        self.call(
            "cuTensorMapEncodeTiled",
            *(ctypes.addressof(encoded), described.type, rank, address),
            (c_uint64 * rank)(*described.dims),
            (c_uint64 * rank)(*described.strides),
            (c_uint32 * rank)(*described.box),
            (c_uint32 * rank)(*described.element_strides),
            *(described.interleave, described.swizzle, described.promotion, described.fill),
        )
        return encoded


def launch_attributes(launch):
    """The array of launch attributes that a recipe's launch asks for."""
    wanted = []
    if launch.cluster:
        wanted.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=(*launch.cluster,)))
    if launch.overlap:
        wanted.append(LaunchAttribute(id=PROGRAMMATIC_STREAM_SERIALIZATION, value=(1,)))
    return (LaunchAttribute * len(wanted))(*wanted)


class Neighbour:
    """Another context on the same GPU: for some 50 ms after it has worked there, launches in every other context cost less.

    `crates/cuda/src/neighbour.rs` says by how much. Who compares processes lets one work right before each sample.
    """

    BYTES = 4096

    def __init__(self, driver, device=0):
        self.driver, self.context, self.memory = driver, c_void_p(), c_uint64()
        driver.call("cuCtxCreate_v2", byref(self.context), 0, device)
        driver.call("cuMemAlloc_v2", byref(self.memory), self.BYTES)
        self.leave()

    def work(self):
        self.driver.call("cuCtxPushCurrent_v2", self.context)
        self.driver.call("cuMemsetD8_v2", self.memory, 0, self.BYTES)
        self.driver.call("cuCtxSynchronize")
        self.leave()

    def leave(self):
        self.driver.call("cuCtxPopCurrent_v2", byref(c_void_p()))
