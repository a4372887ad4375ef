"""The cases beyond the first ones: other styles of kernel, other compilers. `cases.py` writes them with the rest."""
import math, re
from itertools import accumulate

from recipes import ROUND, Case, Drawn, f32, module_path, module_text, signed, softmax

WORD = 1 << 32


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


# Products.

def split_k():
    a, b = Drawn('f32', [32, 96], 100), Drawn('f32', [96, 32], 101)
    case = Case('splitk_two', 'split-k matrix product: a second kernel adds the parts', 'splitk', 'splitk_parts',
                [2, 2, 3], [16, 16, 1])
    case.reads('A', a).reads('B', b).buffer('parts', 'f32', [3, 32, 32]).numbers('s32', 32, 32, 96)
    case.then('splitk_add', [8, 1, 1], [128, 1, 1]).passes('parts')
    case.multiplies('C', 'f32', [32, 32], 'A', 'B', 1e-5).numbers('s32', 1024, 3).write(['sm_75'])
    case = Case('splitk_ticket', 'split-k matrix product: the last block of a tile adds the parts', 'splitk',
                'splitk_ticket', [2, 2, 3], [16, 16, 1])
    case.reads('A', a).reads('B', b).buffer('parts', 'f32', [3, 32, 32])
    case.multiplies('C', 'f32', [32, 32], 'A', 'B', 1e-5)
    case.computes('tickets', 'u32', [4], [0] * 4, 'zeros').numbers('s32', 32, 32, 96).write(['sm_75'])


def integer_products():
    a, b = Drawn('s8', [20, 72], 102, 40.0), Drawn('s8', [24, 72], 103, 40.0)
    case = Case('dp4a_gemm', 'int8 matrix product with dp4a, with edges', 'int8_gemm', 'dp4a_gemm', [2, 2, 1],
                [16, 16, 1])
    case.reads('A', a).reads('B', b)
    case.computes('C', 's32', [20, 24], a.matrix().times_transposed(b.matrix()).flat())
    case.numbers('s32', 20, 24, 18).write(['sm_75'])
    a, b = Drawn('s8', [32, 64], 104, 60.0), Drawn('s8', [24, 64], 105, 60.0)
    products = a.matrix().times_transposed(b.matrix()).flat()
    case = Case('imma_gemm', 'int8 matrix product on tensor cores, requantised', 'int8_gemm', 'imma_gemm', [3, 2, 1],
                [32, 1, 1])
    case.reads('A', a).reads('B', b).computes('C', 's32', [32, 24], products)
    case.computes('Q', 's8', [32, 24], [max(-128, min(127, product >> 8)) for product in products])
    case.numbers('s32', 24, 64, 8).write(['sm_75', 'sm_80'])


def float_products():
    a, b = Drawn('f32', [32, 64], 106), Drawn('f32', [16, 64], 107)
    small = [[[ROUND['e4m3'](value) for value in row] for row in drawn.matrix().rows] for drawn in (a, b)]
    products = [dot(row, column) for row in small[0] for column in small[1]]
    case = Case('fp8_gemm', 'matrix product of f32 that is quantised to e4m3 on the way', 'fp8_gemm', 'fp8_gemm',
                [2, 2, 1], [32, 1, 1])
    case.reads('A', a).reads('B', b).writes('C', 'f32', [32, 16], products, 2e-3)
    case.writes('C8', 'e5m2', [32, 16], products, 0.1, of='fp8_gemm').numbers('s32', 16, 64).write(['sm_89'])
    a, b = Drawn('f64', [16, 24], 108), Drawn('f64', [24, 16], 109)
    case = Case('dgemm', 'double-precision matrix product on tensor cores', 'dgemm', 'dgemm_wmma', [2, 2, 1],
                [32, 1, 1])
    case.reads('A', a).reads('B', b).multiplies('C', 'f64', [16, 16], 'A', 'B', 1e-14)
    case.numbers('s32', 16, 24).write(['sm_80'])


