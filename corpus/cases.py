"""Writes the recipes of the corpus and the references they name: `python3 corpus/cases.py`, standard library only."""
import math, os
from operator import mul

import hopper_cases, styles
from recipes import AMPERE, LOG2_E, ROOT, TARGETS, Case, Drawn, Matrix, f32, softmax, store_modules


# What kernels should compute.

def moments(row, epsilon=1e-5):
    mean = math.fsum(row) / len(row)
    variance = math.fsum((value - mean) ** 2 for value in row) / len(row)
    return mean, 1 / math.sqrt(variance + epsilon)


def normalised(x, gain, bias):
    return [(value - mean) * rstd * g + b
            for row in x.matrix().rows for mean, rstd in [moments(row)]
            for value, g, b in zip(row, gain.values, bias.values)]


def weights_of(query, key, scale, causal):
    """Weights and log-sum-exp of each row; a row sees the keys up to its own index if causal."""
    weights, lse = [], []
    for at, row in enumerate(query.times_transposed(key).rows):
        seen = [value * scale for value in (row[:at + 1] if causal else row)]
        weights.append(softmax(seen) + [0.0] * (len(row) - len(seen)))
        lse.append(max(seen) + math.log(math.fsum(math.exp(value - max(seen)) for value in seen)))
    return Matrix(weights), lse


def attention(q, k, v, scale, causal):
    output, sums = [], []
    for query, key, value in zip(q.matrices(), k.matrices(), v.matrices()):
        weights, lse = weights_of(query, key, scale, causal)
        output += weights.times(value).flat()
        sums += lse
    return output, sums


# The cases.

def cuda_vectors():
    a, b = Drawn('f32', [1000], 1), Drawn('f32', [1000], 2)
    sums = [f32(x + y) for x, y in zip(a.values, b.values)]
    for name, what, grid, block, count in [
        ('vadd', 'vector addition with a guard for the tail', 4, 256, 1000),
        ('vadd4', 'vector addition, four elements at a time', 1, 64, 250),
    ]:
        case = Case(name, what, 'vadd', name, [grid, 1, 1], [block, 1, 1]).reads('a', a).reads('b', b)
        case.writes('c', 'f32', [1000], sums, 0, of='vadd').numbers('s32', count).write(TARGETS)
    parts = [a.values[at:at + 256] for at in range(0, 1000, 256)]
    case = Case('block_reduce', 'sum and maximum of each block', 'reduce', 'block_reduce', [4, 1, 1], [256, 1, 1])
    case.reads('x', a).writes('sums', 'f32', [4], [math.fsum(part) for part in parts], 1e-5)
    case.writes('maxs', 'f32', [4], [max(part) for part in parts], 0).numbers('s32', 1000).write(TARGETS)
    case.write_fast()


def cuda_rows():
    x = Drawn('f32', [6, 300], 3, 3.0)
    expected = [value for row in x.matrix().rows for value in softmax(row)]
    case = Case('softmax_rows', 'softmax of rows', 'softmax', 'softmax_rows', [6, 1, 1], [128, 1, 1], (300 + 128) * 4)
    case.reads('x', x).writes('y', 'f32', [6, 300], expected, 1e-5).numbers('s32', 300).write(TARGETS).write_fast()
    t = Drawn('f32', [70, 45], 4)
    case = Case('transpose', 'transposition through shared memory', 'transpose', 'transpose', [2, 3, 1], [32, 8, 1])
    case.reads('in', t).writes('out', 'f32', [45, 70], t.matrix().transposed().flat(), 0)
    case.numbers('s32', 70, 45).write(TARGETS)
    x, gain, bias = Drawn('f16', [5, 384], 5), Drawn('f16', [384], 6), Drawn('f16', [384], 7)
    case = Case('layernorm_h', 'layer normalisation, two halves at a time', 'layernorm', 'layernorm_h', [5, 1, 1],
                [96, 1, 1])
    case.reads('x', x).reads('g', gain).reads('b', bias)
    case.writes('y', 'f16', [5, 384], normalised(x, gain, bias), 1e-3)
    case.numbers('s32', 192).numbers('f32', f32(1e-5)).write(TARGETS).write_fast()


