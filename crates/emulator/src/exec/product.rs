//! `mma.sync` and `wmma.mma`: a warp multiplies matrices that lie in its registers.

use super::layout::{Layout, Order};
use super::{At, Next};
use crate::algebra;
use crate::machine::{Cluster, Decoder, Source, Why};
use crate::numerics::convert::{f16_to_f32, f32_to_f16};
use crate::numerics::format::{Format, Rounding};
use crate::numerics::fragment::{Register, with_multiplier};
use crate::numerics::product::{Arithmetic, Digit, multiply_double};
use crate::numerics::tensor_core::{Rule, Shape};
use ptx::{Instruction, RegisterId, Type};

pub struct Product {
    work: Work,
    /// Of one product.
    shape: Shape,
    destinations: Vec<Option<RegisterId>>,
    sources: [Vec<Source>; 3],
    /// Of A, B, C and D.
    layouts: [Layout; 4],
}

/// What is computed.
#[derive(Clone, Copy)]
pub enum Work {
    /// C may be narrower than the arithmetic's accumulator, and D too.
    Single {
        arithmetic: Arithmetic,
        widen: bool,
        narrow: bool,
    },
    Double(Rounding),
    /// Of exact numbers, in elements of D, A, B and C of these types.
    Algebra([Type; 4]),
}

impl From<Arithmetic> for Work {
    fn from(arithmetic: Arithmetic) -> Work {
        Work::Single { arithmetic, widen: false, narrow: false }
    }
}

impl From<Rule> for Work {
    fn from(rule: Rule) -> Work {
        Arithmetic::Fused(rule).into()
    }
}

/// M, N and K of the mnemonic.
pub fn shape(instruction: &Instruction) -> Shape {
    let side = |name| instruction.form.spelling.variable(name, &instruction.modifiers).unwrap_or(1) as usize;
    Shape { rows: side('M'), columns: side('N'), depth: side('K') }
}

/// The order of A's registers and of B's: where there are fewer rows than columns, B has the order of A.
pub fn orders(shape: Shape) -> [Order; 2] {
    let orders = [Order::Paired, Order::Single];
    if shape.rows < shape.columns { [orders[1], orders[0]] } else { orders }
}

/// Integers of these types.
pub fn integers(types: [Type; 2], saturate: bool) -> Work {
    let [left, right] = types.map(|ty| Digit { bits: ty.bits(), signed: matches!(ty, Type::S4 | Type::S8) });
    Arithmetic::Integer { left, right, saturate }.into()
}

/// The same work on exact numbers, if that is asked for and it is work on floats.
fn in_algebra(work: Work, types: [Type; 4], decoder: &Decoder) -> Work {
    match decoder.algebra && types[0].is_float() {
        true => Work::Algebra(types),
        false => work,
    }
}

impl Product {
    /// With elements of D, A, B and C of these types.
    pub fn decode(work: Work, types: [Type; 4], instruction: &Instruction, decoder: &Decoder) -> Result<Product, Why> {
        let work = in_algebra(work, types, decoder);
        let shape = shape(instruction);
        let [left, right] = orders(shape);
        let accumulator = |ty: Type| Layout::accumulator(shape.rows, shape.columns, ty.bits());
        let layouts = [
            Layout::operand(shape.rows, shape.depth, types[1].bits(), left),
            Layout::operand(shape.columns, shape.depth, types[2].bits(), right),
            accumulator(types[3]),
            accumulator(types[0]),
        ];
        Product::with(work, shape, layouts, instruction, decoder)
    }

    /// `m8n8k4` of halves: four products.
    pub fn decode_quad(types: [Type; 2], instruction: &Instruction, decoder: &Decoder) -> Result<Product, Why> {
        let orders: Vec<_> =
            instruction.modifiers.iter().flatten().filter(|one| ["row", "col"].contains(one)).collect();
        let [into, from] = types.map(Type::bits);
        let accumulator = if into == 16 { Format::F16 } else { Format::F32 };
        let work = Work::Single { arithmetic: Arithmetic::Quad { accumulator }, widen: from < into, narrow: false };
        let work = in_algebra(work, [types[0], Type::F16, Type::F16, types[1]], decoder);
        let layouts = [
            Layout::quad_operand(*orders[0] == "row"),
            Layout::quad_operand(*orders[1] == "col"),
            Layout::quad_accumulator(from),
            Layout::quad_accumulator(into),
        ];
        Product::with(work, shape(instruction), layouts, instruction, decoder)
    }

    fn with(
        work: Work,
        shape: Shape,
        layouts: [Layout; 4],
        instruction: &Instruction,
        decoder: &Decoder,
    ) -> Result<Product, Why> {
        let sources = |index: usize| {
            let ty = if layouts[index - 1].bits == 64 { Type::F64 } else { Type::B32 };
            decoder.sources(&instruction.operands[index], ty)
        };
        let sources = [sources(1)?, sources(2)?, sources(3)?];
        Ok(Product { work, shape, destinations: decoder.destinations(&instruction.operands[0])?, sources, layouts })
    }

    pub fn execute(&self, cluster: &mut Cluster, at: At) -> Next {
        super::together(cluster, at, |cluster, at| self.multiply(cluster, at))
    }

