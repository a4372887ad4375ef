//! Operands: the same grammar for every instruction.

use super::names::{Meaning, Names};
use super::{Outcome, Parser, integer};
use crate::diagnostic::Diagnostic;
use crate::ir::*;
use crate::lexer::Token;
use crate::source::Span;
use crate::special::SPECIAL_REGISTERS;

/// How deep `{ { … } }` may nest; PTX has one level.
const MAX_DEPTH: u32 = 4;
/// The constant that PTX predefines, 32 on every target. PTX ISA, "Predefined Constants".
const WARP_SIZE: Token = Token::Word("WARP_SZ");

impl<'a> Parser<'a> {
    /// All operands up to the `;`, which stays.
    pub(super) fn operands(
        &mut self,
        mnemonic: &str,
        names: &mut Names,
        spans: &mut Vec<Span>,
    ) -> Outcome<Vec<Operand>> {
        let mut operands = vec![];
        if self.peek() == Some(Token::Semicolon) {
            return Ok(operands);
        }
        let head = mnemonic.split('.').next().unwrap_or_default();
        if head == "call" {
            return self.call(names, spans);
        }
        loop {
            let start = self.here();
            let label = head == "bra" || head == "brx" && operands.len() == 1;
            operands.push(if label { Operand::Label(self.mentioned(names)?) } else { self.operand(names, 0)? });
            spans.push(start.to(self.before()));
            if !self.take(Token::Comma) {
                return Ok(operands);
            }
        }
    }

    /// `(results), function, (arguments), prototype`: all but the function may be missing; lists that are, are empty.
    fn call(&mut self, names: &mut Names, spans: &mut Vec<Span>) -> Outcome<Vec<Operand>> {
        let start = self.here();
        let mut results = vec![];
        if self.peek() == Some(Token::ParenthesisOpen) {
            results = self.arguments(names)?;
            spans.push(start.to(self.before()));
            self.expect(Token::Comma, "`,` and the function")?;
        } else {
            spans.push(start);
        }
        let at = self.here();
        let function = self.operand(names, 0)?;
        spans.push(at);
        let mut operands = vec![Operand::Arguments(results), function];
        let mut more = self.take(Token::Comma);
        let start = self.here();
        let mut arguments = vec![];
        if more && self.peek() == Some(Token::ParenthesisOpen) {
            arguments = self.arguments(names)?;
            spans.push(start.to(self.before()));
            more = self.take(Token::Comma);
        } else {
            spans.push(at);
        }
        operands.push(Operand::Arguments(arguments));
        if more {
            spans.push(self.here());
            operands.push(Operand::Label(self.mentioned(names)?));
        }
        Ok(operands)
    }

