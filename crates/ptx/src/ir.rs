//! A module as typed data. Names are resolved: operands hold indices, spans are kept beside (see `Parsed`).

use crate::forms::{self, Form, Op, OperandSpec, UnknownForm};
use crate::types::{Space, Target, Type, Version};
use std::ops::{Index, IndexMut};

macro_rules! indices {
    ($($(#[$about:meta])* $name:ident into $container:ident.$field:ident: $item:ty;)*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Index<$name> for $container {
            type Output = $item;
            fn index(&self, index: $name) -> &$item {
                &self.$field[index.0 as usize]
            }
        }
        impl IndexMut<$name> for $container {
            fn index_mut(&mut self, index: $name) -> &mut $item {
                &mut self.$field[index.0 as usize]
            }
        }
    )* };
}

indices! {
    RegisterId into Function.registers: Register;
    LabelId into Function.labels: Label;
    ScopeId into Function.scopes: Scope;
    ParameterId into Function.parameters: Parameter;
    /// A variable that a function declares.
    LocalId into Function.variables: Variable;
    /// A statement of a function's body.
    StatementId into Function.body: Statement;
    /// What a function returns.
    ReturnId into Function.returns: Parameter;
    /// A variable of the module.
    GlobalId into Module.variables: Variable;
    FunctionId into Module.functions: Function;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    pub version: Version,
    pub target: Target,
    /// Files that `.loc` lines name, by their number.
    pub files: Vec<(u32, String)>,
    pub variables: Vec<Variable>,
    /// Entries and the functions they call, in the order of the text.
    pub functions: Vec<Function>,
    /// `.alias new, known;`
    pub aliases: Vec<(FunctionId, FunctionId)>,
    pub pragmas: Vec<String>,
}

