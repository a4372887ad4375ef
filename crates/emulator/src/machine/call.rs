//! Functions of a program: where their code, registers and frames lie, and what a call hands over.

use super::Source;
use ptx::forms::Control;
use ptx::{Function, FunctionId, FunctionKind, LocalId, Module, Op, Operand, ParameterId, RegisterId, ReturnId};
use ptx::{Space, Symbol};
use std::collections::HashMap;
use std::ops::Range;

/// Frames are aligned to what the widest access needs.
const FRAME_ALIGNMENT: u64 = 16;

/// A function in a decoded program.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its index in the module.
    pub function: usize,
    /// Its first step.
    pub base: u32,
    /// Its first register.
    pub registers: u32,
    pub frame: Frame,
}

/// What a function keeps in local memory: parameters, what it returns, and variables in `.local` and `.param`.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    offsets: HashMap<Symbol, u64>,
    pub bytes: u64,
}

impl Frame {
    fn new(function: &Function) -> Frame {
        let mut frame = Frame::default();
        if function.kind == FunctionKind::Callee {
            for (parameter, index) in function.parameters.iter().zip(0..) {
                frame.place(Symbol::Parameter(ParameterId(index)), parameter.bytes(), parameter.align);
            }
            for (parameter, index) in function.returns.iter().zip(0..) {
                frame.place(Symbol::Return(ReturnId(index)), parameter.bytes(), parameter.align);
            }
        }
        for (variable, index) in function.variables.iter().zip(0..) {
            if matches!(variable.space, Space::Local | Space::Parameter) {
                frame.place(Symbol::Local(LocalId(index)), variable.bytes(), variable.align);
            }
        }
        frame.bytes = frame.bytes.next_multiple_of(FRAME_ALIGNMENT);
        frame
    }

    fn place(&mut self, symbol: Symbol, bytes: u64, align: u32) {
        let start = self.bytes.next_multiple_of(u64::from(align.max(1)));
        self.offsets.insert(symbol, start);
        self.bytes = start + bytes;
    }

    pub fn offset(&self, symbol: Symbol) -> Option<u64> {
        self.offsets.get(&symbol).copied()
    }
}

/// The entry and every function that it can reach, one behind the other.
pub fn units(module: &Module, entry: usize) -> Vec<Unit> {
    let mut units: Vec<Unit> = vec![];
    let mut wanted = vec![entry];
    let mut index = 0;
    while index < wanted.len() {
        let function = &module.functions[wanted[index]];
        // One step more than statements: whoever falls off the end returns.
        let base = units.last().map_or(0, |last| last.base + module.functions[last.function].body.len() as u32 + 1);
        let before = |last: &Unit| last.registers + module.functions[last.function].registers.len() as u32;
        let registers = units.last().map_or(0, before);
        units.push(Unit { function: wanted[index], base, registers, frame: Frame::new(function) });
        for callee in callees(module, function) {
            if !wanted.contains(&callee) {
                wanted.push(callee);
            }
        }
        index += 1;
    }
    units
}

/// Functions with a body that `function` may call; through a pointer, any.
fn callees(module: &Module, function: &Function) -> Vec<usize> {
    let mut all = vec![];
    for (_, instruction) in function.instructions() {
        match (instruction.op(), instruction.operands.get(1)) {
            (Op::Control(Control::Call), Some(Operand::Symbol(Symbol::Function(id)))) => {
                all.extend(defined(module, *id));
            }
            (Op::Control(Control::CallIndirect), _) => {
                let callable = |function: &Function| function.kind == FunctionKind::Callee && !function.declared;
                all.extend((0..module.functions.len()).filter(|index| callable(&module.functions[*index])));
            }
            _ => {}
        }
    }
    all
}

/// The function with a body that a name means.
pub fn defined(module: &Module, id: FunctionId) -> Option<usize> {
    let id = module.aliases.iter().find(|(new, _)| *new == id).map_or(id, |(_, known)| *known);
    let name = &module[id].name;
    module.functions.iter().position(|function| function.name == *name && !function.declared)
}

/// Where a value that a call hands over lies on the caller's side.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// In the caller's frame.
    Memory(u64),
    Register(RegisterId),
    Value(Source),
    /// A result that nobody wants.
    Nowhere,
}

/// A slot of the caller, the place in the callee's frame, and how many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    pub slot: Slot,
    pub offset: u64,
    pub bytes: u64,
}

/// A place that calls a function.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The callee's first step, and where it returns to.
    pub entry: u32,
    pub back: u32,
    pub caller_frame: u64,
    pub callee_frame: u64,
    /// The callee's registers.
    pub registers: Range<u32>,
    pub arguments: Vec<Passed>,
    pub results: Vec<Passed>,
}
