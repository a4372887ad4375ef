"""Writes the recipes of the corpus and the references they name: `python3 corpus/cases.py`, standard library only.

Inputs come from the seeds in the recipes, drawn here as `launch` draws them. References are computed in double
precision and stored no wider than their tolerance needs.
"""
import math, os, struct
from operator import mul

ROOT = os.path.dirname(os.path.abspath(__file__))
MASK = (1 << 64) - 1
TARGETS = ['sm_75', 'sm_80', 'sm_89', 'sm_90a']
AMPERE = TARGETS[1:]
LOG2_E = 1.4426950408889634
LAUNCH = 'LAUNCH'


# Numbers as the recipe reader makes them.

def normals(seed, count, sigma=1.0):
    """SplitMix64, twelve uniforms summed less their mean."""
    state, drawn = seed, []
    for _ in range(count):
        total = 0
        for _ in range(6):
            state = (state + 0x9E3779B97F4A7C15) & MASK
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            z ^= z >> 31
            total += (z >> 32) + (z & 0xFFFFFFFF)
        drawn.append(sigma * ((total - 6 * 0xFFFFFFFF) / 4294967296.0))
    return drawn


def small_float(value, fraction, least_exponent):
    """The nearest value with so many fraction bits, ties to even."""
    if value == 0.0:
        return value
    step = math.ldexp(1.0, max(math.frexp(value)[1] - 1, least_exponent) - fraction)
    return round(value / step) * step


def f32(value):
    return struct.unpack('<f', struct.pack('<f', value))[0]


ROUND = {
    'f32': f32,
    'f16': lambda value: small_float(value, 10, -14),
    'bf16': lambda value: small_float(value, 7, -126),
    'e4m3': lambda value: small_float(value, 3, -6),
    's32': lambda value: (round(value) + (1 << 31)) % (1 << 32) - (1 << 31),
    'u32': lambda value: round(value) % (1 << 32),
}
PACK = {'f16': 'e', 'f32': 'f', 's32': 'i', 'u32': 'I'}


class Matrix:
    """Rows of numbers."""

    def __init__(self, rows):
        self.rows = rows

    def transposed(self):
        return Matrix([list(column) for column in zip(*self.rows)])

    def times_transposed(self, other):
        return Matrix([[sum(map(mul, row, column)) for column in other.rows] for row in self.rows])

    def times(self, other):
        return self.times_transposed(other.transposed())

    def flat(self):
        return [value for row in self.rows for value in row]


class Drawn:
    """A buffer filled from a seed."""

    def __init__(self, element, shape, seed, sigma=1.0):
        self.element, self.shape, self.seed, self.sigma = element, shape, seed, sigma
        self.values = [ROUND[element](value) for value in normals(seed, math.prod(shape), sigma)]

    def init(self):
        return f'init = "normal({self.sigma!r}, {self.seed})"'

    def matrices(self):
        """The matrices of all but the last two dimensions."""
        rows, columns = self.shape[-2:]
        split = [self.values[at:at + columns] for at in range(0, len(self.values), columns)]
        return [Matrix(split[at:at + rows]) for at in range(0, len(split), rows)]

    def matrix(self):
        [only] = self.matrices()
        return only


# Recipes.

def stored(name, element, values):
    """Writes a data file and gives its name within the corpus."""
    path = f'data/{name}.bin'
    with open(f'{ROOT}/{path}', 'wb') as file:
        file.write(struct.pack(f'<{len(values)}{PACK[element]}', *values))
    return path


def reference(name, element, values, tolerance):
    """The lines of an expectation: short lists inline, others in a file, as f16 where the tolerance allows."""
    wide = element if tolerance == 0 else 'f16' if tolerance >= 2e-3 else 'f32'
    if tolerance == 0 and len(values) <= 16:
        lines = [f'expect = {list(values)!r}']
    else:
        lines = [f'expect = "{stored(name, wide, values)}"']
        lines += [f'expect_type = "{wide}"'] if wide != element else []
    return lines + ([f'tolerance = "rel_l2({tolerance!r})"'] if tolerance else [])


