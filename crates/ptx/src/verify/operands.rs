//! Operands against the row: types, widths, vector lengths, constants, addresses.

use super::types::{check_constant, fits, fitting};
use super::{Errors, Site};
use crate::diagnostic::Diagnostic;
use crate::forms::{Constants, Effect, Field, OperandSpec};
use crate::ir::*;
use crate::special;
use crate::types::{Space, Type};

pub fn instruction(site: &Site, errors: &mut Errors) {
    guard(site, errors);
    company(site, errors);
    for (index, (spec, operand)) in site.instruction.specified().enumerate() {
        let check = Check { site, spec, index };
        if let Err(error) = check.operand(operand) {
            errors.push(error);
        }
    }
}

fn guard(site: &Site, errors: &mut Errors) {
    let Some(guard) = site.instruction.guard else { return };
    let register = &site.function[guard.register];
    if register.ty != Type::Pred {
        let message = format!("a guard is a predicate, found `{}`, which is `{}`", register.name, register.ty);
        errors.push(Diagnostic::new(message, site.guard(), "expected a `.pred` register"));
    }
}

/// Modifiers that are only allowed beside others.
fn company(site: &Site, errors: &mut Errors) {
    let lonely = site.instruction.form.spelling.lonely(&site.instruction.modifiers);
    if let Some((modifier, needs)) = lonely {
        let (goes, needs) = needs.strip_prefix("! ").map_or(("goes with", needs), |not| ("does not go with", not));
        let needs: Vec<String> = needs.split(' ').map(|one| format!("`.{one}`")).collect();
        let message = format!("`.{modifier}` does not go with the other modifiers of {}", site.mnemonic());
        let label = match goes {
            "goes with" => format!("`.{modifier}` needs another modifier beside it"),
            _ => format!("`.{modifier}` and another modifier exclude each other"),
        };
        let error = Diagnostic::new(message, site.spans.head, label);
        errors.push(error.help(format!("`.{modifier}` {goes} {}", needs.join(", "))));
    }
}

type Outcome = Result<(), Diagnostic>;

struct Check<'a> {
    site: &'a Site<'a>,
    spec: &'a OperandSpec,
    index: usize,
}