/// A kernel entry, or a function that entries call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    pub name: String,
    pub kind: FunctionKind,
    pub linkage: Linkage,
    /// Only declared here: the body stands below, or in another module.
    pub declared: bool,
    pub returns: Vec<Parameter>,
    pub parameters: Vec<Parameter>,
    pub tuning: Vec<Tuning>,
    pub pragmas: Vec<String>,
    pub registers: Vec<Register>,
    pub variables: Vec<Variable>,
    pub labels: Vec<Label>,
    /// Nested `{ }` blocks; the first is the body itself.
    pub scopes: Vec<Scope>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`: launched.
    #[default]
    Entry,
    /// `.func`: called.
    Callee,
}

/// Who sees a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    #[default]
    Internal,
    Visible,
    Weak,
    Extern,
    Common,
}

/// What a kernel's author promises or asks for about its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    MaxThreads([u32; 3]),
    RequiredThreads([u32; 3]),
    MinBlocksPerProcessor(u32),
    MaxRegisters(u32),
    /// `.explicitcluster`: launched with clusters.
    ExplicitCluster,
    RequiredCluster([u32; 3]),
    MaxClusterRank(u32),
    /// `.noreturn`, of functions.
    NoReturn,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    pub ty: Type,
    /// In bytes; the type's own size unless written.
    pub align: u32,
    /// Elements of an array passed by value.
    pub count: Option<u32>,
    /// `.ptr .global .align 16`: what a pointer parameter points to.
    pub pointer: Option<(Option<Space>, u32)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    pub name: String,
    pub ty: Type,
    pub scope: ScopeId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub ty: Type,
    pub align: u32,
    pub size: VariableSize,
    pub init: Vec<Initial>,
    pub scope: ScopeId,
    pub linkage: Linkage,
}

/// One initial value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initial {
    Value(Immediate),
    /// `name+8`, or `generic(name)+8`: an address in its own space, or a generic one; of `0xFF00(name)`, some bits.
    Address {
        of: Symbol,
        offset: i64,
        generic: bool,
        mask: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSize {
    Scalar,
    Array(u32),
    /// `extern .shared name[]`: its size is the launch's business.
    Dynamic,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub name: String,
    pub scope: ScopeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    pub parent: ScopeId,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Label(LabelId),
    Instruction(Instruction),
    /// `.loc file line column`: the source line of what follows.
    Location {
        file: u32,
        line: u32,
        column: u32,
    },
    Pragma(String),
    /// `label: .branchtargets one, two;`, which `brx.idx` names.
    BranchTargets(LabelId, Vec<LabelId>),
    /// `label: .callprototype (…) _ (…);`, which an indirect `call` names.
    Prototype(LabelId, Box<Prototype>),
    /// `label: .calltargets one, two;`, which an indirect `call` may name, too.
    CallTargets(LabelId, Vec<FunctionId>),
    Open(ScopeId),
    Close,
}

/// What a function called through a pointer takes and returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prototype {
    pub returns: Vec<Parameter>,
    pub parameters: Vec<Parameter>,
    /// It does not come back.
    pub no_return: bool,
}

#[derive(Clone, Debug)]
pub struct Instruction {
    pub guard: Option<Guard>,
    pub form: &'static Form,
    /// What was chosen for each slot of the form's spelling, without the dot.
    pub modifiers: Vec<Option<&'static str>>,
    pub operands: Vec<Operand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub register: RegisterId,
    pub negated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Register(RegisterId),
    /// `!%p`: a negated predicate.
    Not(RegisterId),
    Immediate(Immediate),
    Special(&'static str),
    Symbol(Symbol),
    /// `[base+offset]`.
    Address(Address),
    /// `[map, {coordinates}]`.
    TensorAddress(Address, Vec<Operand>),
    Vector(Vec<Operand>),
    /// `%d|%p`: two results.
    Pair(Box<Operand>, Box<Operand>),
    Label(LabelId),
    /// `(a, b)`: what a call takes or returns; empty where the text has none.
    Arguments(Vec<Operand>),
    /// `_`: a result nobody wants.
    Sink,
}

impl Operand {
    /// The registers that it names.
    pub fn registers(&self, found: &mut impl FnMut(RegisterId)) {
        match self {
            Operand::Register(id) | Operand::Not(id) => found(*id),
            Operand::Vector(parts) | Operand::Arguments(parts) => parts.iter().for_each(|part| part.registers(found)),
            Operand::Pair(first, second) => {
                first.registers(found);
                second.registers(found);
            }
            Operand::Address(address) => address.registers(found),
            Operand::TensorAddress(address, parts) => {
                address.registers(found);
                parts.iter().for_each(|part| part.registers(found));
            }
            Operand::Immediate(_) | Operand::Special(_) | Operand::Symbol(_) | Operand::Label(_) | Operand::Sink => {}
        }
    }
}

impl Address {
    fn registers(&self, found: &mut impl FnMut(RegisterId)) {
        if let AddressBase::Register(id) = self.base {
            found(id);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    pub base: AddressBase,
    pub offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AddressBase {
    Register(RegisterId),
    Symbol(Symbol),
    Absolute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    Parameter(ParameterId),
    Return(ReturnId),
    Local(LocalId),
    Global(GlobalId),
    Function(FunctionId),
}

/// A number as written; its width is the instruction's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    Integer(i128),
    /// The bits of `0f3F800000`.
    Float(u32),
    /// The bits of `0d3FF0000000000000`, or of a decimal fraction.
    Double(u64),
}

impl Module {
    pub fn new(version: Version, target: Target) -> Module {
        let (files, variables, functions) = (vec![], vec![], vec![]);
        Module { version, target, files, variables, functions, aliases: vec![], pragmas: vec![] }
    }

    /// The entry or function of this name; its definition rather than a declaration.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let mut all = self.functions.iter().filter(|function| function.name == name);
        all.clone().find(|function| !function.declared).or_else(|| all.next())
    }

    /// What can be launched.
    pub fn entries(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| function.kind == FunctionKind::Entry && !function.declared)
    }
}
impl Parameter {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.count.unwrap_or(1))
    }
}

impl Variable {
    /// Its size; zero where the launch decides.
    pub fn bytes(&self) -> u64 {
        let count = match self.size {
            VariableSize::Scalar => 1,
            VariableSize::Array(count) => u64::from(count),
            VariableSize::Dynamic => 0,
        };
        count * u64::from(self.ty.bytes())
    }
}

impl Function {
    /// Where a parameter begins in the block of parameters: each is aligned to its own alignment. The index after the
    /// last gives the size of the block.
    pub fn parameter_offset(&self, index: usize) -> u64 {
        let place = |end: u64, parameter: &Parameter| end.next_multiple_of(u64::from(parameter.align.max(1)));
        let before = self.parameters.iter().take(index);
        let end = before.fold(0, |end, parameter| place(end, parameter) + parameter.bytes());
        self.parameters.get(index).map_or(end, |parameter| place(end, parameter))
    }

    /// Instructions with their place in the body.
    pub fn instructions(&self) -> impl Iterator<Item = (StatementId, &Instruction)> {
        self.body.iter().enumerate().filter_map(|(index, statement)| match statement {
            Statement::Instruction(instruction) => Some((StatementId(index as u32), instruction)),
            _ => None,
        })
    }

    /// The `.loc` that covers a statement: the last one before it.
    pub fn location(&self, statement: StatementId) -> Option<(u32, u32, u32)> {
        self.body[..=statement.0 as usize].iter().rev().find_map(|statement| match statement {
            Statement::Location { file, line, column } => Some((*file, *line, *column)),
            _ => None,
        })
    }
}

impl Instruction {
    /// The instruction that `mnemonic` spells, if the table has it and these operands fit it.
    pub fn new(mnemonic: &str, operands: Vec<Operand>) -> Result<Instruction, UnknownForm> {
        let (form, modifiers) = forms::select(mnemonic, &operands)?;
        Ok(Instruction { guard: None, form, modifiers, operands })
    }

    pub fn op(&self) -> Op {
        self.form.op
    }

    /// The mnemonic in the table's order of modifiers.
    pub fn mnemonic(&self) -> String {
        self.form.spelling.print(&self.modifiers)
    }

    /// Is this modifier present (spelled without the dot)?
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().flatten().any(|chosen| *chosen == modifier)
    }

    /// The first of `choices` that is present.
    pub fn choice<'a>(&self, choices: &[&'a str]) -> Option<&'a str> {
        choices.iter().copied().find(|choice| self.has(choice))
    }

    /// The types in the mnemonic, in order: `cvt.rn.f16.f32` has f16 and f32.
    pub fn types(&self) -> impl Iterator<Item = Type> {
        self.form.spelling.types(&self.modifiers)
    }

    /// The row's operands with this instruction's own.
    pub fn specified(&self) -> impl Iterator<Item = (&'static OperandSpec, &Operand)> {
        let specs = self.form.operands.with(&self.modifiers, self.operands.len()).unwrap_or_default();
        specs.into_iter().zip(&self.operands)
    }

    /// The registers in operands that are `wanted`, with the operand's number. An address reads its base, whatever is
    /// done to the memory there.
    pub fn registers(&self, wanted: fn(&OperandSpec) -> bool, mut found: impl FnMut(RegisterId, usize)) {
        let operands = self.specified().enumerate();
        for (index, (_, operand)) in operands.filter(|(_, (spec, _))| wanted(spec)) {
            operand.registers(&mut |register| found(register, index));
        }
    }

    /// The first type in the mnemonic.
    pub fn ty(&self) -> Option<Type> {
        self.types().next()
    }

    /// The state space in the mnemonic; none means a generic address.
    pub fn space(&self) -> Option<Space> {
        self.modifiers.iter().flatten().find_map(|text| text.split("::").next()?.parse().ok())
    }

    /// How many elements `.v2`, `.v4`, `.x4` ask for; one without.
    pub fn count(&self) -> u32 {
        self.form
            .spelling
            .variable('V', &self.modifiers)
            .or(self.form.spelling.variable('X', &self.modifiers))
            .unwrap_or(1)
    }
}

/// Same form, same choices, same operands.
impl PartialEq for Instruction {
    fn eq(&self, other: &Instruction) -> bool {
        self.guard == other.guard
            && std::ptr::eq(self.form, other.form)
            && self.modifiers == other.modifiers
            && self.operands == other.operands
    }
}
