//! The operand column of a row, in a notation of its own:
//!
//! | written | means |
//! |---|---|
//! | `d:T` | a register that is written (names that begin with `d`), of the first type in the mnemonic |
//! | `a:U`, `b:W`, `c:X4` | a value of the second, third, fourth type |
//! | `a:2T` | twice as wide as the first type |
//! | `a:b32[4]`, `a:T[V]`, `d+:f32[N/2]` | vectors: of four, of `.v4`'s count, of half the N of `m64nNk16`; `+`: also read |
//! | `[a]`, `[a:T[V]]` | an address, and what is accessed there |
//! | `[a, c:s32[D]]` | a tensor map and its coordinates |
//! | `a:~U[MK]`, `b:~U[KN]`, `c:~X4[MN]` | registers of a warp's share of a matrix of `mMnNkK`, with elements of this type |
//! | `n:imm`, `l:label`, `f:function`, `(d)`, `(a)` | a constant, a label, a function, what a call returns and takes |
//! | `\|p`, `{\|p}` | a second, predicate result, required or not |
//! | `{, b:u32}` | what may be left out |
//! | `p:b64?L2::cache_hint` | an operand that belongs to a modifier, and comes with it |
//! | `>` `&` `$` `%` `!` `_` | wider registers, symbols, special registers, `{low, high}` halves, negated predicates, sinks are allowed |
//! | `^`, `d:sink` | registers alone, `_` alone |
//! | `n:imm(4 8)`, `a:u32(0..15)`, `b:u32(*32)`, `n:imm(0..)`, `n:imm(24..256*8)` | constants: one of, from and to, multiples of, at least, from and to in steps |
//! | `[d@shared]` | an address in this space, whatever the mnemonic says |

use super::{Form, Spelling};
use crate::ir::{Instruction, Operand, Symbol};
use crate::types::{Space, Type};

#[derive(Debug)]
pub struct Shape {
    text: &'static str,
    pub all: Vec<OperandSpec>,
}

#[derive(Debug)]
pub struct OperandSpec {
    pub name: &'static str,
    pub field: Field,
    /// The operand is written by the instruction.
    pub defines: bool,
    /// The operand is read; a destination with `+` is both.
    pub reads: bool,
    pub second: Second,
    pub wider: bool,
    pub symbols: bool,
    pub halves: bool,
    pub special: bool,
    pub negated: bool,
    /// `_` may stand for it.
    pub sink: bool,
    /// No constant may stand for it.
    pub registers_only: bool,
    pub constants: Constants,
    /// Of an address: the space it is in, where the row says so.
    pub space: Option<Space>,
    /// May be left out.
    pub optional: bool,
    /// There only beside this modifier.
    pub beside: Option<&'static str>,
}

/// Threads of a warp, which share a matrix.
const LANES: u32 = 32;

/// The end of `(0..)`: constants have 32 bits where no type says otherwise.
const NO_LIMIT: i128 = u32::MAX as i128;

/// Which constants may stand for an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constants {
    /// Whatever fits the type.
    Any,
    OneOf(Vec<i128>),
    /// From and to.
    Range(i128, i128),
    MultipleOf(i128),
    /// From and to, and multiples of.
    Steps(i128, i128, i128),
}

/// Whether a `|p` result follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    No,
    Maybe,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Value(TypeSpec, Count),
    Immediate,
    Label,
    /// `_` and nothing else.
    Sink,
    /// The function that a call names.
    Function,
    /// `(a, b)`: what a call takes or returns.
    Arguments,
    /// What is accessed there, if the row says so.
    Address(Option<(TypeSpec, Count)>),
    TensorAddress(Count),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeSpec {
    /// The n-th type of the mnemonic.
    Slot(usize),
    Wide(usize),
    /// The registers that hold elements of the n-th type: two of 16 bits in one of 32.
    Packed(usize),
    Fixed(Type),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Fixed(u32),
    /// The number a modifier carries, divided.
    Variable(char, u32),
    /// Registers of one lane for a matrix that a warp holds: rows and columns as in `m16n8k16`, element type.
    Fragment(char, char, usize),
}