class Case:
    """A kernel for several targets; `{target}` in the name of its PTX is each of them."""

    def __init__(self, name, what, ptx, entry, grid, block, shared=0):
        self.name, self.what, self.ptx, self.entry = name, what, ptx, entry
        self.grid, self.block, self.shared = grid, block, shared
        self.buffers, self.args, self.known, self.findings = [], [], {}, {}

    def buffer(self, name, element, shape, *lines, argument=True):
        self.buffers.append([f'[buffer.{name}]', f'type = "{element}"', f'shape = {list(shape)}', *lines])
        self.known[name] = (element, list(shape))
        self.args += [f'{{ buffer = "{name}" }}'] if argument else []
        return self

    def reads(self, name, drawn, argument=True):
        return self.buffer(name, drawn.element, drawn.shape, drawn.init(), argument=argument)

    def reads_file(self, name, shape, values):
        return self.buffer(name, 'f32', shape, f'file = "{stored(f"{self.name}.{name}", "f32", values)}"')

    def writes(self, name, element, shape, values, tolerance, init=None, of=None, argument=True):
        lines = [f'init = "{init}"'] if init else []
        lines += reference(f'{of or self.name}.{name}', element, values, tolerance)
        return self.buffer(name, element, shape, *lines, argument=argument)

    def numbers(self, element, *values):
        self.args += [f'{{ {element} = {value!r} }}' for value in values]
        return self

    def map(self, name, box, triton=True):
        """A tensor map; Triton passes shape and strides behind it."""
        element, shape = self.known[name]
        stride = shape[1] * 2
        self.args.append(f'{{ map = "{name}", dims = {shape[::-1]}, strides = [{stride}], box = {list(box)}, '
                         'swizzle = "128B", l2 = "128B" }')
        return self.numbers('s32', *shape).numbers('s64', shape[1], 1) if triton else self

    def scratch(self, bytes=0):
        """Triton's last two parameters: scratch for all blocks, and for a profiler, which is not there."""
        if bytes:
            self.buffer('scratch', 'u8', [bytes])
        self.args += ['{ null = true }'] * (1 if bytes else 2)
        return self

    def finds(self, target, why, *findings):
        """What the checks find for a target, each with its line in the module; the recipe's launch is line LAUNCH."""
        self.findings[target] = [f'# {why}', *[f'#~ {line} {finding}' for line, finding in findings]]
        return self

    def write(self, targets, shared=None, suffix=''):
        for at, target in enumerate(targets):
            self.write_target(target, shared[at] if shared else self.shared, suffix)
        return self

    def write_target(self, target, shared, suffix):
        ptx = self.ptx + suffix
        lines = [f'# {self.what}', *self.findings.get(target, []), f'ptx = "ptx/{ptx}.{target}.ptx"', '']
        for buffer in self.buffers:
            lines += [*buffer, '']
        lines += ['[[launch]]', f'entry = "{self.entry}"', f'grid = {list(self.grid)}', f'block = {list(self.block)}']
        lines += [f'shared = {shared}'] if shared else []
        lines += ['args = [', *[f'  {argument},' for argument in self.args], ']', '']
        text = '\n'.join(lines).replace("'", '"').replace(LAUNCH, str(lines.index('[[launch]]') + 1))
        with open(f'{ROOT}/{self.name}{suffix}.{target}.toml', 'w') as file:
            file.write(text)

    def write_fast(self):
        """The same launch of a module that nvcc made with -use_fast_math: flushes denormals, divides approximately."""
        self.what += ', with -use_fast_math'
        wider = lambda line: line.replace('rel_l2(1e-05)', 'rel_l2(0.0001)')
        self.buffers = [[wider(line) for line in buffer] for buffer in self.buffers]
        self.write(TARGETS, suffix='_fm')


# What kernels should compute.

def softmax(row):
    weights = [math.exp(value - max(row)) for value in row]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


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
    case.reads('A', a).reads('B', b).writes('C', 'f32', [64, 96], a.matrix().times(b.matrix()).flat(), 1e-5)
    case.numbers('s32', 64, 96, 48).write(TARGETS)
    a, b = Drawn('bf16', [64, 128], 12), Drawn('bf16', [128, 128], 13)
    case = Case('mma_gemm', 'matrix product with mma.sync, ldmatrix and a ring of cp.async', 'mma_gemm', 'mma_gemm',
                [2, 1, 1], [128, 1, 1], 3 * 2 * 64 * 32 * 2)
    case.reads('A', a).reads('B', b)
    case.writes('C', 'f32', [64, 128], a.matrix().times_transposed(b.matrix()).flat(), 1e-5)
    case.numbers('s32', 64, 128, 128).write(AMPERE)
    a, b = Drawn('bf16', [128, 192], 14), Drawn('bf16', [64, 192], 15)
    case = Case('wgmma_gemm', 'matrix product with wgmma on tiles that tensor maps bring', 'wgmma_gemm', 'wgmma_gemm',
                [1, 2, 1], [128, 1, 1], 32768)
    case.reads('A', a, argument=False).reads('B', b, argument=False).map('A', [64, 64], False).map('B', [64, 64], False)
    case.writes('C', 'f32', [128, 64], a.matrix().times_transposed(b.matrix()).flat(), 1e-5)
    case.numbers('s32', 128, 64, 192).write(['sm_90a'])


