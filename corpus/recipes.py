"""Buffers as the recipe reader fills them, and recipes as text.

Inputs come from the seeds in the recipes, drawn here as `launch` draws them. References are stored no wider than their
tolerance needs.
"""
import glob, gzip, hashlib, math, os, re, struct
from operator import mul

ROOT = os.path.dirname(os.path.abspath(__file__))
MASK = (1 << 64) - 1
TARGETS = ['sm_75', 'sm_80', 'sm_89', 'sm_90a']
AMPERE = TARGETS[1:]
LOG2_E = 1.4426950408889634


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


def signed(value, bits):
    """The integer of so many bits that is the same modulo 2 ** bits."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


ROUND = {
    'f32': f32,
    'f16': lambda value: small_float(value, 10, -14),
    'bf16': lambda value: small_float(value, 7, -126),
    'e4m3': lambda value: small_float(value, 3, -6),
    'f64': float,
    's8': lambda value: signed(round(value), 8),
    's32': lambda value: signed(round(value), 32),
    'u8': lambda value: round(value) % (1 << 8),
    'u16': lambda value: round(value) % (1 << 16),
    'u32': lambda value: round(value) % (1 << 32),
}
PACK = {'f16': 'e', 'f32': 'f', 'f64': 'd', 's8': 'b', 's32': 'i', 's64': 'q', 'u16': 'H', 'u32': 'I'}


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


# Modules: one file for targets whose texts differ in the `.target` line alone, gzip for long ones and for repetitions.

LONG = 8_000
HOPPER = 'hop_'


def store_modules():
    """Packs and removes what compilers left in `ptx/`, in the order of the targets."""
    for path in glob.glob(f'{ROOT}/ptx/*.ptx'):
        if os.path.getsize(path) > LONG or os.path.basename(path).startswith(HOPPER):
            with open(path, 'rb') as file, open(f'{path}.gz', 'wb') as packed:
                packed.write(gzip.compress(file.read(), 9, mtime=0))
            os.remove(path)
    for name in {os.path.basename(path).split('.')[0] for path in glob.glob(f'{ROOT}/ptx/*')}:
        kept = None
        for target in TARGETS:
            path = module_path(name, target)
            text = path and re.sub(r'(?m)^\.target \w+', '.target', module_text(path))
            if text and text == kept:
                os.remove(f'{ROOT}/{path}')
            kept = text or kept


def module_path(name, target):
    """The module's file for that very target, if there is one."""
    paths = [f'ptx/{name}.{target}.ptx{packed}' for packed in ('', '.gz')]
    return next((path for path in paths if os.path.exists(f'{ROOT}/{path}')), None)


def module_text(path):
    opened = gzip.open if path.endswith('.gz') else open
    with opened(f'{ROOT}/{path}', 'rt') as file:
        return file.read()


def module_lines(name, target):
    """The lines that name a module: its own file, or that of the latest target before, made for this one."""
    if path := module_path(name, target):
        return [f'ptx = "{path}"']
    before = TARGETS[:TARGETS.index(target)]
    path = [path for earlier in before if (path := module_path(name, earlier))][-1]
    return [f'ptx = "{path}"', f'target = "{target}"']


# Recipes.

def stored(name, element, values):
    """Writes a data file and gives its name within the corpus."""
    path = f'data/{name}.bin'
    with open(f'{ROOT}/{path}', 'wb') as file:
        file.write(struct.pack(f'<{len(values)}{PACK[element]}', *values))
    return path


def exactly(element, values):
    """The line of an expectation that holds to the bit: a short list, or the hash of a longer one."""
    if len(values) <= 16:
        return f'expect = {list(values)!r}'
    packed = struct.pack(f'<{len(values)}{PACK[element]}', *values)
    return f'expect = "sha256:{hashlib.sha256(packed).hexdigest()}"'


def reference(name, element, values, tolerance):
    """The lines of an expectation: exact ones as `exactly` has them, others in a file, as f16 where that will do."""
    wide = 'f64' if element == 'f64' else 'f16' if tolerance >= 2e-3 else 'f32'
    if tolerance == 0:
        return [exactly(element, values)]
    lines = [f'expect = "{stored(name, wide, values)}"']
    lines += [f'expect_type = "{wide}"'] if wide != element else []
    return [*lines, f'tolerance = "rel_l2({tolerance!r})"']


