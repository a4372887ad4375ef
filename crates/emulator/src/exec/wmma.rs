//! `wmma`: fragments between registers and memory, and their product.

use super::access::Access;
use super::layout::Layout;
use super::product::{Product, Work, integers, orders, shape};
use super::{Action, At, Next, together};
use crate::machine::{AddressSource, Cluster, Decoder, Source, Values, Why};
use crate::numerics::format::Rounding;
use crate::numerics::product::Arithmetic;
use crate::numerics::tensor_core::Rule;
use happens_before::Kind;
use ptx::forms::Wmma;
use ptx::{Instruction, RegisterId, Space, Type};

/// A matrix on its way from memory to the registers of a warp, or back.
pub struct Transfer {
    registers: Registers,
    address: AddressSource,
    /// Elements from one line in memory to the next.
    stride: Source,
    space: Option<Space>,
    layout: Layout,
    /// Elements that follow each other in the layout's index before a new line begins.
    width: usize,
    /// Memory runs across the layout's lines.
    across: bool,
}

enum Registers {
    Load(Vec<Option<RegisterId>>),
    Store(Vec<Source>),
}

/// Which matrix of the product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Left,
    Right,
    Accumulator,
}

pub fn decode(op: Wmma, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    match op {
        Wmma::LoadHalfA
        | Wmma::LoadBrainA
        | Wmma::LoadInteger8A
        | Wmma::LoadTensor32A
        | Wmma::LoadDoubleA
        | Wmma::LoadInteger4A
        | Wmma::LoadBitsA => Transfer::load(Role::Left, instruction, decoder),
        Wmma::LoadHalfB
        | Wmma::LoadBrainB
        | Wmma::LoadInteger8B
        | Wmma::LoadTensor32B
        | Wmma::LoadDoubleB
        | Wmma::LoadInteger4B
        | Wmma::LoadBitsB => Transfer::load(Role::Right, instruction, decoder),
        Wmma::LoadCFloats | Wmma::LoadCIntegers | Wmma::LoadCTensor32 | Wmma::LoadCDouble | Wmma::LoadCSmall => {
            Transfer::load(Role::Accumulator, instruction, decoder)
        }
        Wmma::StoreDFloats | Wmma::StoreDIntegers | Wmma::StoreDTensor32 | Wmma::StoreDDouble | Wmma::StoreDSmall => {
            Transfer::store(instruction, decoder)
        }
        Wmma::MultiplyHalf
        | Wmma::MultiplyBrain
        | Wmma::MultiplyTensor32
        | Wmma::MultiplyDouble
        | Wmma::MultiplySigned8
        | Wmma::MultiplyUnsigned8
        | Wmma::MultiplySigned4
        | Wmma::MultiplyUnsigned4
        | Wmma::MultiplyBits => {
            decode_product(op, instruction, decoder).map(|product| Action::Product(Box::new(product)))
        }
    }
}

fn decode_product(op: Wmma, instruction: &Instruction, decoder: &Decoder) -> Result<Product, Why> {
    let types: Vec<Type> = instruction.types().collect();
    let types = match *types.as_slice() {
        [d, c] => [d, Type::F16, Type::F16, c],
        [d, a, b, c] => [d, a, b, c],
        _ => return Err("types of this number".into()),
    };
    let [d, a, b, c] = types;
    let work: Work = match op {
        Wmma::MultiplyHalf if (d, c) == (Type::F16, Type::F16) => Rule::F16_K16_F16.into(),
        Wmma::MultiplyHalf => {
            Work::Single { arithmetic: Arithmetic::Fused(Rule::F16_K16), widen: c == Type::F16, narrow: d == Type::F16 }
        }
        Wmma::MultiplyBrain => Rule::BF16_K16.into(),
        // The depth of 8 is done in two steps of 4.
        Wmma::MultiplyTensor32 => Rule::TF32_K4.into(),
        Wmma::MultiplyDouble => Work::Double(rounding(instruction)),
        Wmma::MultiplyBits => Arithmetic::Bits { exclusive: instruction.has("xor") }.into(),
        _ => integers([a, b], instruction.has("satfinite")),
    };
    Product::decode(work, types, instruction, decoder)
}

fn rounding(instruction: &Instruction) -> Rounding {
    match instruction.choice(&["rz", "rm", "rp"]) {
        Some("rz") => Rounding::Zero,
        Some("rm") => Rounding::Down,
        Some(_) => Rounding::Up,
        None => Rounding::Nearest,
    }
}

impl Transfer {
    fn load(role: Role, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
        let registers = Registers::Load(decoder.destinations(&instruction.operands[0])?);
        Transfer::decode(registers, role, decoder.address(&instruction.operands[1])?, instruction, decoder)
    }

