//! Instructions made from the form table: every mnemonic that a row allows, with operands that fit. The emulator's
//! random programs use them too.

use ptx::forms::{Constants, Field, OperandSpec, Second, candidates};
use ptx::{Instruction, Op, Space, Type};

/// Registers of each type that the texts declare.
pub const REGISTERS: u64 = 8;

/// Stem, type, and an instruction that writes the register with number `#`.
pub const STEMS: &[(&str, Type, &str)] = &[
    ("%p", Type::Pred, "mov.pred %p#, 1;"),
    ("%h", Type::B16, "mov.b16 %h#, 7;"),
    ("%r", Type::B32, "mov.b32 %r#, 7;"),
    ("%d", Type::B64, "mov.b64 %d#, 7;"),
    ("%sh", Type::S16, "mov.s16 %sh#, 7;"),
    ("%u", Type::U32, "mov.u32 %u#, 7;"),
    ("%s", Type::S32, "mov.s32 %s#, 7;"),
    ("%ud", Type::U64, "mov.u64 %ud#, 7;"),
    ("%e", Type::F16, "mov.b16 %e#, 7;"),
    ("%f", Type::F32, "mov.f32 %f#, 0f3F800000;"),
    ("%g", Type::F64, "mov.f64 %g#, 0d3FF0000000000000;"),
];

/// Numbers that look random and are the same everywhere.
pub struct Picks(pub u64);

impl Picks {
    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)) >> 11) % bound.max(1)
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// `mnemonic` as `op` with operands that fit, as one line.
pub fn instruction(op: Op, mnemonic: &str, picks: &mut Picks) -> String {
    let found = candidates(mnemonic).into_iter().find(|(form, _)| form.op == op);
    let (form, modifiers) = found.unwrap_or_else(|| panic!("{mnemonic} is not in the table"));
    let shape = Instruction { guard: None, form, modifiers, operands: vec![] };
    let without = picks.one_in(2);
    let beside = |spec: &&OperandSpec| spec.beside.is_none_or(|modifier| shape.has(modifier));
    let specs: Vec<_> = form.operands.all.iter().filter(beside).filter(|spec| !(spec.optional && without)).collect();
    let mut maker = Maker { shape: &shape, picks, split: false };
    let operands: Vec<String> = specs.into_iter().map(|spec| maker.operand(spec)).collect();
    // Arguments of a call are written whatever happens (ptxas: "Illegal to predicate instruction 'st.param'").
    let argument = matches!(form.effect, ptx::Effect::Writes) && shape.space() == Some(Space::Parameter);
    let guards = if argument { [""; 5] } else { ["", "", "", "@%p0 ", "@!%p1 "] };
    format!("{}{mnemonic} {};", picks.of(&guards), operands.join(", "))
}

struct Maker<'a> {
    shape: &'a Instruction,
    picks: &'a mut Picks,
    /// One operand of a `mov` is in parts, not both.
    split: bool,
}

