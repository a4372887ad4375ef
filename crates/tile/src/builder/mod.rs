//! The kernel under construction: registers, instructions, open scopes. One per thread, installed by [`crate::build`].

mod finish;
mod names;
mod operands;
mod pipelines;
mod scopes;

pub(crate) use finish::{finish, relative};
pub(crate) use names::{Named, check_name};
pub(crate) use pipelines::Pipeline;
pub(crate) use scopes::{ScopeId, ScopeKind};

use crate::assertion::Assertion;
use crate::error::{BuildError, Place};
use crate::values::{Repr, Type, Value};
use ptx::{Instruction, Operand};
use scopes::Scopes;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

/// What a kernel is built for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub target: ptx::Target,
    /// Threads of a block, along x.
    pub threads: u32,
    /// Blocks that run together, along x: one, unless they are to bring tiles for each other.
    pub cluster: u32,
    /// Blocks that a multiprocessor should hold: ptxas gives each thread the registers that this leaves.
    pub blocks_per_processor: Option<u32>,
    /// Whether what [`crate::check`] asserts is compiled in. The kernel then has a parameter `report`, the first.
    pub checks: bool,
}

/// How many threads are sure to hold the same value, or to take the same branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    Lane,
    Warp,
    /// Four warps that multiply together.
    Warpgroup,
    Block,
}

/// The register with the address of the block's shared memory.
pub(crate) const SHARED_BASE: &str = "shared_base";

/// A register of one kernel under construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegisterId {
    pub index: u32,
    kernel: KernelId,
}

/// Tells the kernels apart that one thread builds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct KernelId(u32);

pub(crate) struct Register {
    pub ty: ptx::Type,
    pub name: Option<String>,
    pub reach: Reach,
    /// Set more than once: the register of a `Var`.
    varies: bool,
    scope: ScopeId,
    at: Place,
}

pub(crate) enum Line {
    Instruction(Instruction, Place),
    Label(ptx::LabelId),
    /// PTX ISA, ".pragma".
    Pragma(&'static str),
}

pub(crate) struct Builder {
    id: KernelId,
    pub options: Options,
    pub parameters: Vec<ptx::Parameter>,
    /// What the kernel asserts, in the order of the numbers that reports have.
    pub assertions: Vec<Assertion>,
    pub registers: Vec<Register>,
    /// Special registers, read once, before everything else.
    prologue: Vec<Line>,
    pub lines: Vec<Line>,
    /// What is seldom run, behind everything else.
    pub seldom: Vec<Line>,
    /// Names of labels, by their number.
    pub labels: Vec<String>,
    pub shared_bytes: u32,
    /// Groups of `cp.async` committed so far.
    pub copies: u64,
    /// Groups of products of warpgroups committed so far.
    pub products: u64,
    /// Barriers in shared memory that [`crate::roles`] initialises: their addresses, and how many arrive at each.
    pub barriers: Vec<(Value<u32>, u32)>,
    /// Names of barriers that were given away.
    pub barrier_names: u32,
    /// Warps that copy, since the first ring: its name and place.
    copying: Option<(Range<u32>, String, Place)>,
    pipelines: Vec<Rc<dyn Pipeline>>,
    pub scopes: Scopes,
    last_place: Place,
    special: Vec<(&'static str, RegisterId)>,
    /// Pure instructions by their text, for `define_pure`.
    known: HashMap<String, RegisterId>,
}

thread_local! {
    static BUILT: Cell<u32> = const { Cell::new(0) };
    static CURRENT: RefCell<Option<Builder>> = const { RefCell::new(None) };
}

/// Runs `f` on the kernel under construction.
#[track_caller]
pub(crate) fn with<R>(f: impl FnOnce(&mut Builder) -> R) -> R {
    let at = Location::caller();
    match CURRENT.with_borrow_mut(|current| current.as_mut().map(f)) {
        Some(result) => result,
        None => BuildError::new("no kernel is under construction on this thread", at)
            .help(
                "call this inside the closure of `tile::build`; a mask or a score that plain cores ask is asked about \
                 numbers, and has no lanes and no memory",
            )
            .raise(),
    }
}

/// Whether a kernel is under construction on this thread. While [`with`] borrows it, there is one.
pub(crate) fn is_building() -> bool {
    CURRENT.with(|current| current.try_borrow().map_or(true, |current| current.is_some()))
}

/// Whether the kernel under construction, if there is one, is to hold its assertions.
pub(crate) fn checks() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|builder| builder.options.checks))
}