    fn store(instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
        let registers = Registers::Store(decoder.sources(&instruction.operands[1], Type::B64)?);
        let address = decoder.address(&instruction.operands[0])?;
        Transfer::decode(registers, Role::Accumulator, address, instruction, decoder)
    }

    fn decode(
        registers: Registers,
        role: Role,
        address: AddressSource,
        instruction: &Instruction,
        decoder: &Decoder,
    ) -> Result<Action, Why> {
        let (shape, bits) = (shape(instruction), instruction.ty().unwrap_or(Type::B32).bits());
        let [left, right] = orders(shape);
        let (layout, lines, width) = match role {
            Role::Left => (Layout::operand(shape.rows, shape.depth, bits, left), shape.rows, shape.depth),
            Role::Right => (Layout::operand(shape.columns, shape.depth, bits, right), shape.columns, shape.depth),
            Role::Accumulator => (Layout::accumulator(shape.rows, shape.columns, bits), shape.rows, shape.columns),
        };
        let across = instruction.has("row") == (role == Role::Right);
        let stride = match instruction.operands.get(2) {
            Some(operand) => decoder.source(operand, Type::U32)?,
            None => Source::Constant(if across { lines } else { width } as u64),
        };
        let space = instruction.space();
        let transfer = Transfer { registers, address, stride, space, layout, width, across };
        Ok(Action::Fragment(Box::new(transfer)))
    }

    pub fn execute(&self, cluster: &mut Cluster, at: At) -> Next {
        together(cluster, at, |cluster, at| match &self.registers {
            Registers::Load(destinations) => self.fill(cluster, at, destinations),
            Registers::Store(sources) => self.empty(cluster, at, sources),
        })
    }

    fn fill(&self, cluster: &mut Cluster, at: At, destinations: &[Option<RegisterId>]) {
        let bases = self.bases(cluster, at);
        let mut loaded: Vec<Values> = vec![];
        for register in 0..self.layout.registers() {
            let mut values = [0; 32];
            for (first, count) in self.runs(register) {
                let access = self.access(Kind::Read, count);
                let places = cluster.access(at, &access, &self.addresses(&bases, register, first));
                for (value, place) in values.iter_mut().zip(places) {
                    *value |= cluster.fetch(place, 0, access.bytes as usize) << (first * self.layout.bits as usize);
                }
            }
            loaded.push(values);
        }
        for (destination, values) in destinations.iter().zip(loaded.iter().cycle()) {
            cluster.warps[at.warp].write(*destination, at.mask, values);
        }
    }

    fn empty(&self, cluster: &mut Cluster, at: At, sources: &[Source]) {
        let bases = self.bases(cluster, at);
        for (register, source) in sources.iter().enumerate() {
            let values = cluster.read(at.warp, *source);
            for (first, count) in self.runs(register) {
                let access = self.access(Kind::Write, count);
                let places = cluster.access(at, &access, &self.addresses(&bases, register, first));
                for (value, place) in values.iter().zip(places) {
                    cluster.put(place, 0, access.bytes as usize, value >> (first * self.layout.bits as usize));
                }
            }
        }
    }

    fn access(&self, kind: Kind, count: usize) -> Access {
        Access { space: self.space, kind, bytes: count as u32 * self.layout.bits / 8 }
    }

    /// Elements of a register that lie together in memory: the first and how many.
    fn runs(&self, register: usize) -> Vec<(usize, usize)> {
        let parts = self.layout.parts;
        let step = if self.across { self.width } else { 1 };
        let index = |part: usize| usize::from(self.layout.places(register, part)[0]);
        if (1..parts).all(|part| index(part) == index(0) + part * step) {
            vec![(0, parts)]
        } else {
            (0..parts).map(|part| (part, 1)).collect()
        }
    }

    /// Address and stride of every lane.
    fn bases(&self, cluster: &Cluster, at: At) -> [Values; 2] {
        [cluster.addresses(at.warp, &self.address), cluster.read(at.warp, self.stride)]
    }

    fn addresses(&self, [bases, strides]: &[Values; 2], register: usize, part: usize) -> Values {
        let places = self.layout.places(register, part);
        std::array::from_fn(|lane| {
            let (line, column) =
                (u64::from(places[lane]) / self.width as u64, u64::from(places[lane]) % self.width as u64);
            let (far, near) = if self.across { (column, line) } else { (line, column) };
            let elements = far * (strides[lane] & 0xffff_ffff) + near;
            bases[lane].wrapping_add(elements * u64::from(self.layout.bits) / 8)
        })
    }
}
