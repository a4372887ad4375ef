//! The head of an entry or function: name, parameters, what it returns, directives.

use super::names::{Meaning, Names};
use super::{EntryPlaces, Outcome, Parser};
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::lexer::Token;

impl<'a> Parser<'a> {
    /// `.func (.param .b32 result) name(.param .b64 argument) .noreturn` and a body, or `;`.
    pub(super) fn function(&mut self, module: &Module, kind: FunctionKind, linkage: Linkage) -> Outcome<Function> {
        let root = Scope { parent: ScopeId(0) };
        let mut function = Function { kind, linkage, scopes: vec![root], ..Function::default() };
        let mut names = Names::new(module);
        names.open(ScopeId(0));
        if kind == FunctionKind::Callee && self.take(Token::ParenthesisOpen) {
            function.returns = self.parameters(&mut names, |index| Symbol::Return(ReturnId(index)))?;
        }
        function.name = self.word("the name of the entry")?.to_string();
        self.entry = EntryPlaces { name: self.before(), ..EntryPlaces::default() };
        names.know_function(&function.name, FunctionId(module.functions.len() as u32));
        if self.take(Token::ParenthesisOpen) {
            function.parameters = self.parameters(&mut names, |index| Symbol::Parameter(ParameterId(index)))?;
        }
        self.head_directives(&mut function)?;
        if self.take(Token::Semicolon) {
            function.declared = true;
            self.spans.push(vec![]);
            return Ok(function);
        }
        self.body(function, names)
    }

    fn head_directives(&mut self, function: &mut Function) -> Outcome<()> {
        while let Some(Token::Dotted(directive)) = self.peek() {
            let at = self.here();
            if directive == ".pragma" {
                let text = self.pragma()?;
                function.pragmas.push(text);
                continue;
            }
            self.next += 1;
            let tuning = self.tuning(directive)?;
            function.tuning.push(tuning);
            self.entry.tuning.push(at.to(self.before()));
        }
        Ok(())
    }

    /// Up to the `)`; a parameter called `_` has no name.
    fn parameters(&mut self, names: &mut Names, symbol: fn(u32) -> Symbol) -> Outcome<Vec<Parameter>> {
        let mut parameters = vec![];
        while !self.take(Token::ParenthesisClose) {
            let at = self.here();
            let parameter = self.parameter()?;
            let meaning = Meaning::Symbol(symbol(parameters.len() as u32));
            if parameter.name != "_" && !names.declare(&parameter.name, meaning) {
                let message = format!("parameter `{}` is declared twice", parameter.name);
                return self.fail(Diagnostic::new(message, at.to(self.before()), "the second one"));
            }
            parameters.push(parameter);
            if !self.take(Token::Comma) && self.peek() != Some(Token::ParenthesisClose) {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(parameters)
    }

    /// `.param .align 8 .u64 .ptr .global .align 16 name[count]`
    fn parameter(&mut self) -> Outcome<Parameter> {
        if self.peek() == Some(Token::Dotted(".reg")) {
            let error = Diagnostic::new("parameters in registers are not supported", self.here(), "expected `.param`");
            return self.fail(error.help("declare them in `.param`").unsupported());
        }
        if !self.take_dotted(".param") {
            return self.unexpected("`.param`");
        }
        let mut align = self.alignment()?;
        let ty = self.ty()?;
        let mut pointer = None;
        if self.take_dotted(".ptr") {
            let space = match self.peek() {
                Some(Token::Dotted(text)) if text != ".align" => Some(self.space()?),
                _ => None,
            };
            pointer = Some((space, self.alignment()?.unwrap_or(4)));
        }
        align = align.or(self.alignment()?);
        let name = self.word("the parameter's name")?.to_string();
        let count = match self.array()?.as_slice() {
            [] => None,
            [Some(count)] => Some(*count),
            // `[]` takes as much as it is given.
            [None] => Some(0),
            _ => return self.unexpected("one number of elements"),
        };
        Ok(Parameter { name, ty, align: align.unwrap_or(ty.bytes()), count, pointer })
    }

    fn tuning(&mut self, directive: &str) -> Outcome<Tuning> {
        match directive {
            ".maxntid" => Ok(Tuning::MaxThreads(self.dimensions()?)),
            ".reqntid" => Ok(Tuning::RequiredThreads(self.dimensions()?)),
            ".minnctapersm" => Ok(Tuning::MinBlocksPerProcessor(self.number("a number of blocks")?)),
            ".maxnreg" => Ok(Tuning::MaxRegisters(self.number("a number of registers")?)),
            ".explicitcluster" => Ok(Tuning::ExplicitCluster),
            ".reqnctapercluster" => Ok(Tuning::RequiredCluster(self.dimensions()?)),
            ".maxclusterrank" => Ok(Tuning::MaxClusterRank(self.number("a number of blocks")?)),
            ".noreturn" => Ok(Tuning::NoReturn),
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

    /// `.callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;`
    pub(super) fn prototype(&mut self) -> Outcome<Prototype> {
        let mut names = Names::default();
        names.open(ScopeId(0));
        let mut prototype = Prototype::default();
        let unnamed = |index| Symbol::Parameter(ParameterId(index));
        if self.take(Token::ParenthesisOpen) {
            prototype.returns = self.parameters(&mut names, unnamed)?;
        }
        self.word("`_`, which stands for the function's name")?;
        if self.take(Token::ParenthesisOpen) {
            prototype.parameters = self.parameters(&mut names, unnamed)?;
        }
        prototype.no_return = self.take_dotted(".noreturn");
        self.expect(Token::Semicolon, "`;`")?;
        Ok(prototype)
    }
}
