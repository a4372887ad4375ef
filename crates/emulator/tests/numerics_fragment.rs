//! The products of warps against the rule they must equal, for every instruction set that this processor has.

use emulator::numerics::format::{Element, Format};
use emulator::numerics::fragment::{Level, Multiplier, Precision, Register, transpose};
use emulator::numerics::tensor_core::Rule;

const RULES: [(&str, Rule); 12] = [
    ("f16_k16", Rule::F16_K16),
    ("f16_k8", Rule::F16_K8),
    ("bf16_k16", Rule::BF16_K16),
    ("bf16_k8", Rule::BF16_K8),
    ("tf32_k8", Rule::TF32_K8),
    ("tf32_k4", Rule::TF32_K4),
    ("f16_k16_f16", Rule::F16_K16_F16),
    ("f16_k8_f16", Rule::F16_K8_F16),
    ("e4m3_k32", Rule::E4M3_K32),
    ("e5m2_k32", Rule::E5M2_K32),
    ("e4m3_k32_f16", Rule::E4M3_K32_F16),
    ("e5m2_k32_f16", Rule::E5M2_K32_F16),
];

/// Sequences that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
}

/// Where numbers of a test come from.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Every pattern of bits.
    Any,
    /// Around one, as in real matrices.
    Ordinary,
    /// Exponents that lie far from each other, and no infinity or NaN.
    Spread,
    /// The same magnitude with both signs.
    Cancelling,
    /// Subnormals and the smallest normal numbers, and zeros.
    Tiny,
    /// The largest finite numbers.
    Huge,
    /// The longest significands, one sign: the largest sums.
    Full,
    /// Mostly zeros of both signs.
    Sparse,
    /// Ordinary, with some infinity or NaN in few lines.
    Special,
}

const KINDS: [Kind; 9] = [
    Kind::Any,
    Kind::Ordinary,
    Kind::Spread,
    Kind::Cancelling,
    Kind::Tiny,
    Kind::Huge,
    Kind::Full,
    Kind::Sparse,
    Kind::Special,
];

impl Kind {
    fn bits(self, format: Format, random: &mut Random) -> u32 {
        let sign = if random.below(2) == 0 { format.sign() } else { 0 };
        let shift = format.fraction_bits + format.ignored_bits;
        let any = random.next() & (format.sign() | format.nan());
        let fraction = any & ((1 << shift) - 1);
        let one = (format.bias() as u32) << shift;
        let fields = (1 << format.exponent_bits) - 1;
        match self {
            Kind::Any => any,
            Kind::Ordinary => sign | (one + fraction - (random.below(4) << shift)),
            Kind::Spread => sign | random.below(fields) << shift | fraction,
            Kind::Cancelling => sign | one | 5 << format.ignored_bits & ((1 << shift) - 1),
            Kind::Tiny => sign | random.below(3) << shift | if random.below(4) == 0 { 0 } else { fraction },
            Kind::Huge => sign | (fields - 1) << shift | fraction,
            Kind::Full => one | ((1 << shift) - 1),
            Kind::Sparse => sign | if random.below(8) == 0 { one | fraction } else { 0 },
            Kind::Special if random.below(40) == 0 => sign | fields << shift | if sign == 0 { fraction } else { 0 },
            Kind::Special => sign | one | fraction,
        }
    }
}

/// Lines of elements as core matrices, `[group of 8 lines][16 bytes of depth]`.
fn cores(format: Format, lines: &[Vec<u32>]) -> Vec<Vec<Register>> {
    let bits = format.sign().ilog2() as usize + 1;
    let parts = 32 / bits;
    let steps = lines[0].len() / (4 * parts);
    let word =
        |line: &Vec<u32>, word: usize| (0..parts).fold(0, |all, part| all | line[word * parts + part] << (part * bits));
    let core = |group: &[Vec<u32>], step: usize| std::array::from_fn(|at| word(&group[at / 4], 4 * step + at % 4));
    lines.chunks(8).map(|group| (0..steps).map(|step| core(group, step)).collect()).collect()
}

struct Case {
    a: Vec<Vec<u32>>,
    b: Vec<Vec<u32>>,
    c: Vec<Register>,
}

impl Case {
    fn new(rule: &Rule, kinds: [Kind; 3], groups: usize, random: &mut Random) -> Case {
        let mut lines = |count: usize, kind: Kind, length: usize| -> Vec<Vec<u32>> {
            let mut line = || (0..length).map(|_| kind.bits(rule.operand, random)).collect();
            (0..count).map(|_| line()).collect()
        };
        let (a, b) = (lines(16, kinds[0], rule.length), lines(8 * groups, kinds[1], rule.length));
        let mut register = || std::array::from_fn(|_| kinds[2].bits(rule.accumulator, random));
        let c = (0..4 * groups).map(|_| register()).collect();
        Case { a, b, c }
    }

    fn load(&self, rule: &Rule, multiplier: &mut Multiplier) {
        let [upper, lower]: [Vec<Register>; 2] = cores(rule.operand, &self.a).try_into().expect("16 rows");
        let left: Vec<Register> = upper.into_iter().zip(lower).flat_map(|(upper, lower)| [upper, lower]).collect();
        multiplier.load_left(rule.operand, &left);
        multiplier.load_right(rule.operand, self.b.len() / 8, &cores(rule.operand, &self.b).concat());
    }

