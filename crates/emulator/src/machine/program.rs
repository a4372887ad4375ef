//! An entry and the functions it calls, decoded once per launch: operands resolved to registers, constants and addresses.

use super::call::{self, CallSite, Passed, Slot, Unit};
use super::definite::{self, Watched};
use super::flow::Flow;
use super::fragments::{self, Touched};
use super::in_use::{self, InUse};
use super::isolation::is_isolated;
use super::liveness::is_read_after;
use super::register_pool;
use super::registers::Layout;
use crate::checks::nan_birth::Floats;
use crate::exec::{self, Action, Compute, Lanewise};
use crate::memory::{SharedMemory, Variables};
use crate::operand_sets::Inputs;
use crate::simd::Code;
use ptx::{Address, AddressBase, Function, FunctionKind, Immediate, Instruction, Module, Operand, Parameter};
use ptx::{RegisterId, Space, Statement, Symbol, Type};
use std::sync::Arc;

/// A decoded entry. Its steps stand at the index of their statement, so that a step's place is its name in reports; the
/// functions follow, each behind the step that returns from the one before.
pub struct Program {
    pub steps: Vec<Step>,
    /// The entry first.
    pub units: Vec<Unit>,
    /// Clusters can tell each other nothing.
    pub isolated: bool,
    /// Steps that load through a path which nothing keeps up to date (`ld.global.nc`), in their order.
    pub read_only: Vec<u32>,
    /// Registers of a thread when the entry begins, if the entry tells.
    pub entry_registers: Option<u32>,
    /// Registers of all functions together, and constants.
    pub layout: Arc<Layout>,
    /// What whole-warp kernels do of the steps.
    pub code: Code,
}

pub struct Step {
    pub guard: Option<ptx::Guard>,
    pub action: Action,
    /// Registers that may be read before they are written.
    pub watched: Option<Box<Watched>>,
    /// Registers of products that it may touch at a bad moment.
    pub touched: Option<Box<Touched>>,
}

impl Step {
    /// Does a check want to see it before it is executed?
    pub fn is_watched(&self) -> bool {
        self.watched.is_some() || self.touched.is_some()
    }

    fn new(guard: Option<ptx::Guard>, action: Action) -> Step {
        Step { guard, action, watched: None, touched: None }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Register(RegisterId),
    /// `!%p`.
    Not(RegisterId),
    Constant(u64),
    Special(&'static str),
    /// An address in the innermost frame of local memory.
    Frame(u64),
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
    /// The function in its module, and the statement in it.
    pub function: usize,
    pub statement: ptx::StatementId,
}

/// How a program is to be executed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wants {
    /// Accesses to memory are left to the slow path, where lints see them.
    pub each_access: bool,
    /// Floats are exact numbers.
    pub algebra: bool,
}

/// The loads with `.nc`.
fn read_only(module: &Module, units: &[Unit]) -> Vec<u32> {
    let steps = units.iter().flat_map(|unit| module.functions[unit.function].body.iter().zip(unit.base..));
    let is_read_only = |statement: &Statement| matches!(statement, Statement::Instruction(one) if one.has("nc"));
    steps.filter(|(statement, _)| is_read_only(statement)).map(|(_, step)| step).collect()
}

impl Program {
    pub fn decode(
        module: &Module,
        entry: usize,
        shared: &SharedMemory,
        variables: &Variables,
        wants: Wants,
    ) -> Result<Program, Unsupported> {
        let units = call::units(module, entry);
        let mut layout = Layout::default();
        let functions = units.iter().map(|unit| &module.functions[unit.function]);
        functions.flat_map(|function| &function.registers).for_each(|register| layout.push(register.ty));
        let statements = units.iter().flat_map(|unit| &module.functions[unit.function].body);
        let isolated = is_isolated(statements);
        let read_only = read_only(module, &units);
        let entry_registers = register_pool::at_entry(&module.functions[entry]);
        let (steps, layout_of_all, code) = (vec![], Arc::default(), Code::default());
        let mut program = Program { steps, layout: layout_of_all, code, isolated, read_only, units, entry_registers };
        for decoder in decoders(&program.units, module, shared, variables, wants.algebra) {
            // A function called from itself keeps registers for each call; those of the entry are enough.
            let (function, is_entry) = (decoder.function, decoder.unit.base == 0);
            let mut watched = if is_entry { definite::watched(function, &decoder.flow) } else { vec![] }.into_iter();
            let mut touched = if is_entry { fragments::touched(function, &decoder.flow) } else { vec![] }.into_iter();
            for (at, statement) in function.body.iter().enumerate() {
                let (watched, touched) = (watched.next().flatten(), touched.next().flatten());
                program.steps.push(Step { watched, touched, ..decoder.step(at, statement)? });
            }
            program.steps.push(Step::new(None, exec::end()));
        }
        program.code =
            exec::lower(&program.steps, &mut layout, parameter_bytes(&module.functions[entry]), wants.each_access);
        program.layout = Arc::new(layout);
        Ok(program)
    }