/// Puts a builder in place, and returns the one that was there: kernels may be built while another is.
pub(crate) fn install(builder: Option<Builder>) -> Option<Builder> {
    CURRENT.replace(builder)
}

/// Notes the author's line, for what closures of this crate emit next: `#[track_caller]` does not reach into them.
#[track_caller]
pub(crate) fn here() -> Place {
    let at = Location::caller();
    with(|b| b.author_place(at))
}

/// Appends an instruction without a result.
#[track_caller]
pub(crate) fn emit(mnemonic: &str, operands: Vec<Operand>) {
    let at = Location::caller();
    with(|b| b.push(mnemonic, operands, at));
}

/// Appends an instruction whose result is a new register.
#[track_caller]
pub(crate) fn define<T: Type>(mnemonic: &str, operands: Vec<Operand>) -> Value<T> {
    let at = Location::caller();
    with(|b| {
        let at = b.author_place(at);
        let reach = b.reach_of(&operands);
        let result = b.register(T::REGISTER, reach, at);
        let operands = std::iter::once(operands::register(result)).chain(operands).collect();
        b.push(mnemonic, operands, at);
        Value::from_register(result)
    })
}

/// `define` for an instruction that depends on nothing but unchanging operands: an equal one in reach is used again.
#[track_caller]
pub(crate) fn define_pure<T: Type>(mnemonic: &str, operands: Vec<Operand>) -> Value<T> {
    let key = format!("{mnemonic} {operands:?}");
    if let Some(id) = with(|b| b.known.get(&key).copied().filter(|&id| b.in_reach(id))) {
        return Value::from_register(id);
    }
    let unchanging = with(|b| !b.reads_var(&operands));
    let value = define(mnemonic, operands);
    if let (Repr::Register(id), true) = (value.repr(), unchanging) {
        with(|b| b.known.insert(key, id));
    }
    value
}

/// A register without a value yet: a destination of loads, products, assignments.
#[track_caller]
pub(crate) fn fresh<T: Type>(name: Option<String>) -> Value<T> {
    let at = Location::caller();
    with(|b| {
        let at = b.author_place(at);
        name.iter().for_each(|name| check_name(Named::Register, name, at));
        let id = b.register(T::REGISTER, Reach::Lane, at);
        let register = &mut b.registers[id.index as usize];
        register.name = name;
        register.varies = true;
        Value::from_register(id)
    })
}

impl Builder {
    pub fn new(options: Options, at: Place) -> Builder {
        Builder {
            id: KernelId(BUILT.replace(BUILT.get() + 1)),
            options,
            parameters: vec![],
            assertions: vec![],
            registers: vec![],
            prologue: vec![],
            lines: vec![],
            seldom: vec![],
            labels: vec![],
            shared_bytes: 0,
            copies: 0,
            products: 0,
            barriers: vec![],
            barrier_names: 0,
            copying: None,
            pipelines: vec![],
            scopes: Scopes::new(at),
            last_place: at,
            special: vec![],
            known: HashMap::new(),
        }
    }

    /// Equal instructions from here on are printed again.
    pub fn forget_shared(&mut self) {
        self.known.clear();
    }

    fn register(&mut self, ty: ptx::Type, reach: Reach, at: Place) -> RegisterId {
        let scope = self.scopes.innermost();
        self.registers.push(Register { ty, name: None, reach, varies: false, scope, at });
        RegisterId { index: self.registers.len() as u32 - 1, kernel: self.id }
    }