impl Shape {
    pub(super) fn compile(text: &'static str) -> Shape {
        let mut all = vec![];
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{, ") {
            let (inside, behind) = after.split_once('}').expect("a row's optional operand closes");
            all.extend(pieces(before).map(OperandSpec::compile));
            all.extend(pieces(inside).map(|piece| OperandSpec { optional: true, ..OperandSpec::compile(piece) }));
            rest = behind;
        }
        all.extend(pieces(rest).map(OperandSpec::compile));
        Shape { text, all }
    }

    pub fn text(&self) -> &'static str {
        self.text
    }

    /// The operands of an instruction with these modifiers that has `count` of them; none if the row has no such.
    pub fn with(&self, chosen: &[Option<&'static str>], count: usize) -> Option<Vec<&OperandSpec>> {
        let there = |spec: &&OperandSpec| spec.beside.is_none_or(|modifier| chosen.contains(&Some(modifier)));
        let mut specs: Vec<&OperandSpec> = self.all.iter().filter(there).collect();
        if specs.len() != count {
            specs.retain(|spec| !spec.optional);
        }
        (specs.len() == count).then_some(specs)
    }

    /// Do operands of these kinds belong to this form? Types and widths are the verifier's business.
    pub(super) fn fits(&self, operands: &[Operand], form: &Form, chosen: &[Option<&'static str>]) -> bool {
        let Some(specs) = self.with(chosen, operands.len()) else { return false };
        specs.iter().zip(operands).all(|(spec, one)| spec.fits(one, &form.spelling, chosen))
    }
}

/// Splits at commas outside brackets.
fn pieces(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    let split = text.split(move |letter| {
        depth += match letter {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        letter == ',' && depth == 0
    });
    split.map(str::trim).filter(|piece| !piece.is_empty())
}

/// An operand of which the row says nothing special.
const PLAIN: OperandSpec = OperandSpec {
    name: "",
    field: Field::Immediate,
    defines: false,
    reads: true,
    second: Second::No,
    wider: false,
    symbols: false,
    halves: false,
    special: false,
    negated: false,
    sink: false,
    registers_only: false,
    constants: Constants::Any,
    space: None,
    optional: false,
    beside: None,
};

impl OperandSpec {
    fn compile(text: &'static str) -> OperandSpec {
        let (text, beside) = text.split_once('?').map_or((text, None), |(text, modifier)| (text, Some(modifier)));
        let (text, second) = match text.split_once("{|").or(text.split_once('|')) {
            Some((before, _)) => (before, if text.contains("{|") { Second::Maybe } else { Second::Yes }),
            None => (text, Second::No),
        };
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').expect("a row's address closes");
            return OperandSpec { second, beside, ..OperandSpec::address(inside) };
        }
        if let Some(name) = text.strip_prefix('(') {
            let defines = name.starts_with('d');
            return OperandSpec { field: Field::Arguments, defines, reads: !defines, ..PLAIN };
        }
        OperandSpec { second, beside, ..OperandSpec::value(text) }
    }

    fn value(text: &'static str) -> OperandSpec {
        let (name, ty) = text.split_once(':').expect("a row's operand has a type");
        let (ty, constants) = match ty.split_once('(') {
            Some((ty, rest)) => (ty, Constants::compile(rest.trim_end_matches(')'))),
            None => (ty, Constants::Any),
        };
        let defines = name.starts_with('d');
        let flag = |flag| ty.contains(flag);
        OperandSpec {
            name: name.trim_end_matches('+'),
            field: field(ty),
            defines,
            reads: !defines || name.ends_with('+'),
            wider: flag('>'),
            symbols: flag('&'),
            halves: flag('%'),
            special: flag('$'),
            negated: flag('!'),
            sink: flag('_'),
            registers_only: flag('^'),
            constants,
            ..PLAIN
        }
    }

    fn address(inside: &'static str) -> OperandSpec {
        let (name, rest) = inside.split_once([':', ',']).unwrap_or((inside, ""));
        let field = match rest.trim() {
            "" => Field::Address(None),
            rest if inside.contains(',') => Field::TensorAddress(typed(rest.split_once(':').expect("coordinates").1).1),
            rest => Field::Address(Some(typed(rest))),
        };
        let (name, space) = name.split_once('@').unwrap_or((name, ""));
        let space = (!space.is_empty()).then(|| space.parse().expect("a row's state space"));
        OperandSpec { name, field, space, ..PLAIN }
    }

    fn fits(&self, operand: &Operand, spelling: &Spelling, chosen: &[Option<&'static str>]) -> bool {
        let count = |count: Count| count.resolve(spelling, chosen);
        match (self.field, operand) {
            (_, Operand::Pair(first, second)) if self.second != Second::No => {
                self.fits_result(first) && matches!(**second, Operand::Register(_) | Operand::Sink)
            }
            (_, _) if self.second == Second::Yes => false,
            (Field::Value(_, count), one) if count.is_vector() && !matches!(one, Operand::Vector(_)) => false,
            (Field::Value(_, number), one) => self.fits_single(one, count(number)),
            (Field::Immediate, Operand::Immediate(_)) | (Field::Label, Operand::Label(_)) => true,
            (Field::Sink, Operand::Sink) => true,
            (Field::Function, Operand::Symbol(Symbol::Function(_))) => true,
            (Field::Arguments, Operand::Arguments(_)) => true,
            (Field::Address(_), Operand::Address(_)) => true,
            (Field::TensorAddress(_), Operand::TensorAddress(..)) => true,
            _ => false,
        }
    }

    /// The first of two results. PTX ISA: the sink `_` may stand for one predicate of `setp`, not for `shfl`'s value.
    fn fits_result(&self, operand: &Operand) -> bool {
        let predicate = matches!(self.field, Field::Value(TypeSpec::Fixed(Type::Pred), _));
        matches!(operand, Operand::Register(_)) || (predicate || self.sink) && *operand == Operand::Sink
    }

    fn fits_single(&self, operand: &Operand, count: u32) -> bool {
        match operand {
            Operand::Vector(parts) => count > 1 || self.halves || parts.len() == 1,
            _ if count > 1 => false,
            Operand::Register(_) => true,
            Operand::Immediate(_) => !self.defines && !self.registers_only,
            Operand::Special(_) => self.special,
            Operand::Symbol(_) => self.symbols,
            Operand::Not(_) => self.negated,
            Operand::Sink => self.sink,
            _ => false,
        }
    }
}

fn field(ty: &'static str) -> Field {
    match ty {
        "imm" => Field::Immediate,
        "label" => Field::Label,
        "function" => Field::Function,
        "sink" => Field::Sink,
        _ => {
            let (ty, count) = typed(ty);
            Field::Value(ty, count)
        }
    }
}

/// `b32[4]`, `T[V]`, `2T`, `f32[N/2]`, with flags that stand anywhere behind the type.
fn typed(text: &'static str) -> (TypeSpec, Count) {
    let end = text.find(['[', '>', '&', '$', '%', '!', '_', '^']).unwrap_or(text.len());
    let name = &text[..end];
    let slot = |name: &str| ["T", "U", "W", "X4"].iter().position(|one| *one == name);
    let ty = match (slot(name), name.strip_prefix('~').and_then(slot)) {
        (Some(index), _) => TypeSpec::Slot(index),
        (_, Some(index)) => TypeSpec::Packed(index),
        _ if name == "2T" => TypeSpec::Wide(0),
        _ => TypeSpec::Fixed(name.parse().expect("a row's operand type")),
    };
    (ty, text.split_once('[').map_or(Count::Fixed(1), |(_, rest)| count(rest.split(']').next().unwrap_or(rest), ty)))
}

fn count(text: &'static str, ty: TypeSpec) -> Count {
    let (number, divisor) = text.split_once('/').map_or((text, 1), |(n, d)| (n, d.parse().expect("a row's divisor")));
    let mut letters = number.chars();
    match (number.parse(), ty, letters.next(), letters.next()) {
        (Ok(fixed), ..) => Count::Fixed(fixed),
        (_, TypeSpec::Packed(index), Some(rows), Some(columns)) => Count::Fragment(rows, columns, index),
        (_, _, first, _) => Count::Variable(first.expect("a row's count"), divisor),
    }
}

impl Constants {
    fn compile(text: &'static str) -> Constants {
        let number = |text: &str| text.parse().expect("a row's constant");
        match (text.split_once(".."), text.strip_prefix('*')) {
            (Some((from, "")), _) => Constants::Range(number(from), NO_LIMIT),
            (Some((from, to)), _) => match to.split_once('*') {
                Some((to, step)) => Constants::Steps(number(from), number(to), number(step)),
                None => Constants::Range(number(from), number(to)),
            },
            (_, Some(factor)) => Constants::MultipleOf(number(factor)),
            _ => Constants::OneOf(text.split(' ').map(number).collect()),
        }
    }

    pub fn allow(&self, value: i128) -> bool {
        match self {
            Constants::Any => true,
            Constants::OneOf(all) => all.contains(&value),
            Constants::Range(from, to) => (*from..=*to).contains(&value),
            Constants::MultipleOf(factor) => value % factor == 0,
            Constants::Steps(from, to, step) => (*from..=*to).contains(&value) && value % step == 0,
        }
    }
}

/// As an error says it: "expected …".
impl std::fmt::Display for Constants {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Constants::Any => write!(f, "any number"),
            Constants::OneOf(all) => f.write_str(&all.iter().map(i128::to_string).collect::<Vec<_>>().join(" or ")),
            Constants::Range(from, NO_LIMIT) => write!(f, "{from} or more"),
            Constants::Range(from, to) => write!(f, "{from} to {to}"),
            Constants::MultipleOf(factor) => write!(f, "a multiple of {factor}"),
            Constants::Steps(from, to, step) => write!(f, "a multiple of {step} from {from} to {to}"),
        }
    }
}