def local_fragment():
    case = Case('wmma_local', 'a WMMA fragment from local memory', 'wmma_local', 'wmma_local', [1, 1, 1], [32, 1, 1])
    case.finds('sm_80', 'wmma.load cannot read local memory: nvcc warns and leaves a trap for the whole kernel.',
               (23, 'error[trap]: `trap` is executed by all lanes of warp 0'))
    case.reads('x', Drawn('f16', [256], 110)).computes('y', 'f32', [256], [0.0] * 256, 'zeros').write(['sm_80'])


# Scans, histograms, orders.

def scans():
    x = Drawn('u32', [500], 111, 1e9)
    case = Case('scan_lookback', 'inclusive scan in one pass with decoupled look-back', 'scan', 'scan_lookback',
                [4, 1, 1], [128, 1, 1])
    case.reads('x', x).computes('y', 'u32', [500], [value % WORD for value in accumulate(x.values)])
    case.buffer('state', 'u64', [4], 'init = "zeros"').computes('next', 'u32', [1], [4], 'zeros')
    case.numbers('s32', 500).write(['sm_80'])
    x = Drawn('u8', [2000], 112, 40.0)
    counts = [x.values.count(value) for value in range(256)]
    case = Case('histogram', 'histogram of bytes with atomics in shared memory', 'histogram', 'histogram', [3, 1, 1],
                [128, 1, 1])
    case.reads('x', x).numbers('s32', 500).computes('bins', 'u32', [256], counts, 'zeros').write(['sm_75'])
    case.write(['sm_80'], suffix='_rtc')


def orders():
    x = Drawn('f32', [2, 512], 113)
    places = [sorted(range(512), key=row.__getitem__) for row in x.matrix().rows]
    keys = [row[at] for row, order in zip(x.matrix().rows, places) for at in order]
    case = Case('bitonic', 'bitonic sort of keys with values', 'sort', 'bitonic', [2, 1, 1], [256, 1, 1])
    case.reads('in', x).computes('keys', 'f32', [2, 512], keys)
    case.computes('from', 's32', [2, 512], [at for order in places for at in order]).write(['sm_75'])
    x = Drawn('u32', [256], 114, 1e9)
    case = Case('radix_pass', 'two stable passes of a radix sort', 'sort', 'radix_pass', [1, 1, 1], [256, 1, 1])
    case.reads('in', x)
    case.computes('middle', 'u32', [256], sorted(x.values, key=lambda value: value & 15)).numbers('s32', 0)
    case.then('radix_pass', [1, 1, 1], [256, 1, 1]).passes('middle')
    case.computes('out', 'u32', [256], sorted(x.values, key=lambda value: value & 255)).numbers('s32', 4)
    case.write(['sm_75'])
    x = Drawn('f32', [3, 300], 115)
    places = [sorted(range(300), key=lambda at: -row[at])[:4] for row in x.matrix().rows]
    case = Case('top_k', 'the four largest of each row', 'top_k', 'top_k', [3, 1, 1], [128, 1, 1])
    case.reads('x', x)
    case.computes('values', 'f32', [3, 4], [row[at] for row, top in zip(x.matrix().rows, places) for at in top])
    case.computes('places', 's32', [3, 4], [at for top in places for at in top]).numbers('s32', 300, 4)
    case.write(['sm_75']).write(['sm_90a'], suffix='_rtc')


# Asynchronous copies and barriers.

def pipelines():
    x = Drawn('f32', [2, 5, 256], 116)
    rows = [x.values[at:at + 1280] for at in (0, 1280)]
    sums = [0.5 * sum(row[at::256]) for row in rows for at in range(256)]
    case = Case('pipeline_thread', 'double buffering with the cuda::pipeline of a thread', 'pipeline',
                'pipeline_thread', [2, 1, 1], [64, 1, 1])
    case.reads('x', x).writes('y', 'f32', [2, 256], sums, 1e-6).numbers('s32', 5).numbers('f32', 0.5).write(['sm_80'])
    # So many tiles that an arrival too few or too many in each phase adds up to a copy that nobody waits for.
    count = 80
    x = Drawn('f32', [2, count, 64], 117)
    tiles = [[x.values[(block * count + tile) * 64:][:64] for tile in range(count)] for block in range(2)]
    sums = [sum(tile[63 - at] * 0.5 ** (count - 1 - age) for age, tile in enumerate(block)) for block in tiles
            for at in range(64)]
    case = Case('pipeline_block', 'double buffering with the cuda::pipeline of a block', 'pipeline', 'pipeline_block',
                [2, 1, 1], [64, 1, 1])
    case.reads('x', x).writes('y', 'f32', [2, 64], sums, 1e-6).numbers('s32', count).write(['sm_80'])


