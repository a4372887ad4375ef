//! `wgmma`: a warpgroup multiplies matrices of which at least one lies in shared memory.
//!
//! Four warps issue a product together, and each computes its own 16 of the 64 rows. A product has two moments: when it
//! is issued, its descriptors say what it reads ([`Issued`]); when it is carried out, any time until it is waited for, it
//! reads shared memory and registers and writes its accumulators.

mod arithmetic;
mod descriptor;
mod fragment;
mod issue;
mod reads;

pub use descriptor::{Fault, PIECE};
pub use issue::execute;
pub use reads::Reads;

use super::At;
use super::layout::Layout;
use super::product::{pack, shape, unpack};
use crate::algebra::{self, Payload};
use crate::machine::{Cluster, Decoder, RegisterSet, Source, Values, Why, lanes};
use crate::numerics::fragment::{Precision, Register, with_multiplier};
use crate::numerics::product::Arithmetic;
use crate::numerics::tensor_core::{Rule, Shape};
use descriptor::{Descriptor, Major, Shared, Tile};
use fragment::ROWS;
use ptx::forms::Wgmma;
use ptx::{Immediate, Instruction, Operand, RegisterId, Type};
use std::sync::Arc;

/// What a warpgroup is asked.
pub enum Request {
    Multiply(Arc<Multiply>),
    /// Orders the registers of products before and after.
    Fence,
    /// Ends a group of products.
    Commit,
    /// Until at most so many groups are on their way.
    Wait(u32),
}

/// A product, as one warp of four sees it.
pub struct Multiply {
    arithmetic: Arithmetic,
    /// Types of D, A and B, where floats are exact numbers.
    algebra: Option<[Type; 3]>,
    /// Of the warp's part.
    shape: Shape,
    /// Of an element of A or B.
    bits: u32,
    /// What is flipped in every element of A, and of B.
    signs: [u32; 2],
    left: Left,
    right: Matrix,
    /// Where this is false, the accumulator counts as zero.
    accumulate: Source,
    accumulator: Layout,
    destinations: Vec<Option<RegisterId>>,
    accumulators: RegisterSet,
    /// The registers of A.
    fragments: RegisterSet,
}

/// What a register is to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Accumulator,
    /// Holds elements of A.
    Operand,
}

enum Left {
    Registers(Vec<Source>, Layout),
    Shared(Matrix),
}

/// A matrix in shared memory.
struct Matrix {
    descriptor: Source,
    major: Major,
}

/// What a product of one warp reads, known as soon as it is issued.
#[derive(Clone, Debug)]
pub struct Issued {
    left: Option<Tile>,
    right: Tile,
    accumulate: bool,
}

pub fn decode(op: Wgmma, instruction: &Instruction, decoder: &Decoder) -> Result<Request, Why> {
    Ok(match op {
        Wgmma::Fence => Request::Fence,
        Wgmma::Commit => Request::Commit,
        Wgmma::WaitGroup => Request::Wait(integer(&instruction.operands[0])? as u32),
        Wgmma::HalfShared
        | Wgmma::HalfRegister
        | Wgmma::HalfToHalfShared
        | Wgmma::HalfToHalfRegister
        | Wgmma::BrainShared
        | Wgmma::BrainRegister
        | Wgmma::Tensor32Shared
        | Wgmma::Tensor32Register
        | Wgmma::Float8Shared
        | Wgmma::Float8Register
        | Wgmma::Float8ToHalfShared
        | Wgmma::Float8ToHalfRegister
        | Wgmma::Integer8Shared
        | Wgmma::Integer8Register
        | Wgmma::BitsShared
        | Wgmma::BitsRegister => Request::Multiply(Arc::new(Multiply::decode(instruction, decoder)?)),
    })
}

impl Multiply {
    fn decode(instruction: &Instruction, decoder: &Decoder) -> Result<Multiply, Why> {
        let types: Vec<Type> = instruction.types().collect();
        let &[d, a, b] = types.as_slice() else { return Err("types of this number".into()) };
        let arithmetic = arithmetic::arithmetic([d, a, b], instruction.has("satfinite")).ok_or("these types")?;
        let [to, left, right, accumulate, tail @ ..] = instruction.operands.as_slice() else {
            return Err("operands of this number".into());
        };
        let tail = tail.iter().map(integer).collect::<Result<Vec<i64>, Why>>()?;
        let (scales, transposed) = tail.split_at(tail.len().min(2));
        let flip = |index: usize, ty| if scales.get(index) == Some(&-1) { arithmetic::sign(ty) } else { 0 };
        let shape = Shape { rows: ROWS, ..shape(instruction) };
        let left = match left {
            Operand::Vector(_) => {
                Left::Registers(decoder.sources(left, Type::B32)?, fragment::left(shape.depth, a.bits()))
            }
            _ => Left::Shared(Matrix::decode(left, transposed.first(), decoder)?),
        };
        let destinations = decoder.destinations(to)?;
        Ok(Multiply {
            accumulators: destinations.iter().flatten().copied().collect(),
            fragments: left.registers().collect(),
            arithmetic,
            algebra: (decoder.algebra && d.is_float()).then_some([d, a, b]),
            shape,
            bits: a.bits(),
            signs: [flip(0, a), flip(1, b)],
            left,
            right: Matrix::decode(right, transposed.last(), decoder)?,
            accumulate: decoder.source(accumulate, Type::Pred)?,
            accumulator: fragment::accumulator(shape.columns, d.bits()),
            destinations,
        })
    }