    fn multiply(&self, cluster: &mut Cluster, at: At) {
        match self.work {
            Work::Double(rounding) => {
                let [a, b, mut c] = [0, 1, 2].map(|operand| self.collect(cluster, at, operand, |bits| bits));
                multiply_double(rounding, self.shape, &a, &b, &mut c);
                self.write(cluster, at, &c);
            }
            Work::Algebra(types) => self.multiply_payloads(cluster, at, types),
            Work::Single { arithmetic: Arithmetic::Fused(rule), widen: false, narrow: false } => {
                self.multiply_fragments(cluster, at, &rule);
            }
            Work::Single { arithmetic, widen, narrow } => {
                let [a, b] = [0, 1].map(|operand| self.collect(cluster, at, operand, |bits| bits as u32));
                let wide = |bits: u64| if widen { f16_to_f32(bits as u16) } else { bits as u32 };
                let mut c = self.collect(cluster, at, 2, wide);
                self.each_product(&a, &b, &mut c, |shape, a, b, c| arithmetic.multiply(shape, a, b, c));
                if narrow {
                    c.iter_mut().for_each(|value| *value = u32::from(f32_to_f16(*value, Rounding::Nearest)));
                }
                self.write(cluster, at, &c);
            }
        }
    }

    fn multiply_payloads(&self, cluster: &mut Cluster, at: At, [d, a, b, c]: [Type; 4]) {
        let matrix = |operand, ty| self.collect(cluster, at, operand, |bits| algebra::decode(ty, bits));
        let (a, b, mut c) = (matrix(0, a), matrix(1, b), matrix(2, c));
        self.each_product(&a, &b, &mut c, algebra::multiply);
        let c: Vec<u64> = c.into_iter().map(|element| algebra::encode(d, element)).collect();
        self.write(cluster, at, &c);
    }

    /// Straight from register to register: fragments are made of core matrices, and lie as the multiplier has them.
    fn multiply_fragments(&self, cluster: &mut Cluster, at: At, rule: &Rule) {
        // A product of 8x32 lies in registers as the transposed one does.
        let transposed = self.shape.rows < self.shape.columns;
        let [left, right] =
            if transposed { [1, 0] } else { [0, 1] }.map(|operand| self.registers(cluster, at, operand));
        let (sides, accumulators) = ([self.shape.rows, self.shape.columns], self.registers(cluster, at, 2));
        let (tiles, groups) = (sides.into_iter().max().unwrap_or(0) / 16, sides.into_iter().min().unwrap_or(0) / 8);
        let mut results = Vec::with_capacity(self.destinations.len());
        with_multiplier(cluster.precision, |multiplier| {
            multiplier.load_right(rule.operand, groups, &right);
            let accumulators = accumulators.chunks_exact(accumulators.len() / tiles);
            for (left, c) in left.chunks_exact(left.len() / tiles).zip(accumulators) {
                multiplier.load_left(rule.operand, left);
                let mut c = if self.layouts[2].bits == 16 { unpack(c) } else { c.to_vec() };
                multiplier.multiply(rule, &mut c);
                results.extend(if self.layouts[3].bits == 16 { pack(&c) } else { c });
            }
        });
        for (register, destination) in self.destinations.iter().enumerate() {
            if let Some(destination) = destination {
                let words = &results[register % results.len()];
                cluster.warps[at.warp].registers.write_words(*destination, at.mask, words);
            }
        }
    }

    /// Those of A, B or C that differ.
    fn registers(&self, cluster: &Cluster, at: At, operand: usize) -> Vec<Register> {
        let sources = &self.sources[operand][..self.layouts[operand].registers()];
        sources.iter().map(|source| cluster.read_words(at.warp, *source)).collect()
    }

    /// A, B or C.
    fn collect<T: Copy + Default>(
        &self,
        cluster: &Cluster,
        at: At,
        operand: usize,
        element: impl Fn(u64) -> T,
    ) -> Vec<T> {
        let read = |register: usize| cluster.read(at.warp, self.sources[operand][register]);
        self.layouts[operand].collect(read, element)
    }

    /// One product, or four.
    fn each_product<T>(&self, a: &[T], b: &[T], c: &mut [T], multiply: impl Fn(Shape, &[T], &[T], &mut [T])) {
        let Shape { rows, columns, depth } = self.shape;
        let operands = a.chunks_exact(rows * depth).zip(b.chunks_exact(columns * depth));
        for ((a, b), c) in operands.zip(c.chunks_exact_mut(rows * columns)) {
            multiply(self.shape, a, b, c);
        }
    }

    fn write<T: Copy + Into<u64>>(&self, cluster: &mut Cluster, at: At, matrix: &[T]) {
        for (register, destination) in self.destinations.iter().enumerate() {
            cluster.warps[at.warp].write(*destination, at.mask, &self.layouts[3].spread(matrix, register));
        }
    }
}

/// Halves in registers of their own, as the multiplier wants them.
pub fn unpack(registers: &[Register]) -> Vec<Register> {
    registers
        .iter()
        .flat_map(|register| [register.map(|pair| pair & 0xffff), register.map(|pair| pair >> 16)])
        .collect()
}

/// The other way.
pub fn pack(registers: &[Register]) -> Vec<Register> {
    let pair = |[low, high]: &[Register; 2]| std::array::from_fn(|lane| low[lane] | high[lane] << 16);
    registers.as_chunks().0.iter().map(pair).collect()
}