def cuda_atomics():
    x = Drawn('s32', [700], 8, 200.0)
    blocks = [sum(x.values[at:at + 256]) for at in range(0, 700, 256)]
    case = Case('cg_atomics', 'cooperative groups: shuffles, votes, matches and atomics of many kinds',
                'cg_atomics', 'cg_atomics', [3, 1, 1], [256, 1, 1])
    case.reads('x', x).numbers('s32', 700).writes('partial', 's32', [3], blocks, 0)
    case.writes('ticket', 'u32', [1], [0], 0, 'zeros').writes('total', 's32', [1], [sum(x.values)], 0, 'zeros')
    case.writes('evens', 's32', [1], [sum(value % 2 == 0 for value in x.values)], 0, 'zeros')
    case.writes('sumsq', 'u64', [1], [sum(value * value for value in x.values)], 0, 'zeros')
    case.writes('fsum', 'f32', [1], [float(sum(value % 4 != 0 for value in x.values))], 0, 'zeros')
    case.writes('mx', 's32', [1], [max(0, *x.values)], 0, 'const(-2147483648)').write(TARGETS)
    x = Drawn('u32', [3000], 9, 1e9)
    counts = [0] * 256
    for value in x.values:
        counts[value & 255] += 1
    case = Case('cluster_hist', 'histogram over the shared memory of a cluster', 'cluster_dsmem', 'cluster_hist',
                [8, 1, 1], [64, 1, 1])
    case.reads('x', x).numbers('s32', 3000).writes('hist', 'u32', [256], counts, 0, 'zeros')
    case.writes('ring', 'u32', [8], [1000 * (at // 4) + (at + 1) % 4 for at in range(8)], 0).write(['sm_90a'])


def cuda_gemm():
    a, b = Drawn('f16', [64, 48], 10), Drawn('f16', [48, 96], 11)
    case = Case('wmma_gemm', 'matrix product with nvcuda::wmma', 'wmma_gemm', 'wmma_gemm', [3, 2, 1], [128, 1, 1])
    case.reads('A', a).reads('B', b).multiplies('C', 'f32', [64, 96], 'A', 'B', 1e-5)
    case.numbers('s32', 64, 96, 48).write(TARGETS)
    a, b = Drawn('bf16', [64, 128], 12), Drawn('bf16', [128, 128], 13)
    case = Case('mma_gemm', 'matrix product with mma.sync, ldmatrix and a ring of cp.async', 'mma_gemm', 'mma_gemm',
                [2, 1, 1], [128, 1, 1], 3 * 2 * 64 * 32 * 2)
    case.reads('A', a).reads('B', b)
    case.multiplies('C', 'f32', [64, 128], 'A', 'B', 1e-5, transposed=True)
    case.numbers('s32', 64, 128, 128).write(AMPERE)
    # Seven tiles along k: every stage of the ring is refilled, by each copy of the unrolled loop.
    a, b = Drawn('bf16', [128, 448], 14), Drawn('bf16', [64, 448], 15)
    case = Case('wgmma_gemm', 'matrix product with wgmma on tiles that tensor maps bring', 'wgmma_gemm', 'wgmma_gemm',
                [1, 2, 1], [128, 1, 1], 32768)
    case.reads('A', a, argument=False).reads('B', b, argument=False).map('A', [64, 64], False).map('B', [64, 64], False)
    case.multiplies('C', 'f32', [128, 64], 'A', 'B', 1e-5, transposed=True)
    case.numbers('s32', 128, 64, 448).write(['sm_90a'])


def inputs(element, shape, seed):
    return [Drawn(element, shape, seed + at) for at in range(3)]


def cuda_attention():
    scale = 64 ** -0.5
    for causal in (False, True):
        suffix = f'c{int(causal)}'
        word = ', causal' if causal else ''
        q, k, v = inputs('f16', [2, 72, 64], 20)
        _, lse = attention(q, k, v, scale, causal)
        case = Case(f'fa_scalar_{suffix}', f'attention in scalar code{word}', 'fa_scalar', 'fa_scalar', [2, 2, 1],
                    [64, 1, 1])
        case.reads('Q', q).reads('K', k).reads('V', v).buffer('O', 'f16', q.shape)
        case.writes('L', 'f32', [2, 72], lse, 1e-4).numbers('s32', 72)
        case.attends('QKVO', causal, f32(scale * LOG2_E), 'log2e').numbers('s32', int(causal)).write(TARGETS).write_fast()
        q, k, v = inputs('f16', [1, 128, 64], 23)
        case = Case(f'fa_wmma_{suffix}', f'attention with nvcuda::wmma{word}', 'fa_wmma', 'fa_wmma', [2, 1, 1],
                    [128, 1, 1], 4 * 64 * 72 * 2 + 2 * 64 * 68 * 4 + 512)
        case.runs_on('sm_75', 'sm_80', 'A block of sm_75 has too little shared memory.')
        case.reads('Q', q).reads('K', k).reads('V', v).buffer('O', 'f16', q.shape)
        case.numbers('s32', 128).attends('QKVO', causal, f32(scale)).numbers('s32', int(causal)).write(TARGETS).write_fast()


def triton_rows():
    x, y = Drawn('f32', [3000], 30), Drawn('f32', [3000], 31)
    case = Case('tri_vadd', 'vector addition by Triton', 'tri_vadd', 'vadd', [3, 1, 1], [128, 1, 1])
    case.reads('x', x).reads('y', y).writes('z', 'f32', [3000], [f32(a + b) for a, b in zip(x.values, y.values)], 0)
    case.numbers('s32', 3000).scratch().write(TARGETS)
    x = Drawn('f32', [4, 700], 32, 3.0)
    expected = [value for row in x.matrix().rows for value in softmax(row)]
    case = Case('tri_softmax', 'softmax of rows by Triton', 'tri_softmax', 'softmax', [4, 1, 1], [128, 1, 1], 16)
    case.reads('x', x).writes('y', 'f32', [4, 700], expected, 1e-5).numbers('s32', 700, 700).scratch().write(TARGETS)
    x, gain, bias = Drawn('f16', [4, 400], 33), Drawn('f16', [400], 34), Drawn('f16', [400], 35)
    rows = [moments(row) for row in x.matrix().rows]
    case = Case('tri_layernorm', 'layer normalisation by Triton', 'tri_layernorm', 'layernorm', [4, 1, 1], [128, 1, 1],
                1024)
    case.reads('x', x).reads('g', gain).reads('b', bias)
    case.writes('y', 'f16', [4, 400], normalised(x, gain, bias), 1e-3)
    case.writes('mean', 'f32', [4], [mean for mean, _ in rows], 1e-4)
    case.writes('rstd', 'f32', [4], [rstd for _, rstd in rows], 1e-5)
    case.numbers('s32', 400).numbers('f32', f32(1e-5)).scratch().write(TARGETS)


def triton_product(name, what, a, b, tolerance, grid=(1, 1, 1)):
    m, k, n = *a.shape, b.shape[1]
    case = Case(name, what, name, 'matmul', grid, [128, 1, 1])
    case.reads('a', a).reads('b', b)
    case.multiplies('c', 'f32', [m, n], 'a', 'b', tolerance)
    return case.numbers('s32', m, n, k, k, n, n).scratch()


def triton_gemm():
    for element, targets, shared in [('f16', TARGETS[:1], [8192]), ('bf16', AMPERE, [12288, 12288, 16384])]:
        a, b = Drawn(element, [72, 112], 36), Drawn(element, [112, 80], 37)
        case = triton_product('tri_matmul', 'matrix product by Triton, with edges', a, b, 1e-5, [2, 2, 1])
        case.write(targets, shared)
    a, b = Drawn('f32', [64, 64], 38), Drawn('f32', [64, 64], 39)
    case = triton_product('tri_matmul_tf32', 'matrix product of tf32 by Triton', a, b, 2e-3)
    unfenced_copies(case, 562)
    case.write(['sm_80', 'sm_90a'], [32768, 49152])
    a, b = Drawn('e4m3', [64, 128], 40), Drawn('e4m3', [128, 64], 41)
    case = triton_product('tri_matmul_fp8', 'matrix product of e4m3 by Triton', a, b, 2e-3)
    case.write(['sm_90a'], [16384])


UNFENCED = 'The loop brings tiles with cp.async and multiplies them with wgmma, and no proxy fence lies between.'


def unfenced_copies(case, line):
    """The finding that Triton's pipelined loops give on sm_90a, at the first wgmma."""
    return case.finds('sm_90a', UNFENCED, (line, 'warning[proxy-fence]: after a `cp.async` wrote them'))


TWICE = 'Both groups of consumers store the same tile, with the same values: still a race between warps.'


ROLES = 'Every thread of the first warps stores what the roles do next, all the same value: still a race between warps.'


def roles_store(case, place, *lines):
    """The finding that Triton's warp specialisation gives where it tells the roles what to do."""
    finding = f'error[race-shared]: both write 8 bytes of `global_smem`+{place}'
    return case.finds('sm_90a', ROLES, *[(line, finding) for line in lines])


def triton_tensor_maps():
    # With ten tiles along k, the producer waits for each of the four stages to be given back, twice.
    rows = [('tri_matmul_tma', 'tensor maps', [1, 2, 1], 128, 98328, (48, 144, 192), (128, 128, 128)),
            ('tri_matmul_tma_ws', 'tensor maps and warp specialisation', [2, 1, 1], 384, 65632, (128, 64, 640),
             (64, 64, 64))]
    for name, what, grid, block, shared, (m, n, k), boxes in rows:
        a, b = Drawn('bf16', [m, k], 42), Drawn('bf16', [n, k], 43)
        case = Case(name, f'matrix product by Triton with {what}', name, 'matmul_tma', grid, [block, 1, 1], shared)
        case.reads('a', a, argument=False).reads('b', b, argument=False)
        case.multiplies('c', 'bf16', [m, n], 'a', 'b', 4e-3, transposed=True, argument=False)
        for buffer, rows_of_box in zip('abc', boxes):
            case.map(buffer, [64, rows_of_box])
        if name.endswith('_ws'):
            roles_store(case, 65624, 128, 207)
            case.finds('sm_90a', TWICE, (629, 'error[race-shared]: both write 8192 bytes of `c`'))
        case.numbers('s32', k).scratch().write(['sm_90a'])
    a, b = Drawn('bf16', [48, 192], 44), Drawn('bf16', [80, 192], 45)
    case = Case('tri_matmul_devtma', 'matrix product by Triton with tensor maps made on the device',
                'tri_matmul_devtma', 'matmul_devtma', [1, 1, 1], [256, 1, 1], 98328)
    case.reads('a', a).reads('b', b)
    case.multiplies('c', 'bf16', [48, 80], 'a', 'b', 4e-3, transposed=True)
    case.numbers('s32', 48, 80, 192).scratch(384).write(['sm_90a'])


def triton_attention():
    for name, causal in [('tri_fa_fwd', False), ('tri_fa_fwd_causal', True)]:
        for element, targets, shared in [('f16', TARGETS[:1], [32768]), ('bf16', AMPERE, [24576, 24576, 40960])]:
            q, k, v = inputs(element, [2, 80, 64], 50)
            _, lse = attention(q, k, v, 0.125, causal)
            what = 'attention by Triton, causal' if causal else 'attention by Triton'
            case = Case(name, what, name, 'fa_fwd', [2, 2, 1], [128, 1, 1])
            case.reads('q', q).reads('k', k).reads('v', v).buffer('o', element, q.shape)
            case.writes('lse', 'f32', [2, 80], lse, 1e-3, of=f'{name}_{element}')
            case.numbers('s32', 80).attends('qkvo', causal, f32(0.125 * LOG2_E), 'log2e').scratch()
            if name == 'tri_fa_fwd' and element == 'bf16':
                case.write(['sm_90a'], [40960], suffix='_t39')  # The same source: this Triton fences its copies.
            unfenced_copies(case, 344 if causal else 327).write(targets, shared)


def triton_attention_128():
    scale = 128 ** -0.5
    q, k, v = inputs('bf16', [256, 128], 53)
    _, lse = attention(q, k, v, scale, True)
    case = Case('tri_fa_fwd_d128', 'attention by Triton, causal, head dimension 128', 'tri_fa_fwd_d128', 'fa_fwd',
                [2, 1, 1], [256, 1, 1])
    case.reads('q', q).reads('k', k).reads('v', v).buffer('o', 'bf16', [256, 128])
    case.writes('lse', 'f32', [256], lse, 1e-3).numbers('s32', 256).attends('qkvo', True, f32(scale * LOG2_E), 'log2e')
    unfenced_copies(case, 547).scratch().write(['sm_80', 'sm_90a'], [98304, 131072])
    rows = [('tri_fa_fwd_tma', 'tensor maps', [2, 1, 1], 256, 98336, 128),
            ('tri_fa_fwd_tma_ws', 'tensor maps and warp specialisation', [4, 1, 1], 384, 114832, 64)]
    for name, what, grid, block, shared, queries in rows:
        case = Case(name, f'attention by Triton with {what}, causal', name, 'fa_fwd_tma', grid, [block, 1, 1], shared)
        for buffer, drawn in zip('qkv', (q, k, v)):
            case.reads(buffer, drawn, argument=False)
        case.buffer('o', 'bf16', [256, 128], argument=False)
        for buffer, rows_of_box in zip('qkvo', (queries, 64, 64, queries)):
            case.map(buffer, [64, rows_of_box])
        if name.endswith('_ws'):
            roles_store(case, 114824, 182, 342)
            case.finds('sm_90a', TWICE, (2113, 'error[race-shared]: both write 128 bytes of `o`'))
        case.numbers('s32', 256).attends('qkvo', True, f32(scale * LOG2_E), 'log2e').scratch().write(['sm_90a'])


def triton_backward():
    scale = 0.125
    q, k, v, gradient = (Drawn('bf16', [128, 64], seed) for seed in range(56, 60))
    query, key, value, grad = (drawn.matrix() for drawn in (q, k, v, gradient))
    weights, lse = weights_of(query, key, scale, True)
    output = weights.times(value)
    delta = [sum(map(mul, *rows)) for rows in zip(output.rows, grad.rows)]
    products = grad.times_transposed(value)
    scores = Matrix([[w * (p - d) * scale for w, p in zip(weight, product)]
                     for weight, product, d in zip(weights.rows, products.rows, delta)])
    case = Case('tri_fa_bwd', 'gradients of causal attention by Triton', 'tri_fa_bwd', 'fa_bwd', [2, 1, 1], [128, 1, 1])
    for name, drawn in [('q', q), ('k', k), ('v', v), ('do', gradient)]:
        case.reads(name, drawn)
    case.reads_file('lse', [128], lse).reads_file('delta', [128], delta)
    case.writes('dq', 'f32', [128, 64], scores.times(key).flat(), 1e-2, 'zeros')
    case.writes('dk', 'bf16', [128, 64], scores.transposed().times(query).flat(), 1e-2)
    case.writes('dv', 'bf16', [128, 64], weights.transposed().times(grad).flat(), 1e-2)
    unfenced_copies(case, 505)
    case.numbers('s32', 128).numbers('f32', scale).scratch().write(['sm_80', 'sm_90a'], [57856, 66048])


if __name__ == '__main__':
    os.makedirs(f'{ROOT}/data', exist_ok=True)
    store_modules()
    for cases in [cuda_vectors, cuda_rows, cuda_atomics, cuda_gemm, cuda_attention, triton_rows, triton_gemm,
                  triton_tensor_maps, triton_attention, triton_attention_128, triton_backward, *styles.ALL,
                  *hopper_cases.ALL]:
        cases()