    /// The accumulators, read and written in flight.
    pub fn destinations(&self) -> &[Option<RegisterId>] {
        &self.destinations
    }

    /// What a register is to this product.
    pub fn role(&self, register: RegisterId) -> Option<Role> {
        match (self.accumulators.has(register), self.fragments.has(register)) {
            (true, _) => Some(Role::Accumulator),
            (_, true) => Some(Role::Operand),
            _ => None,
        }
    }

    /// The accumulators and the registers of A.
    pub fn registers(&self) -> impl Iterator<Item = RegisterId> {
        self.destinations.iter().flatten().copied().chain(self.left.registers())
    }

    /// A register that this product must not use while `earlier` is in flight. Products of one shape may share their
    /// accumulators, and all may read the same A.
    pub fn clash(&self, earlier: &Multiply) -> Option<RegisterId> {
        let chained = self.shape == earlier.shape && self.destinations == earlier.destinations;
        let accumulators = self.accumulators.common(&earlier.accumulators).filter(|_| !chained);
        let read = || self.fragments.common(&earlier.accumulators);
        let overwritten = || self.accumulators.common(&earlier.fragments);
        accumulators.or_else(read).or_else(overwritten)
    }

    /// Does any of the lanes ask for the accumulators' old values?
    pub fn accumulates(&self, cluster: &Cluster, at: At) -> bool {
        let asks = cluster.read(at.warp, self.accumulate);
        lanes(at.mask).any(|lane| asks[lane] != 0)
    }

    /// What warp `quarter` of the warpgroup reads. `read` reads what all lanes of the warp hold.
    pub fn issue(&self, quarter: usize, read: impl Fn(Source) -> Values) -> Result<Issued, Fault> {
        let first = (quarter * ROWS) as u32;
        let left = match &self.left {
            Left::Registers(..) => None,
            Left::Shared(matrix) => Some(matrix.tile("the descriptor of A", first..first + ROWS as u32, &read)?),
        };
        let right = self.right.tile("the descriptor of B", 0..self.shape.columns as u32, &read)?;
        Ok(Issued { left, right, accumulate: uniform("scale-d", read(self.accumulate))? != 0 })
    }

    /// Carries the product out. The result has the words of each of the [`Multiply::destinations`].
    pub fn execute(
        &self,
        issued: &Issued,
        precision: Precision,
        shared: &(impl Shared + ?Sized),
        read: impl Fn(Source) -> Register,
    ) -> Vec<Register> {
        match (self.algebra, self.arithmetic) {
            (Some(types), _) => self.execute_payloads(types, issued, shared, read),
            (None, Arithmetic::Fused(rule)) => self.execute_fragments((&rule, precision), issued, shared, read),
            (None, _) => self.execute_elements(issued, shared, read),
        }
    }

    /// With core matrices: 16 bytes of memory are a line of one, and a register of A is one.
    fn execute_fragments(
        &self,
        (rule, precision): (&Rule, Precision),
        issued: &Issued,
        shared: &(impl Shared + ?Sized),
        read: impl Fn(Source) -> Register,
    ) -> Vec<Register> {
        let mut left = match (&self.left, &issued.left) {
            (Left::Registers(sources, _), _) => sources.iter().map(|source| read(*source)).collect(),
            (Left::Shared(_), tile) => tile.as_ref().map_or(vec![], |tile| tile.cores(shared)),
        };
        if let (Left::Shared(_), [_, second, third, _]) = (&self.left, left.as_mut_slice()) {
            std::mem::swap(second, third); // Both halves of the rows for each step of depth.
        }
        let mut right = issued.right.cores(shared);
        for (cores, sign) in [&mut left, &mut right].into_iter().zip(self.signs).filter(|(_, sign)| *sign != 0) {
            let signs = (0..32).step_by(self.bits as usize).fold(0, |signs, at| signs | sign << at);
            cores.iter_mut().flatten().for_each(|word| *word ^= signs);
        }
        let old = |register: &Option<RegisterId>| match register {
            Some(register) if issued.accumulate => read(Source::Register(*register)),
            _ => [0; 32],
        };
        let c: Vec<Register> = self.destinations.iter().map(old).collect();
        let halves = self.accumulator.bits == 16;
        let mut c = if halves { unpack(&c) } else { c };
        with_multiplier(precision, |multiplier| {
            multiplier.load_right(rule.operand, self.shape.columns / 8, &right);
            multiplier.load_left(rule.operand, &left);
            multiplier.multiply(rule, &mut c);
        });
        if halves { pack(&c) } else { c }
    }