impl Check<'_> {
    fn operand(&self, operand: &Operand) -> Outcome {
        match (self.spec.field, operand) {
            (_, Operand::Pair(first, second)) => self.pair(first, second),
            (Field::Value(ty, count), _) => {
                let instruction = self.site.instruction;
                ty.of(instruction).map_or(Ok(()), |ty| self.value(operand, ty, count.of(instruction)))
            }
            (Field::Immediate, Operand::Immediate(value)) => self.constant(*value),
            (Field::Address(_), Operand::Address(address)) => self.address(address, self.space()),
            (Field::TensorAddress(count), Operand::TensorAddress(map, coordinates)) => {
                self.address(map, None)?;
                self.parts(coordinates, Type::S32, count.of(self.site.instruction))
            }
            _ => Ok(()),
        }
    }

    fn pair(&self, first: &Operand, second: &Operand) -> Outcome {
        if let Field::Value(ty, _) = self.spec.field
            && let Some(ty) = ty.of(self.site.instruction)
        {
            self.single(first, ty)?;
        }
        self.single(second, Type::Pred)
    }

    fn value(&self, operand: &Operand, ty: Type, count: u32) -> Outcome {
        match operand {
            Operand::Vector(parts) if self.spec.halves => self.halves(parts, ty),
            Operand::Vector(parts) => self.parts(parts, ty, count),
            other => self.single(other, ty),
        }
    }

    /// `{a, b}`: as many as the row says, of one width.
    fn parts(&self, parts: &[Operand], ty: Type, count: u32) -> Outcome {
        if parts.len() as u32 != count {
            let message = format!("{} takes {count} elements here, found {}", self.mnemonic(), parts.len());
            return self.fail(message, format!("expected {count} elements"));
        }
        self.mixed(parts)?;
        parts.iter().try_for_each(|part| match part {
            // Beside registers, the bits of packed values may be written as a number.
            Operand::Immediate(_) if ty.is_packed() => self.single(part, Type::B32),
            _ => self.single(part, ty),
        })
    }

    /// `mov.b64 %rd1, {%r1, %r2}`: parts that make up the whole.
    fn halves(&self, parts: &[Operand], ty: Type) -> Outcome {
        if !ty.is_untyped() {
            let message = format!("{} takes no parts: only `.b` types are put together or apart", self.mnemonic());
            return self.fail(message, format!("expected one `{ty}`"));
        }
        self.mixed(parts)?;
        let each = ty.bits() / (parts.len() as u32).max(1);
        let part = [Type::B8, Type::B16, Type::B32, Type::B64].into_iter().find(|part| part.bits() == each);
        match part {
            Some(part) if each * parts.len() as u32 == ty.bits() => {
                parts.iter().try_for_each(|one| self.single(one, part))
            }
            _ => self.fail(format!("{} parts do not make up `{ty}`", parts.len()), "expected 2 or 4 parts"),
        }
    }

    /// Elements of a vector have one width, and one of them is wanted.
    fn mixed(&self, parts: &[Operand]) -> Outcome {
        let mut widths: Vec<u32> =
            parts.iter().filter_map(|part| self.register(part)).map(|one| one.ty.bits()).collect();
        widths.dedup();
        if widths.len() > 1 {
            return self.fail(
                "the elements of a vector have one width",
                format!("found {} and {} bits", widths[0], widths[1]),
            );
        }
        match parts.iter().all(|part| *part == Operand::Sink) {
            true => self.fail("a vector of `_` alone has no type", "expected at least one register"),
            false => Ok(()),
        }
    }

    fn register(&self, operand: &Operand) -> Option<&Register> {
        match operand {
            Operand::Register(id) | Operand::Not(id) => Some(&self.site.function[*id]),
            _ => None,
        }
    }

    fn single(&self, operand: &Operand, ty: Type) -> Outcome {
        match operand {
            Operand::Register(id) => self.typed(&self.site.function[*id], ty),
            Operand::Not(id) => self.negated(&self.site.function[*id], ty),
            Operand::Immediate(_) if self.spec.defines => {
                self.fail("a result is written to a register", "found a constant")
            }
            Operand::Immediate(value) => self.typed_constant(*value, ty),
            Operand::Special(name) => self.special(name, ty),
            Operand::Symbol(symbol) => self.symbol(*symbol, ty),
            Operand::Sink if !self.spec.defines => self.fail("`_` stands for a result only", "expected a value"),
            Operand::Sink => Ok(()),
            _ => self.fail(format!("{} takes a single `{ty}` here", self.mnemonic()), "not a register or constant"),
        }
    }

    fn typed(&self, register: &Register, ty: Type) -> Outcome {
        if fits(register.ty, ty, self.spec.wider) {
            return Ok(());
        }
        let message =
            format!("{} takes `{ty}` here, found `{}`, which is `{}`", self.mnemonic(), register.name, register.ty);
        let help = format!("{} registers fit", fitting(ty, self.spec.wider));
        Err(Diagnostic::new(message, self.span(), format!("this is `{}`", register.ty)).help(help))
    }

    fn negated(&self, register: &Register, ty: Type) -> Outcome {
        match (register.ty, ty) {
            (Type::Pred, Type::Pred) => Ok(()),
            _ => self.fail(
                format!("`!` negates predicates, found `{}`, which is `{}`", register.name, register.ty),
                "not a predicate",
            ),
        }
    }

    fn typed_constant(&self, value: Immediate, ty: Type) -> Outcome {
        self.constant(value)?;
        check_constant(value, ty).or_else(|error| self.fail(error.to_string(), "this constant"))
    }

    /// The values that the row allows.
    fn constant(&self, value: Immediate) -> Outcome {
        let allowed = &self.spec.constants;
        match value {
            Immediate::Integer(value) if allowed.allow(value) => Ok(()),
            Immediate::Integer(value) => self.fail(
                format!("{} takes {allowed} here, found {value}", self.mnemonic()),
                format!("expected {allowed}"),
            ),
            _ if self.spec.field == Field::Immediate || *allowed != Constants::Any => {
                self.fail(format!("{} takes an integer here", self.mnemonic()), "a floating-point constant")
            }
            _ => Ok(()),
        }
    }

    fn special(&self, name: &str, ty: Type) -> Outcome {
        let own = special::type_of(name).unwrap_or(ty);
        if fits(own, ty, false) {
            return Ok(());
        }
        self.fail(
            format!("{} takes `{ty}` here, found `{name}`, which is `{own}`", self.mnemonic()),
            format!("this is `{own}`"),
        )
    }

    /// The address of a variable: 64 bits, or 32 where the space is small.
    fn symbol(&self, symbol: Symbol, ty: Type) -> Outcome {
        let (name, space) = self.named(symbol);
        if let Some(wanted) = self.site.instruction.space().filter(|wanted| *wanted != space) {
            return self.wrong_space(name, space, wanted);
        }
        let wide_enough = ty.bits() == 64 || ty.bits() == 32 && is_small(space);
        if wide_enough && !ty.is_float() {
            return Ok(());
        }
        let message = format!("the address of `{name}` does not fit `{ty}`");
        self.fail(message, if is_small(space) { "an integer of 32 or 64 bits" } else { "an integer of 64 bits" })
    }

    fn address(&self, address: &Address, space: Option<Space>) -> Outcome {
        match address.base {
            AddressBase::Register(id) => self.address_register(&self.site.function[id], space),
            AddressBase::Symbol(symbol) => self.address_symbol(symbol, address.offset, space),
            AddressBase::Absolute => self.fail("an address begins with a register or a variable", "found a number"),
        }
    }

    fn address_register(&self, register: &Register, space: Option<Space>) -> Outcome {
        let ty = register.ty;
        let wide = ty.bits() == 64 || ty.bits() == 32 && space.is_some_and(is_small);
        if (ty.is_integer() || ty.is_untyped()) && wide {
            return Ok(());
        }
        let expected = if space.is_some_and(is_small) { "32 or 64 bits" } else { "64 bits" };
        let message =
            format!("an address here is an integer of {expected}, found `{}`, which is `{ty}`", register.name);
        self.fail(message, format!("this is `{ty}`"))
    }

    fn address_symbol(&self, symbol: Symbol, offset: i64, space: Option<Space>) -> Outcome {
        let (name, own) = self.named(symbol);
        match (space, symbol) {
            (Some(space), _) if space != own => self.wrong_space(name, own, space),
            (_, Symbol::Function(_)) => {
                self.fail(format!("`{name}` is a function: nothing is read or written there"), "no data")
            }
            (Some(Space::Parameter), Symbol::Parameter(id)) => {
                self.readable(name)?;
                self.inside(name, self.site.function[id].bytes(), offset)
            }
            (Some(Space::Parameter), Symbol::Return(id)) => self.inside(name, self.site.function[id].bytes(), offset),
            (Some(Space::Parameter), Symbol::Local(id)) => self.inside(name, self.site.function[id].bytes(), offset),
            _ => Ok(()),
        }
    }

    /// What a function was given is not written.
    fn readable(&self, name: &str) -> Outcome {
        if self.site.instruction.form.effect != Effect::Writes {
            return Ok(());
        }
        self.fail(format!("`{name}` is a parameter of this function: it is read only"), "written here")
    }

    /// Accesses to a parameter stay inside it; one without a size takes what it is given.
    fn inside(&self, name: &str, size: u64, offset: i64) -> Outcome {
        let instruction = self.site.instruction;
        let accessed = match self.spec.field {
            Field::Address(Some((ty, count))) => {
                ty.of(instruction).map_or(0, |ty| i128::from(ty.bytes()) * i128::from(count.of(instruction)))
            }
            _ => 0,
        };
        let (first, end) = (i128::from(offset), i128::from(offset) + accessed);
        if first >= 0 && (size == 0 || end <= i128::from(size)) {
            return Ok(());
        }
        let does = if self.site.instruction.form.effect == Effect::Writes { "writes" } else { "reads" };
        let message = format!("parameter `{name}` has {size} bytes; this {does} bytes {first} to {end} of it");
        self.fail(message, "outside the parameter")
    }

    fn wrong_space(&self, name: &str, own: Space, wanted: Space) -> Outcome {
        self.fail(
            format!("{} takes an address in `{wanted}`; `{name}` is in `{own}`", self.mnemonic()),
            format!("this is in `{own}`"),
        )
    }

    /// A symbol's name and space.
    fn named(&self, symbol: Symbol) -> (&str, Space) {
        let variable = match symbol {
            Symbol::Parameter(id) => return (&self.site.function[id].name, Space::Parameter),
            Symbol::Return(id) => return (&self.site.function[id].name, Space::Parameter),
            // The address of a function is a generic one.
            Symbol::Function(id) => return (&self.site.module[id].name, Space::Global),
            Symbol::Local(id) => &self.site.function[id],
            Symbol::Global(id) => &self.site.module[id],
        };
        (&variable.name, variable.space)
    }

    fn space(&self) -> Option<Space> {
        self.spec.space.or(self.site.instruction.space())
    }

    fn mnemonic(&self) -> String {
        self.site.mnemonic()
    }

    fn span(&self) -> crate::source::Span {
        self.site.operand(self.index)
    }

    fn fail(&self, message: impl Into<String>, label: impl Into<String>) -> Outcome {
        Err(Diagnostic::new(message, self.span(), label))
    }
}

/// Spaces whose addresses fit 32 bits.
fn is_small(space: Space) -> bool {
    matches!(space, Space::Shared | Space::Parameter | Space::Local | Space::Constant)
}