def inputs(element, shape, seed):
    return [Drawn(element, shape, seed + at) for at in range(3)]


def cuda_attention():
    scale = 64 ** -0.5
    for causal in (False, True):
        suffix = f'c{int(causal)}'
        word = ', causal' if causal else ''
        q, k, v = inputs('f16', [2, 72, 64], 20)
        output, lse = attention(q, k, v, scale, causal)
        case = Case(f'fa_scalar_{suffix}', f'attention in scalar code{word}', 'fa_scalar', 'fa_scalar', [2, 2, 1],
                    [64, 1, 1])
        case.reads('Q', q).reads('K', k).reads('V', v).writes('O', 'f16', q.shape, output, 2e-3)
        case.writes('L', 'f32', [2, 72], lse, 1e-4).numbers('s32', 72).numbers('f32', f32(scale * LOG2_E))
        case.numbers('s32', int(causal)).write(TARGETS).write_fast()
        q, k, v = inputs('f16', [1, 128, 64], 23)
        output, _ = attention(q, k, v, scale, causal)
        case = Case(f'fa_wmma_{suffix}', f'attention with nvcuda::wmma{word}', 'fa_wmma', 'fa_wmma', [2, 1, 1],
                    [128, 1, 1], 4 * 64 * 72 * 2 + 2 * 64 * 68 * 4 + 512)
        case.finds('sm_75', 'A block of sm_75 has too little shared memory; compiled for a later architecture it runs.',
                   (LAUNCH, 'error[launch]: 72192 bytes of shared memory'))
        case.reads('Q', q).reads('K', k).reads('V', v).writes('O', 'f16', q.shape, output, 3e-3)
        case.numbers('s32', 128).numbers('f32', f32(scale)).numbers('s32', int(causal)).write(TARGETS).write_fast()


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


def triton_product(name, what, a, b, tolerance, of, grid=(1, 1, 1)):
    m, k, n = *a.shape, b.shape[1]
    case = Case(name, what, name, 'matmul', grid, [128, 1, 1])
    case.reads('a', a).reads('b', b)
    case.writes('c', 'f32', [m, n], a.matrix().times(b.matrix()).flat(), tolerance, of=of)
    return case.numbers('s32', m, n, k, k, n, n).scratch()


def triton_gemm():
    for element, targets, shared in [('f16', TARGETS[:1], [8192]), ('bf16', AMPERE, [12288, 12288, 16384])]:
        a, b = Drawn(element, [96, 112], 36), Drawn(element, [112, 128], 37)
        case = triton_product('tri_matmul', 'matrix product by Triton, with edges', a, b, 1e-5, f'tri_matmul_{element}',
                              [2, 2, 1])
        case.write(targets, shared)
    a, b = Drawn('f32', [64, 64], 38), Drawn('f32', [64, 64], 39)
    case = triton_product('tri_matmul_tf32', 'matrix product of tf32 by Triton', a, b, 2e-3, None)
    case.write(['sm_80', 'sm_90a'], [32768, 49152])
    a, b = Drawn('e4m3', [64, 128], 40), Drawn('e4m3', [128, 64], 41)
    case = triton_product('tri_matmul_fp8', 'matrix product of e4m3 by Triton', a, b, 2e-3, None)
    case.write(['sm_90a'], [16384])


ROLES = 'Every thread of the first warps stores what the roles do next, all the same value: still a race between warps.'


def roles_store(case, place, *lines):
    """The finding that Triton's warp specialisation gives where it tells the roles what to do."""
    finding = f'error[race-shared]: both write 8 bytes of `global_smem`+{place}'
    return case.finds('sm_90a', ROLES, *[(line, finding) for line in lines])


def triton_tensor_maps():
    rows = [('tri_matmul_tma', 'tensor maps', [1, 2, 1], 128, 98328, (128, 256), (128, 128, 128)),
            ('tri_matmul_tma_ws', 'tensor maps and warp specialisation', [2, 1, 1], 384, 65632, (128, 64),
             (64, 64, 64))]
    for name, what, grid, block, shared, (m, n), boxes in rows:
        a, b = Drawn('bf16', [m, 192], 42), Drawn('bf16', [n, 192], 43)
        case = Case(name, f'matrix product by Triton with {what}', name, 'matmul_tma', grid, [block, 1, 1], shared)
        case.reads('a', a, argument=False).reads('b', b, argument=False)
        expected = a.matrix().times_transposed(b.matrix()).flat()
        case.writes('c', 'bf16', [m, n], expected, 4e-3, argument=False)
        for buffer, rows_of_box in zip('abc', boxes):
            case.map(buffer, [64, rows_of_box])
        if name.endswith('_ws'):
            roles_store(case, 65624, 128, 207)
        case.numbers('s32', 192).scratch().write(['sm_90a'])
    a, b = Drawn('bf16', [128, 192], 44), Drawn('bf16', [128, 192], 45)
    case = Case('tri_matmul_devtma', 'matrix product by Triton with tensor maps made on the device',
                'tri_matmul_devtma', 'matmul_devtma', [1, 1, 1], [256, 1, 1], 98328)
    case.reads('a', a).reads('b', b)
    case.writes('c', 'bf16', [128, 128], a.matrix().times_transposed(b.matrix()).flat(), 4e-3)
    case.numbers('s32', 128, 128, 192).scratch(384).write(['sm_90a'])


