"""Cases for the kernels that `hopper/generate.py` writes; `cases.py` writes them with the rest.

Inputs have no seed of their own, so that `--data-seed` draws others; outputs are judged by the oracle of `[attention]`.
"""
import math

from hopper.generate import KERNELS
from recipes import LOG2_E, Case, f32, module_path, module_text


TURNS = 'warpgroups in turns'
WHAT = {
    'f128_n128': f'queries in registers, {TURNS}',
    'f128_n128v': 'queries in registers, products overlap',
    'f128_n80w3': 'blocks of 80 keys with a tail',
    'f64_n64w2': f'two {TURNS}, two stages',
    'f64_n64w4': f'four {TURNS}',
    'f64_n64w4v': 'four warpgroups, products overlap',
    'f64_n128w1': 'one warpgroup',
    'c128_n128': f'tiles by a counter, {TURNS}',
    'c128_n64s': 'tiles by a counter, skips what the mask hides',
    'c64_n64w4': f'tiles by a counter, four {TURNS}',
    'c64_n64w4s': 'tiles by a counter, skips what the mask hides',
    'c64_n128w1': 'one warpgroup',
    'b128_n128': f'queries in registers, {TURNS}',
    'b64_n64w4': f'four {TURNS}',
    'bc128_n128': f'tiles by a counter, {TURNS}',
    'bc64_n64w4s': 'tiles by a counter, skips what the mask hides',
}
# A sequence that ends within a block of keys, where the mask allows it.
LENGTHS = {'c64_n128w1': 192}
BY_NAME = {kernel.name: kernel for kernel in KERNELS}


def length_of(kernel):
    return LENGTHS.get(kernel.name, 320 if kernel.rows == 256 else 256)


def attention_case(kernel, name, what, heads, blocks, sigma, length=None, batch=1, section=None):
    """A launch of so many blocks, which share the tiles; a section has heads whose tiles follow each other by length, which is
    all of them unless given."""
    length, dim = length or length_of(kernel), kernel.dim
    section = (section or heads * batch) if kernel.causal else 1
    # Kernels divide by the tiles of a section as they multiply with a reciprocal, so that there must be two or more: where
    # there is one, another follows that has no rows.
    per_head = max(math.ceil(length / kernel.rows), 2 // section)
    tiles = per_head * heads * batch
    case = Case(name, what, f'hop_{kernel.name}', 'fa', [blocks or tiles, 1, 1], [kernel.threads, 1, 1],
                kernel.smem)
    shape = [batch, heads, length, dim]
    for buffer in 'qkv':
        case.buffer(buffer, kernel.element, shape, f'init = "normal({sigma!r})"', argument=False)
    case.buffer('o', kernel.element, shape, argument=False)
    for buffer, rows in zip('qkvo', (64, kernel.keys, kernel.keys, 64)):
        case.args.append(f'{{ map = "{buffer}", dims = [{dim}, {length}, {heads * batch}], '
                         f'strides = [{2 * dim}, {2 * length * dim}], box = [64, {rows}, 1], swizzle = "128B" }}')
    case.buffer('lse', 'f32', shape[:3])
    # The last block leaves the counters as the next launch needs them.
    case.buffer('counters', 'u32', [2], 'init = "zeros"', 'expect = [0, 0]')
    case.numbers('u32', length, per_head, tiles, section)
    case.args.append(f'{{ f32 = {f32(LOG2_E / math.sqrt(dim))!r}, name = "scale" }}')
    case.numbers('u32', math.ceil(2 ** 32 / (section * per_head)) % 2 ** 32, section.bit_length() - 1)
    mask = 'causal-top-left' if kernel.causal else 'none'
    case.contract = ['[attention]', *[f'{part} = "{part}"' for part in ('q', 'k', 'v', 'o', 'lse')],
                     'scale = { arg = "scale", factor = "log2e" }', 'layout = "bhsd"', f'mask = "{mask}"',
                     f'lengths = {{ q = {length}, k = {length}, batch = {batch}, heads = {heads}, dim = {dim} }}', '']
    return case


def words(kernel):
    return f'attention for Hopper{", causal" if kernel.causal else ""}: {WHAT[kernel.name]}'


def normal_scores():
    """Two blocks for four tiles or more: rings go round, and tiles follow each other in one block."""
    for kernel in KERNELS:
        attention_case(kernel, f'hop_{kernel.name}', words(kernel), 2, 2, 1.0).write(['sm_90a'])


def wide_scores():
    """Scores so far apart that exponentials overflow and a warp computes its scores again. No ring goes round."""
    for name in ('f64_n128w1', 'f64_n64w4v', 'c128_n64s', 'c64_n64w4s'):
        kernel = BY_NAME[name]
        case = attention_case(kernel, f'hop_{name}_wide', f'{words(kernel)}, wide scores', 2, 0, 8.0)
        case.write(['sm_90a'])


def blocks_of_keys(kernel):
    """How many blocks of keys the tiles of a head come to."""
    length = length_of(kernel)
    seen = [min(first + kernel.rows, length) if kernel.causal else length for first in range(0, length, kernel.rows)]
    return sum(math.ceil(keys / kernel.keys) for keys in seen)


def one_block_of_keys():
    """Kernels whose products overlap have a way of their own for tiles with a single block of keys."""
    for name in ('f128_n128v', 'f64_n64w4v'):
        kernel = BY_NAME[name]
        what = f'{words(kernel)}, one block of keys'
        attention_case(kernel, f'hop_{name}_one', what, 2, 1, 1.0, kernel.keys).write(['sm_90a'])


def many_rounds():
    """One block for so many tiles that a stage is given back more often than it has warps to give it back: an arrival too
    many in every round adds up to a phase. `veriflash mutate` takes them for its witnesses."""
    for kernel in KERNELS:
        rounds = 4 * kernel.warpgroups + 2
        heads = math.ceil(rounds * kernel.key_stages / blocks_of_keys(kernel))
        if kernel.causal:
            heads = 2 ** math.ceil(math.log2(heads))
        attention_case(kernel, f'hop_{kernel.name}_long', f'{words(kernel)}, many rounds', heads, 1, 1.0).write(['sm_90a'])


AGAIN = ('Warps that compute their scores again read keys with ldmatrix, and lane 0 gives the stage back for the next '
         'copy: no proxy fence lies between, and no bar.warp.sync orders the other lanes before lane 0.')


def stages_given_back():
    """The same where rings go round: what the kernel reads again is overwritten later."""
    kernel = BY_NAME['f64_n64w4']
    case = attention_case(kernel, 'hop_f64_n64w4_wide', f'{words(kernel)}, wide scores', 2, 1, 8.0)
    lines = list(enumerate(module_text(module_path('hop_f64_n64w4', 'sm_90a')).splitlines(), 1))
    [copy] = [at for at, line in lines if '[%tmk, {' in line]
    reads = [at for at, line in lines if 'ldmatrix' in line and '{%v0,' in line]
    case.finds('sm_90a', AGAIN, (copy, 'error[proxy-fence]: after a thread read them, without a proxy fence'),
               *[(at, 'error[race-shared]: reads 16 bytes of `smem`') for at in reads]).write(['sm_90a'])


ALL = [normal_scores, wide_scores, one_block_of_keys, many_rounds, stages_given_back]