def barriers():
    x = Drawn('s32', [6, 96], 118, 1e6)
    sums = [0] * 96
    for row in x.matrix().rows:
        sums = [signed(total * 5 + 3 * row[at ^ 1], 32) for at, total in enumerate(sums)]
    for suffix, target in [('', 'sm_80'), ('_134', 'sm_90a')]:
        case = Case('barrier_ring', 'a producer and three consumer warps with cuda::barrier', 'barrier',
                    'barrier_ring', [1, 1, 1], [128, 1, 1])
        case.reads('x', x).computes('y', 's32', [96], sums).numbers('s32', 6).write([target], suffix=suffix)


def hopper():
    x = Drawn('f32', [2, 300], 119, 3.0)
    expected = [value for row in x.matrix().rows for value in softmax(row)]
    case = Case('cluster_softmax', 'softmax of a row by a cluster of four blocks', 'cluster_reduce', 'cluster_softmax',
                [8, 1, 1], [64, 1, 1])
    case.reads('x', x).writes('y', 'f32', [2, 300], expected, 1e-5).numbers('s32', 300).write(['sm_90a'], suffix='_134')
    x = Drawn('f32', [2, 3, 256], 120)
    expected = [f32(0.5 * value + (at // 128 % 2)) for at, value in enumerate(x.values)]
    case = Case('bulk_copy', 'bulk copies in and out through cuda::ptx', 'bulk_copy', 'bulk_copy', [2, 1, 1],
                [128, 1, 1])
    case.reads('x', x).computes('y', 'f32', [2, 3, 256], expected).numbers('s32', 3).numbers('f32', 0.5)
    case.write(['sm_90a'])


# Rows and images.

def transposed_copy():
    x = Drawn('u16', [64, 96], 121, 10000.0)
    case = Case('ldmatrix_trans', 'transposition with ldmatrix.trans, on sm_90 stmatrix too', 'ldmatrix_trans',
                'ldmatrix_trans', [3, 2, 1], [32, 1, 1])
    case.reads('in', x).computes('out', 'u16', [96, 64], x.matrix().transposed().flat())
    case.numbers('s32', 64, 96).write(['sm_75', 'sm_90a'])


def transformer_parts():
    x, gain = Drawn('bf16', [3, 512], 122), Drawn('bf16', [512], 123)
    expected = [value * g / math.sqrt(dot(row, row) / 512 + 1e-5) for row in x.matrix().rows
                for value, g in zip(row, gain.values)]
    for suffix, target in [('', 'sm_80'), ('_134', 'sm_90a')]:
        case = Case('rmsnorm', 'RMSNorm, eight bf16 at a time', 'rmsnorm', 'rmsnorm', [3, 1, 1], [64, 1, 1])
        case.reads('x', x).reads('g', gain).writes('y', 'bf16', [3, 512], expected, 4e-3).numbers('f32', f32(1e-5))
        case.write([target], suffix=suffix)
    x, frequency = Drawn('f32', [6, 32, 2], 124), Drawn('f32', [32], 125)
    expected = []
    for at, (left, right) in enumerate(zip(x.values[::2], x.values[1::2])):
        angle = f32((200000 + at // 32) * frequency.values[at % 32])
        expected += [left * math.cos(angle) - right * math.sin(angle), left * math.sin(angle) + right * math.cos(angle)]
    case = Case('rope', 'rotary embedding at far positions', 'rope', 'rope', [6, 1, 1], [32, 1, 1])
    case.reads('x', x).reads('frequency', frequency).writes('y', 'f32', [6, 32, 2], expected, 1e-6)
    case.numbers('s32', 200000).write(['sm_89'], suffix='_134')
    gate, up = Drawn('bf16', [200], 126, 2.0), Drawn('bf16', [200], 127)
    expected = [g * u / (1 + math.exp(-g)) for g, u in zip(gate.values, up.values)]
    case = Case('swiglu', 'SwiGLU with bf16x2 intrinsics', 'swiglu', 'swiglu', [1, 1, 1], [32, 1, 1])
    case.reads('gate', gate).reads('up', up).writes('y', 'bf16', [200], expected, 1e-2)
    case.writes('top', 'bf16', [1], [max(map(abs, expected))], 1e-2).numbers('s32', 100)
    case.write(['sm_90a'], suffix='_134')


def losses():
    x, labels = Drawn('f16', [4, 200], 128, 2.0), [3, 199, 0, 77]
    loss = [max(row) + math.log(math.fsum(math.exp(value - max(row)) for value in row)) - row[label]
            for row, label in zip(x.matrix().rows, labels)]
    case = Case('cross_entropy', 'cross entropy with an online softmax', 'cross_entropy', 'cross_entropy', [4, 1, 1],
                [32, 1, 1])
    case.reads('logits', x).buffer('labels', 's32', [4], f'init = {labels}').writes('loss', 'f32', [4], loss, 1e-5)
    steps = round(math.fsum(loss) * 2**20)
    case.writes('total', 'u64', [1], [steps], 1e-5, 'zeros').numbers('s32', 200).write(['sm_90a'])


def images():
    x, (height, width), rate = Drawn('f32', [21, 37], 129), (21, 37), f32(0.2)
    rows, expected = x.matrix().rows, []
    for v in range(height):
        for u in range(width):
            around = rows[max(v - 1, 0)][u] + rows[min(v + 1, height - 1)][u]
            around += rows[v][max(u - 1, 0)] + rows[v][min(u + 1, width - 1)]
            expected.append(rows[v][u] + rate * (around - 4 * rows[v][u]))
    case = Case('stencil', 'five-point stencil with a halo', 'stencil', 'stencil', [3, 3, 1], [16, 8, 1])
    case.reads('in', x).writes('out', 'f32', [21, 37], expected, 1e-6).numbers('s32', 21, 37).numbers('f32', rate)
    case.write(['sm_80'], suffix='_134')
    x, w = Drawn('f16', [8, 12, 12], 130), Drawn('f16', [8, 4, 9], 131)
    taps = [0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625]
    pixel = lambda channel, v, u: x.values[(channel * 12 + v) * 12 + u] if 0 <= v < 12 and 0 <= u < 12 else 0.0
    weight = lambda o, i, tap: w.values[(o * 4 + i) * 9 + tap] + taps[tap]
    expected = [sum(pixel(o // 4 * 4 + i, v + tap // 3 - 1, u + tap % 3 - 1) * weight(o, i, tap)
                    for i in range(4) for tap in range(9))
                for o in range(8) for v in range(12) for u in range(12)]
    expected = [max(0.0, value) for value in expected]
    case = Case('grouped_conv', 'grouped convolution with weights in constant memory', 'grouped_conv', 'grouped_conv',
                [8, 1, 1], [12, 12, 1])
    case.reads('x', x).reads('w', w).writes('y', 'f16', [8, 12, 12], expected, 2e-3).numbers('s32', 12, 4)
    case.write(['sm_75'], suffix='_134')


# Calls, doubles, whole-warp operations.

def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def stepped(value):
    for at in range(4):
        step = [lambda v: 2 * v, lambda v: v * v, lambda v: v - 7][(value + at) % WORD % 3]
        value = step(value) & 0xFFFF
    return value


def folded(thread, values):
    seen = sorted(values[(thread + at) % 32] for at in range(16))
    a, b, c = thread, 0, 0
    for at in range(0, 16, 3):
        value = seen[(at + thread) % 16]
        a, b, c = a + value, b ^ value, c * 3 + value
    return c + a * 5 + b + ackermann(thread & 1, 3 + (thread & 7)) + ackermann(2, thread & 3)


def calls():
    x = Drawn('s32', [32], 132, 1000.0)
    case = Case('calls_pointer', 'calls through a table of function pointers', 'calls', 'calls_pointer', [1, 1, 1],
                [32, 1, 1])
    case.reads('x', x).computes('y', 's32', [32], [stepped(value) for value in x.values]).write(['sm_80'])
    case = Case('calls_recursion', 'recursion, structs by value, arrays in local memory', 'calls', 'calls_recursion',
                [1, 1, 1], [32, 1, 1])
    case.reads('x', x).computes('y', 's64', [32], [folded(thread, x.values) for thread in range(32)]).write(['sm_80'])


def prices():
    spot, strike = Drawn('f64', [100], 133, 20.0), Drawn('f64', [100], 134, 20.0)
    rate, sigma, time, expected = 0.03, 0.25, 1.5, []
    wide = sigma * math.sqrt(time)
    for s, k in zip(spot.values, strike.values):
        s, k = 50 + abs(s), 50 + abs(k)
        d = (math.log(s / k) + (rate + 0.5 * sigma * sigma) * time) / wide
        share = lambda d: 1 / (1 + math.exp(-1.702 * d))
        expected.append(s * share(d) - k * math.exp(-rate * time) * share(d - wide))
    case = Case('prices', 'prices of options in double precision', 'prices', 'prices', [2, 1, 1], [64, 1, 1])
    case.reads('spot', spot).reads('strike', strike).writes('call', 'f64', [100], expected, 1e-13)
    case.numbers('s32', 100).numbers('f64', rate, sigma, time).write(['sm_89'])


def lanes(a, b, bits, combine):
    """Combines words part by part."""
    part = (1 << bits) - 1
    return sum((combine(a >> at & part, b >> at & part) & part) << at for at in range(0, 32, bits))


def mixed(v, o):
    """The operations of `warp_ops` that a lane does alone."""
    both = (o << 32 | v) << (v & 31)
    permuted = v & 0xFF | (o & 0xFF) << 8 | v & 0xFF0000 | (o >> 16 & 0xFF) << 24
    o ^= (permuted + (both >> 32) + o) % WORD
    mixture = lanes(v, o, 8, lambda a, b: abs(a - b)) ^ lanes(v, o, 16, lambda a, b: a + b)
    mixture ^= lanes(v, o, 8, lambda a, b: max(signed(a, 8), signed(b, 8)))
    mixture ^= lanes(v, o, 8, lambda a, b: -(a > b))
    o = (o + mixture) % WORD
    mixture = int(f'{v:032b}'[::-1], 2) ^ (32 - v.bit_length()) ^ (v & -v).bit_length() ^ (v * o >> 32)
    mixture ^= (abs(signed(v, 32) - signed(o, 32)) + 3) % WORD ^ (v + o >> 1)
    return (o + mixture) % WORD


def warp(values):
    """`warp_ops` for a warp."""
    o = sum(v & 0xFFFF for v in values) * 3 ^ max(signed(v, 32) for v in values) % WORD ^ min(values)
    every, some, each = 0, 0, WORD - 1
    for v in values:
        every, some, each = every ^ v, some | v & 0x0F0F0F0F, each & (v | 0xF0F0F0F0)
    odd = sum(v & 1 for v in values)
    results = []
    for v in values:
        peers = sum(1 << lane for lane, other in enumerate(values) if (v ^ other) & 3 == 0)
        own = ((o + every + some + each) * 31 + peers + (v & 1) * (8 * odd + 1)) * 31 % WORD
        results.append(mixed(v, own))
    return [(results[lane & 16 | lane * 5 + 1 & 15] + 2) % WORD for lane in range(32)]


def warps():
    x = Drawn('u32', [2, 32], 135, 1e9)
    case = Case('warp_ops', 'redux, match, votes, permutes and words as vectors', 'warp_ops', 'warp_ops', [2, 1, 1],
                [32, 1, 1])
    expected = [value for row in x.matrix().rows for value in warp(row)]
    case.reads('x', x).computes('y', 'u32', [2, 32], expected).write(['sm_80'])


# Triton.

def triton_integers():
    x = Drawn('s32', [3, 200], 136, 1e9)
    sums = [signed(total, 32) for row in x.matrix().rows for total in accumulate(row)]
    case = Case('tri_scan', 'running sums of rows by Triton', 'tri_scan', 'scan', [3, 1, 1], [64, 1, 1], 32)
    case.reads('x', x).computes('y', 's32', [3, 200], sums).numbers('s32', 200).scratch().write(['sm_80'])
    a, b = Drawn('s8', [64, 128], 137, 60.0), Drawn('s8', [64, 128], 138, 60.0)
    case = Case('tri_matmul_splitk', 'split-k int8 matrix product by Triton, added with atomics', 'tri_matmul_splitk',
                'matmul_splitk', [1, 2, 2], [128, 1, 1], 8192)
    case.reads('a', a).reads('b', b)
    case.computes('c', 's32', [64, 64], a.matrix().times_transposed(b.matrix()).flat(), 'zeros')
    case.numbers('s32', 64, 128).scratch().write(['sm_80', 'sm_90a'], suffix='_t39')
    x = Drawn('u8', [3000], 139, 40.0)
    counts = [sum(value % 64 == bin for value in x.values) for bin in range(64)]
    case = Case('tri_histogram', 'histogram of bytes by Triton', 'tri_histogram', 'histogram', [3, 1, 1], [64, 1, 1],
                256)
    case.reads('x', x).computes('bins', 's32', [64], counts, 'zeros').numbers('s32', 3000).scratch()
    case.write(['sm_89'], suffix='_t39')
    x = Drawn('f32', [4, 400], 140)
    tops = [max(row) for row in x.matrix().rows]
    case = Case('tri_argmax', 'the largest of each row and its place by Triton', 'tri_argmax', 'argmax', [4, 1, 1],
                [64, 1, 1], 16)
    case.reads('x', x).computes('value', 'f32', [4], tops)
    case.computes('place', 's32', [4], [row.index(top) for row, top in zip(x.matrix().rows, tops)])
    case.numbers('s32', 400).scratch().write(['sm_75'], suffix='_t39')


# CuTe DSL.

def entry_of(name, target):
    """CuTe writes the types of all arguments into the name of an entry."""
    [entry] = re.findall(r'\.entry (\w+)', module_text(module_path(name, target)))
    return entry


def cute():
    a, b = Drawn('bf16', [64, 64], 141), Drawn('bf16', [32, 64], 142)
    case = Case('cute_gemm', 'matrix product by CuTe DSL: swizzled shared memory, cp.async, ldmatrix, mma.sync',
                'cute_gemm', entry_of('cute_gemm', 'sm_80'), [1, 1, 1], [128, 1, 1], 6144)
    case.reads('a', a).reads('b', b)
    case.multiplies('c', 'f32', [64, 32], 'a', 'b', 1e-5, transposed=True).write(['sm_80'])
    case = Case('cute_wgmma', 'matrix product by CuTe DSL: tensor maps and wgmma', 'cute_wgmma',
                entry_of('cute_wgmma', 'sm_90a'), [1, 1, 1], [128, 1, 1], 13312)
    case.reads('a', a, argument=False).reads('b', b, argument=False).map('a', [64, 64], False).map('b', [64, 32], False)
    case.multiplies('c', 'f32', [64, 32], 'a', 'b', 1e-5, transposed=True)
    case.numbers('u8', 0).write(['sm_90a'])
    x = Drawn('f32', [8, 128], 143, 3.0)
    case = Case('cute_softmax', 'softmax of rows by CuTe DSL, a warp per row', 'cute_softmax',
                entry_of('cute_softmax', 'sm_90a'), [2, 1, 1], [128, 1, 1])
    case.reads('x', x).writes('y', 'f32', [8, 128], [value for row in x.matrix().rows for value in softmax(row)], 1e-5)
    case.write(['sm_90a'])


ALL = [split_k, integer_products, float_products, local_fragment, scans, orders, pipelines, barriers, hopper,
       transposed_copy, transformer_parts, losses, images, calls, prices, warps, triton_integers, cute]