REPLICATED = 'Several lanes store the log-sum-exp of one row, all the same value: still a race between lanes.'


def replicated_store(case, target, bytes, *lines):
    """The finding that Triton's stores of values which several lanes hold give, at each of the lines."""
    finding = f'error[race-warp]: both write {bytes} bytes of `global_smem`'
    return case.finds(target, REPLICATED, *[(line, finding) for line in lines])


def triton_attention():
    for name, causal in [('tri_fa_fwd', False), ('tri_fa_fwd_causal', True)]:
        for element, targets, shared in [('f16', TARGETS[:1], [32768]), ('bf16', AMPERE, [24576, 24576, 40960])]:
            q, k, v = inputs(element, [2, 80, 64], 50)
            output, lse = attention(q, k, v, 0.125, causal)
            what = 'attention by Triton, causal' if causal else 'attention by Triton'
            case = Case(name, what, name, 'fa_fwd', [2, 2, 1], [128, 1, 1])
            case.reads('q', q).reads('k', k).reads('v', v)
            case.writes('o', element, q.shape, output, 3e-3 if element == 'f16' else 8e-3, of=f'{name}_{element}')
            case.writes('lse', 'f32', [2, 80], lse, 1e-3, of=f'{name}_{element}')
            replicated_store(case, 'sm_75', 16, *((6338, 6339) if causal else (6254, 6255)))
            for target in ('sm_80', 'sm_89'):
                replicated_store(case, target, 8, 1225 if causal else 1129)
            replicated_store(case, 'sm_90a', 8, 978 if causal else 882)
            case.numbers('s32', 80).numbers('f32', f32(0.125 * LOG2_E)).scratch().write(targets, shared)


def triton_attention_128():
    scale = 128 ** -0.5
    q, k, v = inputs('bf16', [256, 128], 53)
    output, lse = attention(q, k, v, scale, True)
    case = Case('tri_fa_fwd_d128', 'attention by Triton, causal, head dimension 128', 'tri_fa_fwd_d128', 'fa_fwd',
                [2, 1, 1], [256, 1, 1])
    case.reads('q', q).reads('k', k).reads('v', v).writes('o', 'bf16', [256, 128], output, 8e-3)
    case.writes('lse', 'f32', [256], lse, 1e-3).numbers('s32', 256).numbers('f32', f32(scale * LOG2_E))
    replicated_store(case, 'sm_90a', 8, 1239)
    replicated_store(case, 'sm_80', 8, 1677).scratch().write(['sm_80', 'sm_90a'], [98304, 131072])
    rows = [('tri_fa_fwd_tma', 'tensor maps', [2, 1, 1], 256, 98336, 128),
            ('tri_fa_fwd_tma_ws', 'tensor maps and warp specialisation', [4, 1, 1], 384, 114832, 64)]
    for name, what, grid, block, shared, queries in rows:
        case = Case(name, f'attention by Triton with {what}, causal', name, 'fa_fwd_tma', grid, [block, 1, 1], shared)
        for buffer, drawn in zip('qkv', (q, k, v)):
            case.reads(buffer, drawn, argument=False)
        case.writes('o', 'bf16', [256, 128], output, 8e-3, of='tri_fa_fwd_d128', argument=False)
        for buffer, rows_of_box in zip('qkvo', (queries, 64, 64, queries)):
            case.map(buffer, [64, rows_of_box])
        if name.endswith('_ws'):
            roles_store(case, 114824, 182, 342)
        case.numbers('s32', 256).numbers('f32', f32(scale * LOG2_E)).scratch().write(['sm_90a'])


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
    case.numbers('s32', 128).numbers('f32', scale).scratch().write(['sm_80', 'sm_90a'], [57856, 66048])


if __name__ == '__main__':
    os.makedirs(f'{ROOT}/data', exist_ok=True)
    for cases in [cuda_vectors, cuda_rows, cuda_atomics, cuda_gemm, cuda_attention, triton_rows, triton_gemm,
                  triton_tensor_maps, triton_attention, triton_attention_128, triton_backward]:
        cases()
