"""CuTe DSL kernels, compiled without a GPU: `python cute/kernels.py cute_gemm.sm_80 OUT` writes one module to OUT."""
import glob, os, shutil, sys, tempfile

NAME, ARCH = sys.argv[1].split('.')
FOLDER = tempfile.mkdtemp()
# The package reads these once, when it is imported.
os.environ['CUTE_DSL_ARCH'] = ARCH
os.environ['CUTE_DSL_KEEP_PTX'] = '1'
os.environ['CUTE_DSL_DUMP_DIR'] = FOLDER

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import make_ptr
from cutlass.tensor_utils import LayoutEnum
from cutlass.utils import hopper_helpers

M, N, K, TILE = 64, 32, 64, 32


@cute.kernel
def gemm_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, copy: cute.TiledCopy,
                layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout):
    """One block: tiles of A and B through swizzled shared memory, cp.async, ldmatrix and mma.sync."""
    thread, _, _ = cute.arch.thread_idx()
    memory = cutlass.memory.SmemAllocator()
    shared_a = memory.allocate_tensor(cutlass.BFloat16, layout_a, 16)
    shared_b = memory.allocate_tensor(cutlass.BFloat16, layout_b, 16)
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
    swizzled = lambda *shape: cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0,
                                                        cute.make_ordered_layout(shape, order=(1, 0)))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.BFloat16, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_ordered_layout((32, 4), order=(1, 0)), cute.make_layout((1, 8)))
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cutlass.BFloat16, cutlass.Float32, (16, 8, 16)), (2, 2, 1),
                              permutation_mnk=(32, 32, 16))
    rows = lambda pointer, *shape: cute.make_tensor(pointer, cute.make_ordered_layout(shape, order=(1, 0)))
    gemm_kernel(rows(a, M, K), rows(b, N, K), rows(c, M, N), mma, copy, swizzled(M, TILE), swizzled(N, TILE)).launch(
        grid=(1, 1, 1), block=(128, 1, 1))


@cute.kernel
def wgmma_kernel(tma_a: cute.CopyAtom, a: cute.Tensor, tma_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
                 mma: cute.TiledMma, layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout):
    """One warpgroup: TMA brings both operands whole, wgmma multiplies them."""
    thread, _, _ = cute.arch.thread_idx()
    memory = cutlass.memory.SmemAllocator()
    full = memory.allocate_array(cutlass.Int64, 1)
    shared_a = memory.allocate_tensor(cutlass.BFloat16, layout_a.outer, 1024, layout_a.inner)
    shared_b = memory.allocate_tensor(cutlass.BFloat16, layout_b.outer, 1024, layout_b.inner)
    if thread == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    grouped = lambda tensor: cute.group_modes(tensor, 0, 2)
    to_a, from_a = cpasync.tma_partition(tma_a, 0, cute.make_layout(1), grouped(shared_a),
                                         grouped(cute.local_tile(a, (M, K), (0, None))))
    to_b, from_b = cpasync.tma_partition(tma_b, 0, cute.make_layout(1), grouped(shared_b),
                                         grouped(cute.local_tile(b, (N, K), (0, None))))
    if thread < 32:
        with cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(full, (M + N) * K * 2)
        cute.copy(tma_a, from_a[None, 0], to_a[None, 0], tma_bar_ptr=full)
        cute.copy(tma_b, from_b[None, 0], to_b[None, 0], tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    part = mma.get_slice(thread)
    tiles_a = mma.make_fragment_A(part.partition_A(shared_a))
    tiles_b = mma.make_fragment_B(part.partition_B(shared_b))
    result = part.partition_C(c)
    sums = mma.make_fragment_C(result)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    for k in cutlass.range_constexpr(K // 16):
        cute.gemm(mma, sums, tiles_a[None, None, k, 0], tiles_b[None, None, k, 0], sums)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(sums, result)


@cute.jit
def wgmma(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer):
    rows = lambda pointer, *shape: cute.make_tensor(pointer, cute.make_ordered_layout(shape, order=(1, 0)))
    major, element = OperandMajorMode.K, cutlass.BFloat16
    mma = hopper_helpers.make_trivial_tiled_mma(element, element, major, major, cutlass.Float32, (1, 1, 1), (64, N))
    layout_a = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (M, N, K), element, 1)
    layout_b = hopper_helpers.make_smem_layout_b(LayoutEnum.ROW_MAJOR, (M, N, K), element, 1)
    operation = cpasync.CopyBulkTensorTileG2SOp()
    stage = lambda layout: cute.slice_(layout, (None, None, 0))
    tma_a, view_a = cpasync.make_tiled_tma_atom(operation, rows(a, M, K), stage(layout_a), (M, K))
    tma_b, view_b = cpasync.make_tiled_tma_atom(operation, rows(b, N, K), stage(layout_b), (N, K))
    wgmma_kernel(tma_a, view_a, tma_b, view_b, rows(c, M, N), mma, layout_a, layout_b).launch(
        grid=(1, 1, 1), block=(128, 1, 1))


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
    'cute_wgmma': (wgmma, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32),
    'cute_softmax': (softmax, cutlass.Float32, cutlass.Float32),
}

if __name__ == '__main__':
    function, *elements = KERNELS[NAME]
    cute.compile(function, *map(pointer, elements))
    [written] = glob.glob(f'{FOLDER}/*.ptx')
    shutil.move(written, f'{sys.argv[2]}/{NAME}.{ARCH}.ptx')