    /// What each step reads; none for steps that are no instructions.
    pub fn inputs(&self, module: &Module, shared: &SharedMemory, variables: &Variables) -> Vec<Option<Inputs>> {
        let of_function = |decoder: Decoder| {
            let inputs = |statement: &Statement| match statement {
                Statement::Instruction(instruction) => Some(Inputs::decode(instruction, &decoder)),
                _ => None,
            };
            decoder.function.body.iter().map(inputs).chain([None]).collect::<Vec<_>>()
        };
        decoders(&self.units, module, shared, variables, false).flat_map(of_function).collect()
    }

    /// The floating-point numbers that each step reads and writes.
    pub fn floats(&self, module: &Module, shared: &SharedMemory, variables: &Variables) -> Vec<Option<Floats>> {
        let of_function = |decoder: Decoder| {
            let floats = |statement: &Statement| match statement {
                Statement::Instruction(instruction) => Floats::decode(instruction, &decoder),
                _ => None,
            };
            decoder.function.body.iter().map(floats).chain([None]).collect::<Vec<_>>()
        };
        decoders(&self.units, module, shared, variables, false).flat_map(of_function).collect()
    }

    /// Each function's first step and its index in the module.
    pub fn places(&self) -> Vec<(u32, usize)> {
        self.units.iter().map(|unit| (unit.base, unit.function)).collect()
    }

    /// The steps of statements, each named by its function in the module and its place in that, in their order.
    pub fn steps_of(&self, statements: &[(usize, usize)]) -> Vec<u32> {
        let step = |(function, statement): &(usize, usize)| {
            let unit = self.units.iter().find(|unit| unit.function == *function)?;
            Some(unit.base + *statement as u32)
        };
        let mut steps: Vec<u32> = statements.iter().filter_map(step).collect();
        steps.sort_unstable();
        steps
    }
}

/// What decoding an instruction needs to know around it.
pub struct Decoder<'a> {
    pub module: &'a Module,
    units: &'a [Unit],
    unit: &'a Unit,
    pub function: &'a Function,
    shared: &'a SharedMemory,
    variables: &'a Variables,
    pub flow: Flow,
    /// Floats are exact numbers.
    pub algebra: bool,
}

/// One for each function of a program, in the order of its steps.
fn decoders<'a>(
    units: &'a [Unit],
    module: &'a Module,
    shared: &'a SharedMemory,
    variables: &'a Variables,
    algebra: bool,
) -> impl Iterator<Item = Decoder<'a>> {
    units.iter().map(move |unit| {
        let function = &module.functions[unit.function];
        Decoder { module, units, unit, function, shared, variables, flow: Flow::new(function), algebra }
    })
}

/// Why an operand cannot be decoded; the caller adds the instruction.
pub type Why = String;