    fn arguments(&mut self, names: &Names) -> Outcome<Vec<Operand>> {
        self.expect(Token::ParenthesisOpen, "`(`")?;
        let mut arguments = vec![];
        while !self.take(Token::ParenthesisClose) {
            arguments.push(self.operand(names, 1)?);
            if !self.take(Token::Comma) && self.peek() != Some(Token::ParenthesisClose) {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(arguments)
    }

    /// A label that may be defined further down.
    pub(super) fn mentioned(&mut self, names: &mut Names) -> Outcome<LabelId> {
        let at = self.here();
        let name = self.word("a label")?;
        Ok(names.mention(name, at))
    }

    fn operand(&mut self, names: &Names, depth: u32) -> Outcome<Operand> {
        if depth > MAX_DEPTH {
            return self.unexpected("fewer nested braces");
        }
        let first = match self.peek() {
            Some(Token::BracketOpen) => return self.bracket(names, depth),
            Some(Token::BraceOpen) => return self.vector(names, depth).map(Operand::Vector),
            Some(Token::Exclamation) => {
                self.next += 1;
                return self.register_operand(names).map(Operand::Not);
            }
            Some(Token::Word("_")) => {
                self.next += 1;
                Operand::Sink
            }
            Some(Token::Word(name)) if self.peek() != Some(WARP_SIZE) => self.named(name, names)?,
            _ => Operand::Immediate(self.immediate()?),
        };
        if self.take(Token::Bar) {
            let second = self.operand(names, depth + 1)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    /// A register, a special register, or the address of a variable.
    fn named(&mut self, name: &'a str, names: &Names) -> Outcome<Operand> {
        let meaning = names.resolve(name);
        if meaning.is_none()
            && let Some(special) = self.special(name)
        {
            return Ok(Operand::Special(special));
        }
        self.next += 1;
        match meaning {
            Some(Meaning::Register(register)) => Ok(Operand::Register(register)),
            Some(Meaning::Symbol(symbol)) => Ok(Operand::Symbol(symbol)),
            None => self.undeclared(name, names),
        }
    }

    /// Takes `%tid.x` or `%laneid`, if that comes next.
    fn special(&mut self, name: &str) -> Option<&'static str> {
        let component = match self.peek_after(1) {
            Some(Token::Dotted(component)) => component,
            _ => "",
        };
        let known = |text: String| SPECIAL_REGISTERS.iter().map(|(known, _)| *known).find(|known| *known == text);
        let (special, length) = match known(format!("{name}{component}")) {
            Some(special) => (special, if component.is_empty() { 1 } else { 2 }),
            None => (known(name.into())?, 1),
        };
        self.next += length;
        Some(special)
    }

    fn register_operand(&mut self, names: &Names) -> Outcome<RegisterId> {
        let name = self.word("a register")?;
        match names.resolve(name) {
            Some(Meaning::Register(register)) => Ok(register),
            _ => self.undeclared(name, names),
        }
    }

    /// The name was just taken.
    pub(super) fn undeclared<T>(&mut self, name: &str, names: &Names) -> Outcome<T> {
        let error = Diagnostic::new(format!("`{name}` is not declared"), self.before(), "unknown name");
        let error = match names.nearest(name) {
            Some(near) => error.help(format!("`{near}` is declared: did you mean it?")),
            None => error,
        };
        self.fail(error)
    }

    fn vector(&mut self, names: &Names, depth: u32) -> Outcome<Vec<Operand>> {
        self.expect(Token::BraceOpen, "`{`")?;
        let mut parts = vec![];
        loop {
            parts.push(self.operand(names, depth + 1)?);
            if self.take(Token::BraceClose) {
                return Ok(parts);
            }
            self.expect(Token::Comma, "`,` or `}`")?;
        }
    }

    /// `[base+offset]` or `[map, {coordinates}]`.
    fn bracket(&mut self, names: &Names, depth: u32) -> Outcome<Operand> {
        self.next += 1;
        let address = self.address(names)?;
        if self.take(Token::Comma) {
            let coordinates = self.vector(names, depth)?;
            self.expect(Token::BracketClose, "`]`")?;
            return Ok(Operand::TensorAddress(address, coordinates));
        }
        self.expect(Token::BracketClose, "`]`")?;
        Ok(Operand::Address(address))
    }

    fn address(&mut self, names: &Names) -> Outcome<Address> {
        let base = match self.peek() {
            Some(Token::Word(name)) => {
                self.next += 1;
                match names.resolve(name) {
                    Some(Meaning::Register(register)) => AddressBase::Register(register),
                    Some(Meaning::Symbol(symbol)) => AddressBase::Symbol(symbol),
                    None => return self.undeclared(name, names),
                }
            }
            _ => return Ok(Address { base: AddressBase::Absolute, offset: self.offset()? }),
        };
        let offset = if self.peek() == Some(Token::Plus) { self.offset()? } else { 0 };
        Ok(Address { base, offset })
    }

    /// `+8` or `+-8`; ptxas, too, reads no `-8` here.
    pub(super) fn offset(&mut self) -> Outcome<i64> {
        self.take(Token::Plus);
        let at = self.here();
        match self.immediate()? {
            Immediate::Integer(value) if i64::try_from(value).is_ok() => Ok(value as i64),
            _ => self.fail(Diagnostic::new("an offset is an integer of 64 bits", at, "not an offset")),
        }
    }

    pub(super) fn immediate(&mut self) -> Outcome<Immediate> {
        let at = self.here();
        let negative = self.take(Token::Minus);
        let sign = if negative { -1 } else { 1 };
        let value = match self.peek() {
            Some(Token::Integer(text)) => integer(text).map(|value| Immediate::Integer(sign * value as i128)),
            Some(Token::Float(text)) => {
                u32::from_str_radix(&text[2..], 16).ok().map(|bits| Immediate::Float(bits ^ ((negative as u32) << 31)))
            }
            Some(Token::Double(text)) => {
                u64::from_str_radix(&text[2..], 16).ok().map(|bits| Immediate::Double(bits ^ ((negative as u64) << 63)))
            }
            Some(Token::Decimal(text)) => {
                text.parse::<f64>().ok().map(|value| Immediate::Double((sign as f64 * value).to_bits()))
            }
            Some(WARP_SIZE) => Some(Immediate::Integer(sign * 32)),
            _ => return self.unexpected("an operand"),
        };
        self.next += 1;
        match value {
            Some(value) => Ok(value),
            None => self.fail(Diagnostic::new("this number does not fit 64 bits", at.to(self.before()), "too large")),
        }
    }
}
