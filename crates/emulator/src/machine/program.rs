//! An entry, decoded once per launch: operands resolved to registers, constants and addresses.

use super::flow::Flow;
use crate::exec::{self, Action, Compute, Lanewise};
use crate::memory::SharedMemory;
use ptx::{Address, AddressBase, Function, Immediate, Instruction, Operand, RegisterId, Statement, Symbol, Type};

/// A decoded entry. Steps stand at the index of their statement, so that a step's place is its name in reports.
pub struct Program {
    pub steps: Vec<Step>,
}

pub struct Step {
    pub guard: Option<ptx::Guard>,
    pub action: Action,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Register(RegisterId),
    /// `!%p`.
    Not(RegisterId),
    Constant(u64),
    Special(&'static str),
}

/// A base and a constant offset.
#[derive(Clone, Copy, Debug)]
pub struct AddressSource {
    pub base: Source,
    pub offset: i64,
}

/// A form or use of a form that the emulator does not execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the emulator does not execute `{mnemonic}`{why}")]
pub struct Unsupported {
    pub mnemonic: String,
    pub why: String,
    pub statement: ptx::StatementId,
}

impl Program {
    pub fn decode(function: &Function, shared: &SharedMemory) -> Result<Program, Unsupported> {
        let decoder = Decoder { function, shared, flow: Flow::new(function) };
        let steps = function.body.iter().enumerate().map(|(at, statement)| decoder.step(at, statement));
        Ok(Program { steps: steps.collect::<Result<_, _>>()? })
    }
}

/// What decoding an instruction needs to know around it.
pub struct Decoder<'a> {
    function: &'a Function,
    shared: &'a SharedMemory,
    pub flow: Flow,
}

/// Why an operand cannot be decoded; the caller adds the instruction.
pub type Why = String;

impl Decoder<'_> {
    fn step(&self, at: usize, statement: &Statement) -> Result<Step, Unsupported> {
        let Statement::Instruction(instruction) = statement else {
            return Ok(Step { guard: None, action: Action::Nothing });
        };
        let action = exec::decode(self, at, instruction).map_err(|why| Unsupported {
            mnemonic: instruction.mnemonic(),
            why: if why.is_empty() { why } else { format!(": {why}") },
            statement: ptx::StatementId(at as u32),
        })?;
        Ok(Step { guard: instruction.guard, action })
    }

    /// The operand's registers or constants, one for each element of a vector.
    pub fn sources(&self, operand: &Operand, ty: Type) -> Result<Vec<Source>, Why> {
        match operand {
            Operand::Vector(parts) => parts.iter().map(|part| self.source(part, ty)).collect(),
            single => Ok(vec![self.source(single, ty)?]),
        }
    }

    pub fn source(&self, operand: &Operand, ty: Type) -> Result<Source, Why> {
        match operand {
            Operand::Register(register) => Ok(Source::Register(*register)),
            Operand::Not(register) => Ok(Source::Not(*register)),
            Operand::Immediate(value) => Ok(Source::Constant(constant(*value, ty))),
            Operand::Special(name) if exec::knows_special(name) => Ok(Source::Special(name)),
            Operand::Special(name) => Err(format!("`{name}`")),
            Operand::Symbol(symbol) => self.symbol(*symbol).map(Source::Constant),
            Operand::Vector(parts) if parts.len() == 1 => self.source(&parts[0], ty),
            _ => Err("an operand of this kind".into()),
        }
    }

    /// A destination, or none for `_`.
    pub fn destination(&self, operand: &Operand) -> Result<Option<RegisterId>, Why> {
        match operand {
            Operand::Register(register) => Ok(Some(*register)),
            Operand::Sink => Ok(None),
            Operand::Vector(parts) if parts.len() == 1 => self.destination(&parts[0]),
            _ => Err("a destination of this kind".into()),
        }
    }

    pub fn destinations(&self, operand: &Operand) -> Result<Vec<Option<RegisterId>>, Why> {
        match operand {
            Operand::Vector(parts) => parts.iter().map(|part| self.destination(part)).collect(),
            single => Ok(vec![self.destination(single)?]),
        }
    }

    pub fn address(&self, operand: &Operand) -> Result<AddressSource, Why> {
        match operand {
            Operand::Address(Address { base, offset }) => {
                let base = match base {
                    AddressBase::Register(register) => Source::Register(*register),
                    AddressBase::Symbol(symbol) => Source::Constant(self.symbol(*symbol)?),
                    AddressBase::Absolute => Source::Constant(0),
                };
                Ok(AddressSource { base, offset: *offset })
            }
            _ => Err("an address of this kind".into()),
        }
    }

    /// The address of a variable in its own space.
    fn symbol(&self, symbol: Symbol) -> Result<u64, Why> {
        match symbol {
            Symbol::Parameter(parameter) => Ok(self.function.parameter_offset(parameter.0 as usize)),
            other => self.shared.address(other).ok_or("variables outside shared memory".into()),
        }
    }

    /// How wide a register is.
    pub fn bits(&self, register: RegisterId) -> u32 {
        self.function[register].ty.bits()
    }

    /// The sources of a lanewise instruction, each with its type from the form table; missing ones are zero.
    pub fn lane_sources(&self, instruction: &Instruction) -> Result<[Source; 3], Why> {
        let mut sources = [Source::Constant(0); 3];
        let specs = instruction.form.operands.all.iter().zip(&instruction.operands).filter(|(spec, _)| !spec.defines);
        for (slot, (spec, operand)) in sources.iter_mut().zip(specs) {
            let ty = match spec.field {
                ptx::forms::Field::Value(ty, _) => ty.of(instruction),
                _ => None,
            };
            *slot = self.source(operand, ty.unwrap_or(Type::B64))?;
        }
        Ok(sources)
    }

    /// A lanewise instruction: destination, sources, and what it computes.
    pub fn compute(&self, instruction: &Instruction, function: Lanewise) -> Result<Compute, Why> {
        let (destination, complement) = match &instruction.operands[0] {
            Operand::Pair(first, second) => (self.destination(first)?, self.destination(second)?),
            single => (self.destination(single)?, None),
        };
        Ok(Compute { function, destination, complement, sources: self.lane_sources(instruction)? })
    }
}

/// The bits of a literal where a value of type `ty` is expected.
fn constant(value: Immediate, ty: Type) -> u64 {
    match (value, ty) {
        (Immediate::Integer(value), _) => truncate(value as u64, ty.bits()),
        (Immediate::Float(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Immediate::Float(bits), _) => u64::from(bits),
        (Immediate::Double(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Immediate::Double(bits), _) => bits,
    }
}

pub fn truncate(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}