class Case:
    """A kernel for several targets; its PTX is named without them."""

    def __init__(self, name, what, ptx, entry, grid, block, shared=0):
        self.name, self.what, self.ptx, self.entry = name, what, ptx, entry
        self.grid, self.block, self.shared = grid, block, shared
        self.buffers, self.args, self.known, self.findings, self.gpus = [], [], {}, {}, {}
        self.earlier, self.contract = [], []

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

    def multiplies(self, name, element, shape, left, right, tolerance, transposed=False, argument=True):
        """The product of two buffers, or of one and another's transpose: `launch` computes the reference."""
        right = f'transposed({right})' if transposed else right
        lines = [f'expect = "product({left}, {right})"', f'tolerance = "rel_l2({tolerance!r})"']
        return self.buffer(name, element, shape, *lines, argument=argument)

    def computes(self, name, element, shape, values, init=None):
        """A result that is the same on every machine: integers, or floats without a rounding."""
        return self.buffer(name, element, shape, *([f'init = "{init}"'] if init else []), exactly(element, values))

    def passes(self, *names):
        """Buffers that another launch has named before."""
        self.args += [f'{{ buffer = "{name}" }}' for name in names]
        return self

    def then(self, entry, grid, block):
        """What follows belongs to another launch."""
        self.earlier += [*self.launch(self.shared), '']
        self.entry, self.grid, self.block, self.args = entry, grid, block, []
        return self

    def numbers(self, element, *values):
        self.args += [f'{{ {element} = {value!r} }}' for value in values]
        return self

    def attends(self, parts, causal, scale, factor=None):
        """Its output is judged by the oracle. Buffers have heads, rows and columns, or one head has no dimension of its own."""
        *heads, rows, columns = self.known[parts[0]][1]
        self.args.append(f'{{ f32 = {scale!r}, name = "scale" }}')
        named = f'arg = "scale", factor = "{factor}"' if factor else 'arg = "scale"'
        mask = 'causal-top-left' if causal else 'none'
        self.contract = ['[attention]', *[f'{role} = "{part}"' for role, part in zip(['q', 'k', 'v', 'o', 'lse'], parts)],
                         f'scale = {{ {named} }}', 'layout = "bhsd"', f'mask = "{mask}"',
                         f'lengths = {{ q = {rows}, k = {rows}, batch = 1, heads = {math.prod(heads)}, dim = {columns} }}', '']
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
        """What the checks find for a target, each with its line in the module."""
        lines = [f'# {why}', *[f'#~ {line} {finding}' for line, finding in findings]]
        self.findings[target] = self.findings.get(target, []) + lines
        return self

    def runs_on(self, target, gpu, why):
        """A later GPU than the one that the module is compiled for."""
        self.gpus[target] = [f'gpu = "{gpu}" # {why}']
        return self

    def write(self, targets, shared=None, suffix=''):
        for at, target in enumerate(targets):
            self.write_target(target, shared[at] if shared else self.shared, suffix)
        return self

    def launch(self, shared):
        lines = ['[[launch]]', f'entry = "{self.entry}"', f'grid = {list(self.grid)}', f'block = {list(self.block)}']
        lines += [f'shared = {shared}'] if shared else []
        return [*lines, 'args = [', *[f'  {argument},' for argument in self.args], ']']

    def write_target(self, target, shared, suffix):
        module = [*module_lines(self.ptx + suffix, target), *self.gpus.get(target, [])]
        with open(f'{ROOT}/{self.name}{suffix}.{target}.toml', 'w') as file:
            file.write(self.text(shared, *self.findings.get(target, []), *module))

    def text(self, shared, *head):
        """The recipe, with these lines at its head."""
        lines = [f'# {self.what}', *head, '']
        for buffer in self.buffers:
            lines += [*buffer, '']
        lines += [*self.earlier, *self.launch(shared), '', *self.contract]
        return '\n'.join(lines).replace("'", '"')

    def write_fast(self):
        """The same launch of a module that nvcc made with -use_fast_math: flushes denormals, divides approximately."""
        self.what += ', with -use_fast_math'
        wider = lambda line: line.replace('rel_l2(1e-05)', 'rel_l2(0.0001)')
        self.buffers = [[wider(line) for line in buffer] for buffer in self.buffers]
        self.write(TARGETS, suffix='_fm')


# What many kernels compute.

def softmax(row):
    weights = [math.exp(value - max(row)) for value in row]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