    /// The warp's rows of A and the columns of B, the depth running fastest.
    pub fn elements(
        &self,
        issued: &Issued,
        shared: &(impl Shared + ?Sized),
        read: impl Fn(Source) -> Values,
    ) -> [Vec<u32>; 2] {
        let a = match (&self.left, &issued.left) {
            (Left::Registers(sources, layout), _) => layout.collect(|at| read(sources[at]), |bits| bits as u32),
            (Left::Shared(_), tile) => tile.as_ref().map_or(vec![], |tile| tile.elements(shared, self.bits)),
        };
        [a, issued.right.elements(shared, self.bits)]
    }

    fn execute_payloads(
        &self,
        [d, a, b]: [Type; 3],
        issued: &Issued,
        shared: &(impl Shared + ?Sized),
        read: impl Fn(Source) -> Register,
    ) -> Vec<Register> {
        let read = |source: Source| read(source).map(u64::from);
        let elements = self.elements(issued, shared, read);
        let payloads = |side: usize, ty| -> Vec<Payload> {
            let all = elements[side].iter().map(|element| algebra::decode(ty, (*element).into()));
            if self.signs[side] == 0 { all.collect() } else { all.map(Payload::negated).collect() }
        };
        let old = |at: usize| self.destinations[at].map_or([0; 32], |register| read(Source::Register(register)));
        let mut c = match issued.accumulate {
            true => self.accumulator.collect(old, |bits| algebra::decode(d, bits)),
            false => vec![Payload::default(); self.accumulator.elements],
        };
        algebra::multiply(self.shape, &payloads(0, a), &payloads(1, b), &mut c);
        let c: Vec<u64> = c.into_iter().map(|element| algebra::encode(d, element)).collect();
        let spread = |register| self.accumulator.spread(&c, register).map(|value| value as u32);
        (0..self.accumulator.registers()).map(spread).collect()
    }

    fn execute_elements(
        &self,
        issued: &Issued,
        shared: &(impl Shared + ?Sized),
        read: impl Fn(Source) -> Register,
    ) -> Vec<Register> {
        let read = |source: Source| read(source).map(u64::from);
        let [mut a, mut b] = self.elements(issued, shared, read);
        for (matrix, sign) in [&mut a, &mut b].into_iter().zip(self.signs).filter(|(_, sign)| *sign != 0) {
            matrix.iter_mut().for_each(|element| *element ^= sign);
        }
        let old = |at: usize| self.destinations[at].map_or([0; 32], |register| read(Source::Register(register)));
        let mut c = match issued.accumulate {
            true => self.accumulator.collect(old, |bits| bits as u32),
            false => vec![0; self.accumulator.elements],
        };
        self.arithmetic.multiply(self.shape, &a, &b, &mut c);
        let spread = |register| self.accumulator.spread(&c, register).map(|value| value as u32);
        (0..self.accumulator.registers()).map(spread).collect()
    }
}

impl Left {
    fn registers(&self) -> impl Iterator<Item = RegisterId> {
        let sources = match self {
            Left::Registers(sources, _) => sources.as_slice(),
            Left::Shared(_) => &[],
        };
        sources.iter().filter_map(|source| match source {
            Source::Register(register) => Some(*register),
            _ => None,
        })
    }
}

impl Matrix {
    fn decode(descriptor: &Operand, transposed: Option<&i64>, decoder: &Decoder) -> Result<Matrix, Why> {
        let major = if transposed == Some(&1) { Major::Lines } else { Major::Depth };
        Ok(Matrix { descriptor: decoder.source(descriptor, Type::U64)?, major })
    }

    fn tile(
        &self,
        what: &'static str,
        lines: std::ops::Range<u32>,
        read: impl Fn(Source) -> Values,
    ) -> Result<Tile, Fault> {
        let descriptor = Descriptor::decode(uniform(what, read(self.descriptor))?)?;
        Ok(Tile { descriptor, major: self.major, lines })
    }
}

impl Issued {
    /// Are the accumulators read?
    pub fn accumulates(&self) -> bool {
        self.accumulate
    }

    /// First bytes of the pieces of shared memory that are read, of [`PIECE`] bytes each: those of A, then those of B.
    pub fn pieces(&self) -> impl Iterator<Item = u32> {
        self.left.iter().flat_map(Tile::pieces).chain(self.right.pieces())
    }
}

fn uniform(what: &'static str, values: Values) -> Result<u64, Fault> {
    let same = values.iter().all(|value| *value == values[0]);
    if same { Ok(values[0]) } else { Err(Fault::Different { what }) }
}

fn integer(operand: &Operand) -> Result<i64, Why> {
    match operand {
        Operand::Immediate(Immediate::Integer(value)) => Ok(*value as i64),
        _ => Err("an operand that is no integer".into()),
    }
}

#[cfg(test)]
mod tests;