impl Count {
    /// Does the operand have braces even around a single element? Matrices do, `ld` does not.
    pub fn is_vector(self) -> bool {
        matches!(self, Count::Fragment(..) | Count::Variable('X' | 'I', _))
    }

    pub fn resolve(self, spelling: &Spelling, chosen: &[Option<&'static str>]) -> u32 {
        match self {
            Count::Fixed(count) => count,
            Count::Variable(name, divisor) => spelling.variable(name, chosen).unwrap_or(1) / divisor,
            Count::Fragment(rows, columns, slot) => {
                let side = |name| spelling.variable(name, chosen).unwrap_or(1);
                let element = spelling.types(chosen).nth(slot).unwrap_or(Type::B32);
                side(rows) * side(columns) * element.bits() / (LANES * element.packed().bits())
            }
        }
    }

    pub fn of(self, instruction: &Instruction) -> u32 {
        self.resolve(&instruction.form.spelling, &instruction.modifiers)
    }
}

impl TypeSpec {
    /// The type this operand has in `instruction`.
    pub fn of(self, instruction: &Instruction) -> Option<Type> {
        match self {
            TypeSpec::Slot(index) => instruction.types().nth(index),
            TypeSpec::Wide(index) => instruction.types().nth(index).map(Type::widened),
            TypeSpec::Packed(index) => instruction.types().nth(index).map(Type::packed),
            TypeSpec::Fixed(ty) => Some(ty),
        }
    }
}