    pub fn push(&mut self, mnemonic: &str, operands: Vec<Operand>, at: Place) {
        let at = self.author_place(at);
        let instruction = self.instruction(mnemonic, operands, at);
        self.lines.push(Line::Instruction(instruction, at));
    }

    pub fn push_guarded(&mut self, guard: ptx::Guard, mnemonic: &str, operands: Vec<Operand>, at: Place) {
        let at = self.author_place(at);
        let instruction = self.instruction(mnemonic, operands, at);
        self.lines.push(Line::Instruction(Instruction { guard: Some(guard), ..instruction }, at));
    }

    /// The form table decides what exists, and since which target.
    fn instruction(&self, mnemonic: &str, operands: Vec<Operand>, at: Place) -> Instruction {
        let instruction = Instruction::new(mnemonic, operands);
        let instruction = instruction.unwrap_or_else(|error| BuildError::new(error.to_string(), at).raise());
        let (needs, target) = (instruction.form.target, self.options.target);
        if !target.provides(needs) {
            BuildError::new(format!("`{mnemonic}` needs {needs}, and this kernel is for {target}"), at).raise()
        }
        instruction
    }

    /// Function items passed as values (`F32::max`) and closures of this crate have no line of the author's:
    /// they get the author's line before them.
    pub fn author_place(&mut self, at: Place) -> Place {
        // Asked for each value that a kernel mentions: a search of this file's name would take a tenth of all the time.
        let own = file!().strip_suffix("builder/mod.rs").unwrap_or(file!());
        if !at.file().starts_with(own) && !at.file().starts_with("/rustc/") {
            self.last_place = at;
        }
        self.last_place
    }

    /// The operand that reads `id`, if that is allowed here.
    pub fn read(&mut self, id: RegisterId, at: Place) -> Operand {
        let at = self.author_place(at);
        self.check_dominance(id, at);
        operands::register(id)
    }

    pub fn name(&mut self, id: RegisterId, name: &str) {
        self.registers[id.index as usize].name = Some(name.into());
    }

    pub fn set_reach(&mut self, id: RegisterId, reach: Reach) {
        self.registers[id.index as usize].reach = reach;
    }

    pub fn reach_of(&self, operands: &[Operand]) -> Reach {
        let reach = |id: ptx::RegisterId| self.registers[id.0 as usize].reach;
        operands::registers(operands).into_iter().map(reach).min().unwrap_or(Reach::Block)
    }

    fn reads_var(&self, operands: &[Operand]) -> bool {
        operands::registers(operands).into_iter().any(|id| self.registers[id.0 as usize].varies)
    }

    /// Where the block's shared memory is first spoken of, if none of it was ever allocated.
    pub fn missing_shared(&self) -> Option<Place> {
        let base = self.special.iter().find(|(name, _)| *name == SHARED_BASE && self.shared_bytes == 0);
        base.map(|(_, id)| self.registers[id.index as usize].at)
    }

    pub fn label(&mut self, stem: &str) -> ptx::LabelId {
        self.labels.push(format!("${stem}_{}", self.labels.len() + 1));
        ptx::LabelId(self.labels.len() as u32 - 1)
    }

    /// A special register or symbol, read once, before everything else.
    pub fn special(&mut self, name: &'static str, source: Operand, reach: Reach, at: Place) -> RegisterId {
        if let Some((_, id)) = self.special.iter().find(|(known, _)| *known == name) {
            return *id;
        }
        let at = self.author_place(at);
        let id = self.register(ptx::Type::B32, reach, at);
        self.registers[id.index as usize].scope = Scopes::KERNEL;
        self.name(id, name);
        let instruction = self.instruction("mov.u32", vec![operands::register(id), source], at);
        self.prologue.push(Line::Instruction(instruction, at));
        self.special.push((name, id));
        id
    }
}