impl Maker<'_> {
    fn operand(&mut self, spec: &OperandSpec) -> String {
        match spec.field {
            Field::Value(ty, count) => {
                let ty = ty.of(self.shape).expect("the mnemonic has the type");
                let vector = count.of(self.shape) > 1 || count.is_vector();
                if vector { self.vector(spec, ty, count.of(self.shape)) } else { self.single(spec, ty) }
            }
            Field::Immediate => self.constant(spec, Type::S32),
            Field::Label if self.shape.form.name == "CallIndirect" => "type".into(),
            Field::Label if self.shape.form.name == "BranchTable" => "table".into(),
            Field::Label => "end".into(),
            Field::Sink => "_".into(),
            Field::Function => "callee".into(),
            Field::Arguments if spec.defines => self.picks.of(&["(taken)", "(%r7)"]).to_string(),
            Field::Arguments => self.picks.of(&["(argument, %r1)", "(%d1, 7)"]).to_string(),
            Field::Address(_) => self.address(spec),
            Field::TensorAddress(count) => {
                let coordinates: Vec<String> = (0..count.of(self.shape)).map(|n| format!("%r{n}")).collect();
                format!("[%d0, {{{}}}]", coordinates.join(", "))
            }
        }
    }

    fn vector(&mut self, spec: &OperandSpec, ty: Type, count: u32) -> String {
        let stem = self.stem(ty, false);
        let float = ["%f", "%g", "%e"].contains(&stem) && !ty.is_float();
        let stores = !float && matches!(self.shape.op(), Op::Movement(_));
        let constants = !spec.defines && stores && self.picks.one_in(3);
        let part = |maker: &mut Self, number: u32| match (number, constants) {
            // ptxas takes no floating-point constant beside integers.
            (1, true) if ty == Type::B32 => "7".into(),
            (1, true) => maker.constant(spec, ty),
            _ => format!("{stem}{}", u64::from(number) % REGISTERS),
        };
        let parts: Vec<String> = (0..count).map(|number| part(self, number)).collect();
        format!("{{{}}}", parts.join(", "))
    }

    fn single(&mut self, spec: &OperandSpec, ty: Type) -> String {
        if spec.halves && !self.split && self.picks.one_in(3) {
            match ty {
                Type::B32 => return self.parts(&["{%h0, %h1}", "{%h1, 3}"], spec),
                Type::B64 => return self.parts(&["{%r0, %f1}", "{%h0, %h1, %h2, %h3}", "{%u0, %s1}"], spec),
                _ => {}
            }
        }
        // ptxas 13 takes `_` for the state of an mbarrier from PTX 7.1 on.
        let discards = spec.sink && self.shape.form.version > ptx::Version { major: 7, minor: 0 };
        if discards && spec.second == Second::No && self.picks.one_in(3) {
            return "_".into();
        }
        if !spec.defines && self.picks.one_in(3) {
            return self.other(spec, ty);
        }
        let register = format!("{}{}", self.stem(ty, spec.wider), self.picks.below(REGISTERS));
        match spec.second {
            Second::Yes if spec.sink && self.picks.one_in(2) => "_|%p7".into(),
            Second::Yes => format!("{register}|%p7"),
            Second::Maybe if self.picks.one_in(2) => format!("{register}|{}", self.picks.of(&["%p6", "_"])),
            _ => register,
        }
    }

    fn parts(&mut self, choices: &[&str], spec: &OperandSpec) -> String {
        self.split = true;
        let chosen = self.picks.of(choices).to_string();
        if spec.defines { chosen.replace(", 3", ", _") } else { chosen }
    }

    /// Anything but a plain register.
    fn other(&mut self, spec: &OperandSpec, ty: Type) -> String {
        let integer = ty.is_integer() || ty.is_untyped();
        if spec.negated && ty == Type::Pred && self.picks.one_in(2) {
            return "!%p5".into();
        }
        if spec.special && integer && ty.bits() == 32 && self.picks.one_in(2) {
            return self.picks.of(&["%tid.x", "%laneid", "%lanemask_lt", "%ctaid.z"]).to_string();
        }
        if spec.symbols && integer && ty.bits() == 64 && self.picks.one_in(2) {
            let space = self.shape.space();
            let names =
                [(Space::Shared, "S"), (Space::Constant, "C"), (Space::Local, "L"), (Space::Parameter, "parameter")];
            return names.into_iter().find(|(one, _)| Some(*one) == space).map_or("G", |(_, name)| name).into();
        }
        if spec.registers_only || ty.is_packed() || matches!(ty, Type::F16 | Type::Bf16) {
            let stem = self.stem(ty, false);
            return format!("{stem}{}", self.picks.below(REGISTERS));
        }
        if self.shape.form.name == "PolicyOfFraction" { "0.5".into() } else { self.constant(spec, ty) }
    }

    fn constant(&mut self, spec: &OperandSpec, ty: Type) -> String {
        match &spec.constants {
            Constants::OneOf(all) => return self.picks.of(all).to_string(),
            Constants::Range(from, to) => {
                return (from + i128::from(self.picks.below(((to - from) as u64).min(16)))).to_string();
            }
            Constants::Steps(from, to, _) => return self.picks.of(&[from, to]).to_string(),
            Constants::MultipleOf(factor) => return (factor * i128::from(1 + self.picks.below(4))).to_string(),
            Constants::Any => {}
        }
        match ty {
            Type::F32 => self.picks.of(&["0f3F800000", "1.5", "-0.25", "0fFF800000"]).to_string(),
            Type::F64 => self.picks.of(&["0d3FF0000000000000", "1.5e3", "-2.0"]).to_string(),
            Type::Pred => "1".into(),
            Type::B32 => self.picks.of(&["-1", "0x7f", "4294967295", "0f00000000", "017"]).to_string(),
            _ if ty.bits() == 8 => self.picks.of(&["-1", "255", "0b11"]).to_string(),
            _ => self.picks.of(&["-1", "65535", "0x12", "5U"]).to_string(),
        }
    }

    fn address(&mut self, spec: &OperandSpec) -> String {
        let space = spec.space.or(self.shape.space());
        let bases: &[&str] = match space {
            Some(Space::Shared) => &["%r0", "%u1", "%d1", "S"],
            Some(Space::Global) => &["%d0", "%ud1", "G"],
            Some(Space::Parameter) if self.shape.form.name.starts_with("Store") => return "[given+16]".into(),
            Some(Space::Parameter) if self.shape.has("param::func") => return "[given]".into(),
            Some(Space::Parameter) => return self.picks.of(&["[parameter]", "[parameter+16]", "[%d3]"]).to_string(),
            Some(Space::Constant) => &["%d0", "%r1", "C"],
            Some(Space::Local) => &["%d0", "%r1", "L"],
            _ => &["%d0", "%d7", "%ud2"],
        };
        format!("[{}{}]", self.picks.of(bases), self.picks.of(&["", "+16", "+-32", "+48", " + 0"]))
    }

    /// A register's stem; `wider`: perhaps of a larger one.
    fn stem(&mut self, ty: Type, wider: bool) -> &'static str {
        let fits: &[&'static str] = match ty {
            Type::Pred => &["%p"],
            _ if wider && ty.bits() < 64 && self.picks.one_in(4) => &["%d"],
            _ if ty.bits() == 8 => &["%h", "%r"],
            Type::B16 => &["%h", "%sh", "%e"],
            Type::U16 | Type::S16 => &["%h", "%sh"],
            Type::F16 => &["%h", "%e"],
            Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => &["%h"],
            Type::B32 => &["%r", "%u", "%s", "%f"],
            Type::U32 | Type::S32 => &["%r", "%u", "%s"],
            Type::F32 => &["%r", "%f"],
            Type::F64 => &["%d", "%g"],
            Type::B64 => &["%d", "%ud", "%g"],
            _ if ty.bits() == 64 => &["%d", "%ud"],
            _ => &["%r"],
        };
        self.picks.of::<&'static str>(fits)
    }
}
