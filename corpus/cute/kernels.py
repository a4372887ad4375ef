"""CuTe DSL kernels, compiled without a GPU: `python cute/kernels.py cute_gemm.sm_80 OUT` writes OUT/cute_gemm.sm_80.ptx."""
import glob, os, shutil, sys, tempfile

NAME, ARCH = sys.argv[1].split('.')
FOLDER = tempfile.mkdtemp()
# The package reads these once, when it is imported.
os.environ['CUTE_DSL_ARCH'] = ARCH
os.environ['CUTE_DSL_KEEP_PTX'] = '1'
os.environ['CUTE_DSL_DUMP_DIR'] = FOLDER

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import make_ptr

M, N, K, TILE = 64, 64, 64, 32


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, copy: cute.TiledCopy,
                layout: cute.ComposedLayout):
    """One block: tiles of A and B through swizzled shared memory, cp.async, ldmatrix and mma.sync."""
    thread, _, _ = cute.arch.thread_idx()
    memory = cutlass.memory.SmemAllocator()
    shared_a = memory.allocate_tensor(cutlass.BFloat16, layout, 16)
    shared_b = memory.allocate_tensor(cutlass.BFloat16, layout, 16)
    mine, part = copy.get_slice(thread), mma.get_slice(thread)
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.BFloat16)
    load_a, load_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    part_a, part_b = load_a.get_slice(thread), load_b.get_slice(thread)
    registers_a = mma.make_fragment_A(part.partition_A(shared_a))
    registers_b = mma.make_fragment_B(part.partition_B(shared_b))
    result = part.partition_C(c)
    sums = mma.make_fragment_C(result)
    sums.fill(0.0)
    for k in cutlass.range(K // TILE, unroll=1):
        cute.copy(copy, mine.partition_S(cute.local_tile(a, (M, TILE), (0, k))), mine.partition_D(shared_a))
        cute.copy(copy, mine.partition_S(cute.local_tile(b, (N, TILE), (0, k))), mine.partition_D(shared_b))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(load_a, part_a.partition_S(shared_a), part_a.retile(registers_a))
        cute.copy(load_b, part_b.partition_S(shared_b), part_b.retile(registers_b))
        cute.gemm(mma, sums, registers_a, registers_b, sums)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, result)


@cute.jit
def gemm(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    layout = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_ordered_layout((M, TILE), order=(1, 0)))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.BFloat16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_ordered_layout((32, 4), order=(1, 0)), cute.make_layout((1, 8)))
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.BFloat16, cutlass.Float32, (16, 8, 16)), (2, 2, 1),
                              permutation_mnk=(32, 32, 16))
    rows = lambda pointer, *shape: cute.make_tensor(pointer, cute.make_ordered_layout(shape, order=(1, 0)))
    gemm_kernel(rows(a, M, K), rows(b, N, K), rows(c, M, N), mma, copy, layout).launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    """A warp per row, four values at a time."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lane, row = thread % 32, block * 4 + thread // 32
    values = cute.local_tile(x, (1, 4), (row, lane)).load()
    top = cute.arch.warp_reduction_max(values.reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, 0))
    weights = cute.math.exp(values - top, fastmath=True)
    total = cute.arch.warp_reduction_sum(weights.reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0))
    cute.local_tile(y, (1, 4), (row, lane)).store(weights / total)


@cute.jit
def softmax(x: cute.Pointer, y: cute.Pointer):
    rows = lambda pointer: cute.make_tensor(pointer, cute.make_ordered_layout((8, 128), order=(1, 0)))
    softmax_kernel(rows(x), rows(y)).launch(grid=(2, 1, 1), block=(128, 1, 1))


def pointer(element):
    return make_ptr(element, 0, cute.AddressSpace.gmem, assumed_align=16)


KERNELS = {
    'cute_gemm': (gemm, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32),
    'cute_softmax': (softmax, cutlass.Float32, cutlass.Float32),
}

if __name__ == '__main__':
    function, *elements = KERNELS[NAME]
    cute.compile(function, *map(pointer, elements))
    [written] = glob.glob(f'{FOLDER}/*.ptx')
    shutil.move(written, f'{sys.argv[2]}/{NAME}.{ARCH}.ptx')
