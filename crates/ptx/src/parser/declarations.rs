//! Everything outside functions: the head of the module, its variables; and how registers are declared.

use super::names::{Meaning, Names};
use super::{Outcome, Parser, integer};
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::lexer::Token;
use crate::source::Span;
use crate::types::{Space, Target, Type, Version};

/// Registers of one function; real kernels have a few thousand.
const MAX_REGISTERS: u32 = 1 << 20;

/// Initial values that rows of an array are filled up to.
const MAX_VALUES: usize = 1 << 20;

/// Dimensions of an array; braces nest as deep.
const MAX_DIMENSIONS: usize = 8;

/// Directives that only debuggers read: skipped with their block or line.
const DEBUG_DIRECTIVES: &[&str] = &["section"];

impl<'a> Parser<'a> {
    pub(super) fn module(&mut self) -> Option<Module> {
        let (version, target) = self.head().ok()?;
        let mut module = Module::new(version, target);
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
            return self.fail(Diagnostic::new(
                format!("unknown target `{name}`"),
                at,
                "expected one such as `sm_80` or `sm_90a`",
            ));
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
            Some(Token::Decimal(text)) if let Ok(version) = text.parse::<Version>() => match version <= Version::NEWEST
            {
                true => Ok(version),
                false => {
                    let message =
                        format!("PTX {version} is newer than {}, the newest that is read here", Version::NEWEST);
                    self.fail(Diagnostic::new(message, at, "not known yet").unsupported())
                }
            },
            _ => self.fail(Diagnostic::new("expected a PTX version such as `8.0`", at, "not a version")),
        }
    }

    fn top_level(&mut self, module: &mut Module) -> Outcome<()> {
        match self.peek() {
            Some(Token::Dotted(".file")) => self.file(module),
            Some(Token::Dotted(directive)) if DEBUG_DIRECTIVES.contains(&&directive[1..]) => self.skip_block(),
            Some(Token::Dotted(".pragma")) => {
                let text = self.pragma()?;
                module.pragmas.push(text);
                Ok(())
            }
            Some(Token::Dotted(".alias")) => self.alias(module),
            Some(Token::Dotted(".visible" | ".weak" | ".extern" | ".common" | ".entry" | ".func")) => {
                self.linked(module)
            }
            Some(Token::Dotted(".global" | ".shared" | ".const")) => self.module_variables(module, Linkage::Internal),
            _ => self.unexpected("an entry, a function, a variable or a directive"),
        }
    }

    /// `.pragma "text";`
    pub(super) fn pragma(&mut self) -> Outcome<String> {
        self.next += 1;
        let mut text = self.text("the pragma's text")?.to_string();
        while self.take(Token::Comma) {
            text = format!("{text}\", \"{}", self.text("the pragma's text")?);
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(text)
    }

    /// `.alias new, known;`: both are functions.
    fn alias(&mut self, module: &mut Module) -> Outcome<()> {
        self.next += 1;
        let new = self.known_function(module)?;
        self.expect(Token::Comma, "`,`")?;
        let known = self.known_function(module)?;
        self.expect(Token::Semicolon, "`;`")?;
        module.aliases.push((new, known));
        Ok(())
    }

    fn known_function(&mut self, module: &Module) -> Outcome<FunctionId> {
        let name = self.word("the name of a function")?;
        match module.functions.iter().position(|function| function.name == name) {
            Some(index) => Ok(FunctionId(index as u32)),
            None => self.fail(Diagnostic::new(format!("function `{name}` is not declared"), self.before(), "unknown")),
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
        let mut linkage = Linkage::Internal;
        while let Some(Token::Dotted(directive)) = self.peek() {
            linkage = match directive {
                ".visible" => Linkage::Visible,
                ".weak" => Linkage::Weak,
                ".extern" => Linkage::Extern,
                ".common" => Linkage::Common,
                _ => break,
            };
            self.next += 1;
        }
        let kind = match self.peek() {
            Some(Token::Dotted(".entry")) => FunctionKind::Entry,
            Some(Token::Dotted(".func")) => FunctionKind::Callee,
            _ => return self.module_variables(module, linkage),
        };
        self.next += 1;
        let function = self.function(module, kind, linkage)?;
        module.functions.push(function);
        self.places.entries.push(std::mem::take(&mut self.entry));
        Ok(())
    }

    fn module_variables(&mut self, module: &mut Module, linkage: Linkage) -> Outcome<()> {
        for (variable, place) in self.variable(&Names::new(module), linkage)? {
            self.refuse_late_functions(module, &variable, place)?;
            module.variables.push(variable);
            self.places.variables.push(place);
        }
        Ok(())
    }

    /// The IR keeps no order between variables and functions: what a variable points to is declared before all bodies.
    fn refuse_late_functions(&mut self, module: &Module, variable: &Variable, at: Span) -> Outcome<()> {
        let bodies = module.functions.iter().position(|function| !function.declared).unwrap_or(usize::MAX);
        let late = |value: &Initial| match value {
            Initial::Address { of: Symbol::Function(id), .. } => id.0 as usize >= bodies,
            _ => false,
        };
        if !variable.init.iter().any(late) {
            return Ok(());
        }
        let message =
            format!("`{}` holds the address of a function that is declared behind another's body", variable.name);
        let error = Diagnostic::new(message, at, "this variable");
        self.fail(error.help("declare the function at the start of the module").unsupported())
    }

    /// `.shared .align 16 .b8 name[1024];`: one declaration may name several.
    pub(super) fn variable(&mut self, names: &Names, linkage: Linkage) -> Outcome<Vec<(Variable, Span)>> {
        let space = self.space()?;
        let align = self.alignment()?;
        let ty = self.ty()?;
        let mut all = vec![];
        loop {
            let name = self.word("a name")?.to_string();
            let at = self.before();
            let dimensions = self.array()?;
            let init = if self.take(Token::Equals) { self.initialiser(names, &dimensions)? } else { vec![] };
            let size = self.size(&dimensions, linkage, init.len())?;
            let align = align.unwrap_or(ty.bytes());
            all.push((Variable { name, space, ty, align, size, init, scope: names.scope(), linkage }, at));
            if !self.take(Token::Comma) {
                break;
            }
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(all)
    }

    pub(super) fn space(&mut self) -> Outcome<Space> {
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

    pub(super) fn alignment(&mut self) -> Outcome<Option<u32>> {
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

    /// `[4][5]`; none stands for `[]`.
    pub(super) fn array(&mut self) -> Outcome<Vec<Option<u32>>> {
        let mut dimensions = vec![];
        while self.take(Token::BracketOpen) {
            if dimensions.len() == MAX_DIMENSIONS {
                return self.unexpected("at most 8 dimensions");
            }
            let open = self.peek() == Some(Token::BracketClose);
            dimensions.push(if open { None } else { Some(self.number("a number of elements")?) });
            self.expect(Token::BracketClose, "`]`")?;
        }
        Ok(dimensions)
    }

    /// `[]` is the launch's business, or as long as its initial values; several dimensions lie one behind the other.
    fn size(&mut self, dimensions: &[Option<u32>], linkage: Linkage, values: usize) -> Outcome<VariableSize> {
        if dimensions.is_empty() {
            return Ok(VariableSize::Scalar);
        }
        let product = |product: Option<u32>, one: &Option<u32>| product?.checked_mul((*one)?);
        match (dimensions, dimensions.iter().fold(Some(1), product)) {
            (_, Some(count)) => Ok(VariableSize::Array(count)),
            ([None], _) if linkage == Linkage::Extern => Ok(VariableSize::Dynamic),
            ([None], _) if values > 0 => Ok(VariableSize::Array(values as u32)),
            _ => {
                let message = "an array needs a number of elements that fits 32 bits";
                self.fail(Diagnostic::new(message, self.before(), "expected `[count]`"))
            }
        }
    }

    fn initialiser(&mut self, names: &Names, dimensions: &[Option<u32>]) -> Outcome<Vec<Initial>> {
        if !self.take(Token::BraceOpen) {
            return Ok(vec![self.initial(names)?]);
        }
        let rows = dimensions.get(1..).unwrap_or_default();
        let row = rows.iter().fold(1usize, |product, one| product.saturating_mul(one.unwrap_or(1) as usize));
        let mut values = vec![];
        while !self.take(Token::BraceClose) {
            if self.peek() == Some(Token::BraceOpen) && !rows.is_empty() {
                let end = values.len().saturating_add(row);
                if end > MAX_VALUES {
                    return self.unexpected("a smaller array, or one without rows in braces");
                }
                values.extend(self.initialiser(names, rows)?);
                // What a row leaves out is zero.
                values.resize(end.max(values.len()), Initial::Value(Immediate::Integer(0)));
            } else {
                values.push(self.initial(names)?);
            }
            self.take(Token::Comma);
        }
        Ok(values)
    }

    /// A number, or the address of a variable or function.
    fn initial(&mut self, names: &Names) -> Outcome<Initial> {
        let masked = self.peek_after(1) == Some(Token::ParenthesisOpen);
        let mask = match self.peek() {
            Some(Token::Integer(text)) if masked => integer(text),
            Some(Token::Word(_)) => None,
            _ => return Ok(Initial::Value(self.immediate()?)),
        };
        self.next += if mask.is_some() { 2 } else { 0 };
        let address = self.initial_address(names, mask)?;
        if mask.is_some() {
            self.expect(Token::ParenthesisClose, "`)`")?;
        }
        Ok(address)
    }

    fn initial_address(&mut self, names: &Names, mask: Option<u64>) -> Outcome<Initial> {
        let generic = self.peek() == Some(Token::Word("generic")) && self.peek_after(1) == Some(Token::ParenthesisOpen);
        self.next += if generic { 2 } else { 0 };
        let name = self.word("the name of a variable or function")?;
        let Some(Meaning::Symbol(of @ (Symbol::Global(_) | Symbol::Function(_)))) = names.resolve(name) else {
            return self.undeclared(name, names);
        };
        if generic {
            self.expect(Token::ParenthesisClose, "`)`")?;
        }
        let offset = if self.peek() == Some(Token::Plus) { self.offset()? } else { 0 };
        Ok(Initial::Address { of, offset, generic, mask })
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
