//! Everything outside instructions: the head of the module, variables, entries and their parameters.

use super::names::{Meaning, Names};
use super::{EntryPlaces, Outcome, Parser};
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::lexer::Token;
use crate::source::Span;
use crate::types::{Space, Target, Type, Version};

/// Registers of one function; real kernels have a few thousand.
const MAX_REGISTERS: u32 = 1 << 20;

/// Directives that only debuggers read: skipped with their block or line.
const DEBUG_DIRECTIVES: &[&str] = &["section"];

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Option<Module> {
        let (version, target) = self.head().ok()?;
        let mut module = Module { version, target, files: vec![], variables: vec![], functions: vec![] };
        while self.peek().is_some() {
            if self.top_level(&mut module).is_err() {
                self.recover_outside();
            }
        }
        Some(module)
    }

    /// `.version`, `.target`, `.address_size`: what every module begins with.
    fn head(&mut self) -> Outcome<(Version, Target)> {
        if !self.take_dotted(".version") {
            return self.unexpected("`.version`, with which a PTX module begins");
        }
        self.places.version = self.here();
        let version = self.version()?;
        if !self.take_dotted(".target") {
            return self.unexpected("`.target`");
        }
        let at = self.here();
        let name = self.word("a target such as `sm_80`")?;
        while self.take(Token::Comma) {
            self.word("a target option")?;
        }
        let Ok(target) = name.parse() else {
            return self.fail(Diagnostic::new(format!("unknown target `{name}`"), at, "expected one such as `sm_80`"));
        };
        if self.take_dotted(".address_size") && self.number("an address size")? != 64 {
            return self.fail(
                Diagnostic::new("32-bit addresses are not supported", self.before(), "expected 64").unsupported(),
            );
        }
        Ok((version, target))
    }

    fn version(&mut self) -> Outcome<Version> {
        let at = self.here();
        match self.advance() {
            Some(Token::Decimal(text)) if text.parse::<Version>().is_ok() => {
                Ok(text.parse().unwrap_or(Version { major: 0, minor: 0 }))
            }
            _ => self.fail(Diagnostic::new("expected a PTX version such as `8.0`", at, "not a version")),
        }
    }

    fn top_level(&mut self, module: &mut Module) -> Outcome<()> {
        match self.peek() {
            Some(Token::Dotted(".file")) => self.file(module),
            Some(Token::Dotted(directive)) if DEBUG_DIRECTIVES.contains(&&directive[1..]) => self.skip_block(),
            Some(Token::Dotted(".visible" | ".weak" | ".extern" | ".entry" | ".func")) => self.linked(module),
            Some(Token::Dotted(".global" | ".shared" | ".const")) => self.module_variables(module, false),
            _ => self.unexpected("an entry, a variable or a directive"),
        }
    }

    /// `.file 1 "name"[, time, size]`
    fn file(&mut self, module: &mut Module) -> Outcome<()> {
        self.next += 1;
        let number = self.number("a file number")?;
        let name = self.text("a file name")?.to_string();
        while self.take(Token::Comma) {
            self.number("a number")?;
        }
        module.files.push((number, name));
        Ok(())
    }

    fn skip_block(&mut self) -> Outcome<()> {
        while !matches!(self.peek(), None | Some(Token::BraceClose)) {
            self.next += 1;
        }
        self.expect(Token::BraceClose, "`}`")
    }

    fn linked(&mut self, module: &mut Module) -> Outcome<()> {
        let at = self.here();
        let (mut visible, mut external) = (false, false);
        loop {
            match self.peek() {
                Some(Token::Dotted(".visible" | ".weak")) => visible = true,
                Some(Token::Dotted(".extern")) => external = true,
                _ => break,
            }
            self.next += 1;
        }
        if self.take_dotted(".entry") {
            let function = self.entry(module, visible)?;
            module.functions.push(function);
            self.places.entries.push(std::mem::take(&mut self.entry));
            return Ok(());
        }
        if self.take_dotted(".func") {
            let error = Diagnostic::new("functions other than entries are not supported", at, "a `.func`");
            return self.fail(error.help("compile with everything inlined").unsupported());
        }
        self.module_variables(module, external)
    }

    fn module_variables(&mut self, module: &mut Module, external: bool) -> Outcome<()> {
        for (variable, place) in self.variable(ScopeId(0), external)? {
            module.variables.push(variable);
            self.places.variables.push(place);
        }
        Ok(())
    }

    /// `.shared .align 16 .b8 name[1024];`: one declaration may name several.
    pub(super) fn variable(&mut self, scope: ScopeId, external: bool) -> Outcome<Vec<(Variable, Span)>> {
        let space = self.space()?;
        let align = self.alignment()?;
        let ty = self.ty()?;
        let mut all = vec![];
        loop {
            let name = self.word("a name")?.to_string();
            let at = self.before();
            let size = self.size(external)?;
            let init = if self.take(Token::Equals) { self.initialiser()? } else { vec![] };
            all.push((Variable { name, space, ty, align: align.unwrap_or(ty.bytes()), size, init, scope }, at));
            if !self.take(Token::Comma) {
                break;
            }
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(all)
    }

    fn space(&mut self) -> Outcome<Space> {
        let at = self.here();
        let space = self.dotted("a state space")?;
        match space.parse() {
            Ok(space) => Ok(space),
            Err(()) => {
                let message = format!("`.{space}` is not a state space");
                self.fail(Diagnostic::new(message, at, "expected `.shared` or `.global`"))
            }
        }
    }

    fn alignment(&mut self) -> Outcome<Option<u32>> {
        if !self.take_dotted(".align") {
            return Ok(None);
        }
        let align = self.number("an alignment")?;
        if align.is_power_of_two() {
            return Ok(Some(align));
        }
        self.fail(Diagnostic::new(
            format!("alignment {align} is not a power of two"),
            self.before(),
            "expected 1, 2, 4, …",
        ))
    }

    pub(super) fn ty(&mut self) -> Outcome<Type> {
        let name = self.dotted("a type")?;
        match name.parse() {
            Ok(ty) => Ok(ty),
            Err(()) => self.fail(Diagnostic::new(
                format!("unknown type `.{name}`"),
                self.before(),
                "expected a type such as `.b32`",
            )),
        }
    }

    fn size(&mut self, external: bool) -> Outcome<VariableSize> {
        if !self.take(Token::BracketOpen) {
            return Ok(VariableSize::Scalar);
        }
        if external && self.take(Token::BracketClose) {
            return Ok(VariableSize::Dynamic);
        }
        let count = self.number("a number of elements")?;
        self.expect(Token::BracketClose, "`]`")?;
        Ok(VariableSize::Array(count))
    }

    fn initialiser(&mut self) -> Outcome<Vec<Immediate>> {
        if !self.take(Token::BraceOpen) {
            return Ok(vec![self.immediate()?]);
        }
        let mut values = vec![];
        while !self.take(Token::BraceClose) {
            values.push(self.immediate()?);
            self.take(Token::Comma);
        }
        Ok(values)
    }

    fn entry(&mut self, module: &Module, visible: bool) -> Outcome<Function> {
        let name = self.word("the name of the entry")?.to_string();
        self.entry = EntryPlaces { name: self.before(), ..EntryPlaces::default() };
        let root = Scope { parent: ScopeId(0) };
        let mut function = Function { name, visible, scopes: vec![root], ..Function::default() };
        let mut names = Names::new(&module.variables);
        names.open(ScopeId(0));
        if self.take(Token::ParenthesisOpen) {
            self.parameters(&mut function, &mut names)?;
        }
        while let Some(Token::Dotted(directive)) = self.peek() {
            let at = self.here();
            self.next += 1;
            let tuning = self.tuning(directive)?;
            function.tuning.push(tuning);
            self.entry.tuning.push(at.to(self.before()));
        }
        self.body(function, names)
    }

    fn parameters(&mut self, function: &mut Function, names: &mut Names) -> Outcome<()> {
        while !self.take(Token::ParenthesisClose) {
            let at = self.here();
            let parameter = self.parameter()?;
            let id = ParameterId(function.parameters.len() as u32);
            if !names.declare(&parameter.name, Meaning::Symbol(Symbol::Parameter(id))) {
                let message = format!("parameter `{}` is declared twice", parameter.name);
                return self.fail(Diagnostic::new(message, at.to(self.before()), "the second one"));
            }
            function.parameters.push(parameter);
            if !self.take(Token::Comma) && self.peek() != Some(Token::ParenthesisClose) {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(())
    }

    /// `.param .align 8 .u64 .ptr .global .align 16 name[count]`
    fn parameter(&mut self) -> Outcome<Parameter> {
        if !self.take_dotted(".param") {
            return self.unexpected("`.param`");
        }
        let align = self.alignment()?;
        let ty = self.ty()?;
        let mut pointer = None;
        if self.take_dotted(".ptr") {
            let space = match self.peek() {
                Some(Token::Dotted(text)) if text != ".align" => Some(self.space()?),
                _ => None,
            };
            pointer = Some((space, self.alignment()?.unwrap_or(4)));
        }
        let name = self.word("the parameter's name")?.to_string();
        let count = match self.size(false)? {
            VariableSize::Array(count) => Some(count),
            _ => None,
        };
        Ok(Parameter { name, ty, align: align.unwrap_or(ty.bytes()), count, pointer })
    }

    fn tuning(&mut self, directive: &str) -> Outcome<Tuning> {
        match directive {
            ".maxntid" => Ok(Tuning::MaxThreads(self.dimensions()?)),
            ".reqntid" => Ok(Tuning::RequiredThreads(self.dimensions()?)),
            ".minnctapersm" => Ok(Tuning::MinBlocksPerProcessor(self.number("a number of blocks")?)),
            ".maxnreg" => Ok(Tuning::MaxRegisters(self.number("a number of registers")?)),
            other => {
                let message = format!("directive `{other}` is not supported here");
                self.fail(Diagnostic::new(message, self.before(), "a directive of the entry").unsupported())
            }
        }
    }

    fn dimensions(&mut self) -> Outcome<[u32; 3]> {
        let mut dimensions = [1; 3];
        dimensions[0] = self.number("a number of threads")?;
        for dimension in &mut dimensions[1..] {
            if self.take(Token::Comma) {
                *dimension = self.number("a number of threads")?;
            }
        }
        Ok(dimensions)
    }

    /// `.reg .b32 %r<10>, %x;`
    pub(super) fn registers(&mut self, function: &mut Function, names: &mut Names) -> Outcome<()> {
        let ty = self.ty()?;
        loop {
            let name = self.word("a register's name")?;
            let at = self.before();
            if self.take(Token::Less) {
                let count = self.number("a number of registers")?;
                if function.registers.len() as u32 + count.min(MAX_REGISTERS) > MAX_REGISTERS {
                    return self.fail(Diagnostic::new(
                        "too many registers",
                        self.before(),
                        format!("at most {MAX_REGISTERS}"),
                    ));
                }
                self.expect(Token::Greater, "`>`")?;
                for number in 0..count {
                    self.register(function, names, format!("{name}{number}"), ty, at)?;
                }
            } else {
                self.register(function, names, name.into(), ty, at)?;
            }
            if !self.take(Token::Comma) {
                break;
            }
        }
        self.expect(Token::Semicolon, "`;`")
    }

    fn register(
        &mut self,
        function: &mut Function,
        names: &mut Names,
        name: String,
        ty: Type,
        at: Span,
    ) -> Outcome<()> {
        self.refuse_late_hiding(function, names, &name, at)?;
        let id = RegisterId(function.registers.len() as u32);
        if !names.declare(&name, Meaning::Register(id)) {
            return self.fail(Diagnostic::new(
                format!("`{name}` is declared twice in this scope"),
                at,
                "the second one",
            ));
        }
        function.registers.push(Register { name, ty, scope: names.scope() });
        self.entry.registers.push(at);
        Ok(())
    }
}
