//! What an instruction reads, from its row and its operands.

use super::special::single;
use crate::machine::{AddressSource, Decoder, Slot, Source};
use ptx::forms::{Effect, Field, OperandSpec, TypeSpec};
use ptx::{Instruction, Op, Operand, RegisterId, Space, Symbol, Type};

/// The bytes of a tensor map.
const MAP_BYTES: u64 = 128;

/// What one instruction reads.
pub struct Inputs {
    pub op: Op,
    /// Registers, constants, coordinates.
    pub values: Vec<Value>,
    pub places: Vec<Place>,
    /// Registers that show afterwards what was read, where the row does not tell how the bytes lie.
    pub loaded: Vec<RegisterId>,
    /// The types of the mnemonic.
    pub types: Vec<Type>,
}

pub struct Value {
    pub source: Source,
    /// The bits that count.
    pub bits: u32,
    /// The numbers in it.
    pub element: Type,
}

/// An address, and what is read there.
pub struct Place {
    pub address: AddressSource,
    /// None: generic.
    pub space: Option<Space>,
    pub bytes: Length,
    pub element: Type,
}

#[derive(Clone, Copy)]
pub enum Length {
    Fixed(u64),
    /// As an operand says.
    Of(Source),
}

impl Inputs {
    pub fn decode(instruction: &Instruction, decoder: &Decoder) -> Inputs {
        let types = instruction.types().collect();
        let mut inputs = Inputs { op: instruction.op(), values: vec![], places: vec![], loaded: vec![], types };
        let specs = instruction.form.operands.with(&instruction.modifiers, instruction.operands.len());
        for (spec, operand) in specs.into_iter().flatten().zip(&instruction.operands) {
            if spec.reads {
                inputs.add(spec, operand, instruction, decoder);
            }
        }
        let has_layout = matches!(inputs.op, Op::Matrix(_) | Op::Wmma(_));
        if instruction.form.effect == Effect::Reads && has_layout && !inputs.places.is_empty() {
            let registers = decoder.destinations(&instruction.operands[0]).unwrap_or_default();
            inputs.loaded.extend(registers.into_iter().flatten());
        }
        inputs
    }

    fn add(&mut self, spec: &OperandSpec, operand: &Operand, instruction: &Instruction, decoder: &Decoder) {
        match (spec.field, operand) {
            // Registers of a product of a warpgroup are read as parts of its matrices.
            (Field::Value(..), Operand::Vector(_)) if matches!(self.op, Op::Wgmma(_)) => {}
            (Field::Value(spec, _), _) => {
                let ty = spec.of(instruction).unwrap_or(Type::B64);
                let sources = decoder.sources(operand, ty).unwrap_or_default();
                let element = element(spec, instruction);
                self.values.extend(sources.into_iter().map(|source| Value { source, bits: ty.bits(), element }));
            }
            (Field::Immediate, _) => self.value(operand, Type::B64, decoder),
            (Field::Address(_), _) => self.place(spec, operand, instruction, decoder),
            (_, Operand::TensorAddress(map, coordinates)) => {
                let map = Operand::Address(map.clone());
                self.places.extend(decoder.address(&map).ok().map(|address| Place {
                    address,
                    space: None,
                    bytes: Length::Fixed(MAP_BYTES),
                    element: Type::B8,
                }));
                coordinates.iter().for_each(|one| self.value(one, Type::S32, decoder));
            }
            (_, Operand::Arguments(all)) => all.iter().for_each(|one| self.argument(one, decoder)),
            _ => {}
        }
    }

    fn value(&mut self, operand: &Operand, ty: Type, decoder: &Decoder) {
        let source = decoder.source(operand, ty).ok();
        self.values.extend(source.map(|source| Value { source, bits: ty.bits(), element: ty }));
    }

    fn argument(&mut self, operand: &Operand, decoder: &Decoder) {
        match (decoder.slot(operand, Type::B64), operand) {
            (Ok(Slot::Memory(offset)), Operand::Symbol(Symbol::Local(variable))) => self.places.push(Place {
                address: AddressSource { base: Source::Frame(offset), offset: 0 },
                space: Some(Space::Local),
                bytes: Length::Fixed(decoder.variable_bytes(*variable)),
                element: Type::B8,
            }),
            _ => self.value(operand, Type::B64, decoder),
        }
    }

    fn place(&mut self, spec: &OperandSpec, operand: &Operand, instruction: &Instruction, decoder: &Decoder) {
        let Ok(address) = decoder.address(operand) else { return };
        let space = spec.space.or_else(|| decoder.space(instruction, operand));
        let (bytes, element) = match (spec.field, self.op) {
            // What a store overwrites is nothing that it reads.
            (Field::Address(_), Op::Movement(_)) if instruction.form.effect == Effect::Writes => (0, Type::B8),
            (Field::Address(Some((ty, count))), _) => {
                let bytes = ty.of(instruction).map_or(0, Type::bytes) * count.of(instruction);
                (u64::from(bytes), element(ty, instruction))
            }
            (_, Op::TensorMap(_) | Op::Fence(_)) => (MAP_BYTES, Type::B8),
            _ => (0, Type::B8),
        };
        let copied = matches!(self.op, Op::AsyncCopy(_) | Op::BulkCopy(_)) && spec.name == "a";
        let length = instruction.operands.get(2).filter(|operand| copied && !matches!(operand, Operand::Address(_)));
        let length = length.and_then(|operand| decoder.source(operand, Type::U32).ok());
        let (bytes, element) = match length {
            Some(length) => (Length::Of(length), self.types.first().copied().unwrap_or(Type::B8)),
            None => (Length::Fixed(bytes), element),
        };
        self.places.push(Place { address, space, bytes, element });
    }
}

/// The type of the numbers in an operand.
pub fn element(spec: TypeSpec, instruction: &Instruction) -> Type {
    let ty = match spec {
        TypeSpec::Packed(slot) => instruction.types().nth(slot),
        other => other.of(instruction),
    };
    single(ty.unwrap_or(Type::B64))
}