    /// By the rule, element by element.
    fn expected(&self, rule: &Rule) -> Vec<Register> {
        let decode = |lines: &[Vec<u32>]| -> Vec<Vec<Element>> {
            lines.iter().map(|line| line.iter().map(|bits| rule.operand.decode(*bits)).collect()).collect()
        };
        let (a, b) = (decode(&self.a), decode(&self.b));
        let element = |register: usize, lane: usize| {
            let (row, column) = (register / 2 % 2 * 8 + lane / 4, register / 4 * 8 + lane % 4 * 2 + register % 2);
            rule.dot(&a[row], &b[column], self.c[register][lane])
        };
        (0..self.c.len()).map(|register| std::array::from_fn(|lane| element(register, lane))).collect()
    }
}

fn compare(rule: &Rule, name: &str, kinds: [Kind; 3], groups: usize, random: &mut Random) {
    let case = Case::new(rule, kinds, groups, random);
    let expected = case.expected(rule);
    for level in Level::available() {
        let mut multiplier = Multiplier::at(level, Precision::Exact);
        case.load(rule, &mut multiplier);
        let mut c = case.c.clone();
        multiplier.multiply(rule, &mut c);
        assert!(c == expected, "{name} with {}: {kinds:?}, {groups} groups", level.name());
    }
}

#[test]
fn exact_products_equal_the_rule() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for (name, rule) in RULES {
        for a in KINDS {
            for b in KINDS {
                for c in KINDS {
                    compare(&rule, name, [a, b, c], 1, &mut random);
                }
            }
        }
    }
}

#[test]
fn wide_products_equal_the_rule() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (name, rule) in RULES {
        for groups in [2, 3, 4, 7, 32] {
            for kinds in [[Kind::Ordinary; 3], [Kind::Spread; 3], [Kind::Special, Kind::Ordinary, Kind::Spread]] {
                compare(&rule, name, kinds, groups, &mut random);
            }
        }
    }
}

/// Each result is the accumulator of the next product.
#[test]
fn chained_products_equal_the_rule() {
    let mut random = Random(0xda94_2042_e4dd_58b5);
    for (name, rule) in RULES {
        for level in Level::available() {
            let mut multiplier = Multiplier::at(level, Precision::Exact);
            let mut c = vec![[0; 32]; 8];
            for step in 0..32 {
                let case = Case { c, ..Case::new(&rule, [Kind::Ordinary; 3], 2, &mut random) };
                c = case.c.clone();
                case.load(&rule, &mut multiplier);
                multiplier.multiply(&rule, &mut c);
                assert!(c == case.expected(&rule), "{name} with {}, step {step}", level.name());
            }
        }
    }
}

#[test]
fn fast_products_are_chains_of_fused_multiply_adds() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for (name, rule) in [("f16", Rule::F16_K16), ("bf16", Rule::BF16_K16), ("tf32", Rule::TF32_K8)] {
        let case = Case::new(&rule, [Kind::Ordinary; 3], 3, &mut random);
        let value = |bits: u32| match rule.operand {
            Format::F16 => half::f16::from_bits(bits as u16).to_f32(),
            Format::BF16 => half::bf16::from_bits(bits as u16).to_f32(),
            _ => f32::from_bits(bits & !0x1fff),
        };
        let element = |register: usize, lane: usize| {
            let (row, column) = (register / 2 % 2 * 8 + lane / 4, register / 4 * 8 + lane % 4 * 2 + register % 2);
            let c = f32::from_bits(case.c[register][lane]);
            case.a[row].iter().zip(&case.b[column]).fold(c, |c, (a, b)| value(*a).mul_add(value(*b), c)).to_bits()
        };
        for level in Level::available() {
            let mut multiplier = Multiplier::at(level, Precision::Fast);
            case.load(&rule, &mut multiplier);
            let mut c = case.c.clone();
            multiplier.multiply(&rule, &mut c);
            for (register, lane) in (0..c.len()).flat_map(|register| (0..32).map(move |lane| (register, lane))) {
                assert_eq!(c[register][lane], element(register, lane), "{name} with {}", level.name());
            }
        }
    }
}

#[test]
fn fast_products_have_one_nan_and_keep_infinities() {
    for level in Level::available() {
        let mut multiplier = Multiplier::at(level, Precision::Fast);
        multiplier.load_left(Format::F16, &[[0x7c00_7c00; 32]; 4]);
        for (b, single, half) in [(0, 0x7fff_ffff, 0x7fff), (0xbc00_bc00, 0xff80_0000, 0xfc00)] {
            multiplier.load_right(Format::F16, 1, &[[b; 32]; 2]);
            for (rule, expected) in [(Rule::F16_K16, single), (Rule::F16_K16_F16, half)] {
                let mut c = [[0; 32]; 4];
                multiplier.multiply(&rule, &mut c);
                assert_eq!(c, [[expected; 32]; 4], "{}", level.name());
            }
        }
    }
}

#[test]
fn core_matrices_are_transposed() {
    let element = |line: u32, depth: u32| 256 * line + depth;
    let words = |element: &dyn Fn(u32, u32) -> u32| -> Register {
        std::array::from_fn(|word| {
            let (line, depth) = (word as u32 / 4, word as u32 % 4 * 2);
            element(line, depth) | element(line, depth + 1) << 16
        })
    };
    let expected = words(&|line, depth| element(depth, line));
    assert_eq!(transpose(&words(&element)), expected);
    for level in Level::available() {
        assert_eq!(level.transpose(&words(&element)), expected, "{}", level.name());
    }
}