impl Decoder<'_> {
    fn step(&self, at: usize, statement: &Statement) -> Result<Step, Unsupported> {
        let Statement::Instruction(instruction) = statement else {
            return Ok(Step::new(None, Action::Nothing));
        };
        let action = exec::decode(self, at, instruction).map_err(|why| Unsupported {
            mnemonic: instruction.mnemonic(),
            why: if why.is_empty() { why } else { format!(": {why}") },
            function: self.unit.function,
            statement: ptx::StatementId(at as u32),
        })?;
        let guard = instruction.guard.map(|guard| ptx::Guard { register: self.register(guard.register), ..guard });
        Ok(Step::new(guard, action))
    }

    /// What is in use behind the `setmaxnreg` at a statement.
    pub fn in_use_behind(&self, at: usize) -> Option<InUse> {
        let in_use = in_use::behind(self.function, &self.flow, at)?;
        Some(InUse { statement: in_use.statement + self.unit.base, ..in_use })
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
            Operand::Register(register) => Ok(Source::Register(self.register(*register))),
            Operand::Not(register) => Ok(Source::Not(self.register(*register))),
            Operand::Immediate(value) => Ok(Source::Constant(constant(*value, ty))),
            Operand::Special(name) if exec::knows_special(name) => Ok(Source::Special(name)),
            Operand::Special(name) => Err(format!("`{name}`")),
            Operand::Symbol(symbol) => self.symbol(*symbol),
            Operand::Vector(parts) if parts.len() == 1 => self.source(&parts[0], ty),
            _ => Err("an operand of this kind".into()),
        }
    }

    /// Does anybody look at what a statement writes to a destination?
    pub fn is_looked_at(&self, statement: usize, destination: &Operand) -> bool {
        match destination {
            Operand::Register(register) => is_read_after(self.function, &self.flow, statement, *register),
            Operand::Vector(parts) => parts.iter().any(|part| self.is_looked_at(statement, part)),
            _ => false,
        }
    }

    /// A destination, or none for `_`.
    pub fn destination(&self, operand: &Operand) -> Result<Option<RegisterId>, Why> {
        match operand {
            Operand::Register(register) => Ok(Some(self.register(*register))),
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
                    AddressBase::Register(register) => Source::Register(self.register(*register)),
                    AddressBase::Symbol(symbol) => self.symbol(*symbol)?,
                    AddressBase::Absolute => Source::Constant(0),
                };
                Ok(AddressSource { base, offset: *offset })
            }
            _ => Err("an address of this kind".into()),
        }
    }

    /// The address of a variable in its own space.
    fn symbol(&self, symbol: Symbol) -> Result<Source, Why> {
        if let (Symbol::Parameter(parameter), FunctionKind::Entry) = (symbol, self.function.kind) {
            return Ok(Source::Constant(self.function.parameter_offset(parameter.0 as usize)));
        }
        if let Some(offset) = self.unit.frame.offset(symbol) {
            return Ok(Source::Frame(offset));
        }
        // Shared memory is laid out with the variables of the entry.
        let known = self.function.kind == FunctionKind::Entry || matches!(symbol, Symbol::Global(_));
        let shared = self.shared.address(symbol).filter(|_| known);
        let address = shared.or_else(|| self.variables.address(Some(self.unit.function), symbol));
        address.map(Source::Constant).ok_or("shared variables of a function".into())
    }

    /// A register's place among the registers of all functions.
    fn register(&self, register: RegisterId) -> RegisterId {
        RegisterId(self.unit.registers + register.0)
    }

    /// The step at a statement of this function.
    pub fn step_at(&self, statement: u32) -> u32 {
        self.unit.base + statement
    }

    /// The space of an access. Only an entry's own parameters lie in parameter memory; those of calls lie in frames.
    pub fn space(&self, instruction: &Instruction, address: &Operand) -> Option<Space> {
        let framed = matches!(address, Operand::Address(Address { base: AddressBase::Symbol(Symbol::Local(_)), .. }));
        match instruction.space() {
            Some(Space::Parameter) if framed || self.function.kind == FunctionKind::Callee => Some(Space::Local),
            other => other,
        }
    }

    /// The size of a variable of this function.
    pub fn variable_bytes(&self, variable: ptx::LocalId) -> u64 {
        self.function.variables.get(variable.0 as usize).map_or(0, ptx::Variable::bytes)
    }

    /// Does this function take its parameters from frames?
    pub fn is_callee(&self) -> bool {
        self.function.kind == FunctionKind::Callee
    }

    /// Every function that a pointer may call, with its index.
    pub fn callable(&self) -> impl Iterator<Item = usize> {
        self.units.iter().skip(1).map(|unit| unit.function)
    }

    /// What a call at statement `at` of a function of the module hands over.
    pub fn call_site(&self, at: usize, callee: usize, results: &Operand, arguments: &Operand) -> Result<CallSite, Why> {
        let unit = self.units.iter().find(|unit| unit.function == callee).ok_or("a function that is not there")?;
        let function = &self.module.functions[callee];
        let offset = |symbol| unit.frame.offset(symbol).unwrap_or_default();
        let inward = |index| offset(Symbol::Parameter(ptx::ParameterId(index)));
        let outward = |index| offset(Symbol::Return(ptx::ReturnId(index)));
        Ok(CallSite {
            entry: unit.base,
            back: self.step_at(at as u32 + 1),
            caller_frame: self.unit.frame.bytes,
            callee_frame: unit.frame.bytes,
            registers: unit.registers..unit.registers + function.registers.len() as u32,
            arguments: self.passed(arguments, &function.parameters, inward)?,
            results: self.passed(results, &function.returns, outward)?,
        })
    }

    fn passed(&self, given: &Operand, formal: &[Parameter], offset: impl Fn(u32) -> u64) -> Result<Vec<Passed>, Why> {
        let Operand::Arguments(given) = given else { return Err("arguments of this kind".into()) };
        let pairs = given.iter().zip(formal).zip(0..);
        let passed = |((given, formal), index): ((&Operand, &Parameter), u32)| {
            Ok(Passed { slot: self.slot(given, formal.ty)?, offset: offset(index), bytes: formal.bytes() })
        };
        pairs.map(passed).collect()
    }

    /// Where a call's argument or result lies on this side.
    pub fn slot(&self, given: &Operand, ty: Type) -> Result<Slot, Why> {
        match given {
            Operand::Symbol(symbol @ Symbol::Local(_)) => {
                self.unit.frame.offset(*symbol).map(Slot::Memory).ok_or("an argument outside `.param`".into())
            }
            Operand::Register(register) => Ok(Slot::Register(self.register(*register))),
            Operand::Sink => Ok(Slot::Nowhere),
            other => self.source(other, ty).map(Slot::Value),
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

/// The size of an entry's block of parameters.
fn parameter_bytes(entry: &Function) -> u64 {
    entry.parameter_offset(entry.parameters.len())
}

/// The bits of a literal where a value of type `ty` is expected.
pub fn constant(value: Immediate, ty: Type) -> u64 {
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
