"""Compiles CUDA C++ to PTX with NVRTC: `python nvrtc.py libnvrtc.so.13 SOURCE compute_89 OUT`."""
import ctypes, sys

library, source, arch, out = sys.argv[1:]
nvrtc = ctypes.CDLL(library)


def check(status):
    if status:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f'nvrtc says {status}: {log.value.decode()}')


program, size = ctypes.c_void_p(), ctypes.c_size_t()
check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), open(source, 'rb').read(), source.encode(), 0, None, None))
options = [b'-arch=' + arch.encode(), b'-std=c++17']
check(nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)))
check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
ptx = ctypes.create_string_buffer(size.value)
check(nvrtc.nvrtcGetPTX(program, ptx))
open(out, 'wb').write(ptx.value)
