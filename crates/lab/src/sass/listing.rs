//! What nvdisasm prints, line by line: functions, labels, instructions.

use super::class::Class;

/// The machine code of one cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub functions: Vec<Function>,
}

/// One section of code: an entry, and the functions that ptxas put behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub instructions: Vec<Instruction>,
    /// Each with the index of the instruction that it stands before, in order.
    pub labels: Vec<(String, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub address: u32,
    /// Guard, opcode and operands.
    pub text: String,
    /// `HMMA.16816.F32`.
    pub opcode: String,
    pub class: Class,
    /// It may be passed over: it has a guard, or a predicate before its target.
    pub conditional: bool,
    /// The labels that a branch names.
    pub targets: Vec<String>,
}

impl Listing {
    /// The error says which line was not understood.
    pub fn read(text: &str) -> Result<Listing, String> {
        let mut functions: Vec<Function> = vec![Function::default()];
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix(".section").and_then(section) {
                functions.push(Function { name: name.into(), ..Function::default() });
            }
            let function = functions.last_mut().ok_or("there is no function in it")?;
            if let Some(label) = line.strip_suffix(':') {
                function.labels.push((label.into(), function.instructions.len()));
            } else if line.starts_with("/*") {
                let unknown = || format!("line {}: `{line}` is no instruction", number + 1);
                function.instructions.push(instruction(line).ok_or_else(unknown)?);
            }
        }
        functions.retain(|function| !function.instructions.is_empty());
        if functions.is_empty() {
            return Err("there is no instruction in it".into());
        }
        Ok(Listing { functions })
    }
}

/// `.text.NAME,"ax",@progbits` is code.
fn section(rest: &str) -> Option<&str> {
    rest.trim().strip_prefix(".text.")?.split(',').next()
}

/// `/*0de0*/ @!P0 BRA P1, `(.L_x_1) ;`
fn instruction(line: &str) -> Option<Instruction> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let address = u32::from_str_radix(address, 16).ok()?;
    let text = rest.split_once(';')?.0.trim();
    let unguarded = match text.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ')?.1.trim_start(),
        None => text,
    };
    let (opcode, operands) = unguarded.split_once(' ').unwrap_or((unguarded, ""));
    if opcode.is_empty() {
        return None;
    }
    // A jump that ptxas spells as a call of a label; calls of functions come back.
    let jumps = opcode.starts_with("BRA") || opcode.starts_with("BRX") || operands.contains("`(.L_");
    let jumps = jumps && !["BSSY", "RET"].contains(&super::stem(opcode));
    let conditional = text.starts_with('@') || jumps && operands.trim_start().find("`(").is_some_and(|at| at > 0);
    Some(Instruction {
        address,
        text: text.into(),
        opcode: opcode.into(),
        class: Class::of(opcode),
        conditional,
        targets: if jumps { labels(operands) } else { vec![] },
    })
}

/// `` `(.L_x_1) `` of a branch, or the list behind one that is computed: `(*"BRANCH_TARGETS .L_x_1,.L_x_2"*)`.
fn labels(operands: &str) -> Vec<String> {
    if let Some((_, rest)) = operands.split_once("`(") {
        return rest.split_once(')').map(|(label, _)| vec![label.into()]).unwrap_or_default();
    }
    let listed = operands.split_once("BRANCH_TARGETS ").and_then(|(_, rest)| rest.split_once('"'));
    listed.map(|(list, _)| list.split(',').map(|label| label.trim().into()).collect()).unwrap_or_default()
}

impl Function {
    /// The index of the instruction behind a label.
    pub fn place(&self, label: &str) -> Option<usize> {
        self.labels.iter().find(|(name, _)| name == label).map(|(_, place)| *place)
    }

    /// Without the endless branch and the padding behind the last instruction that can run.
    pub fn without_padding(&self) -> &[Instruction] {
        let is_padding = |one: &Instruction| one.opcode == "NOP" || self.is_endless(one);
        let last = self.instructions.iter().rposition(|one| !is_padding(one));
        &self.instructions[..last.map_or(0, |last| last + 1)]
    }

    /// A branch to itself.
    fn is_endless(&self, one: &Instruction) -> bool {
        let to = one.targets.first().and_then(|label| self.place(label)).and_then(|place| self.instructions.get(place));
        !one.conditional && to.is_some_and(|to| to.address == one.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_functions() {
        let text = "\t.section\t.text.one,\"ax\",@progbits\none:\n /*0000*/ EXIT ;\n.L_x_0:\n /*0010*/ BRA `(.L_x_0);\n \
                    /*0020*/ NOP;\n\t.section\t.nv.info,\"\",@\n\t.section\t.text.two,\"ax\",@progbits\n /*0000*/ EXIT ;";
        let listing = Listing::read(text).unwrap();
        let names: Vec<&str> = listing.functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!((listing.functions[0].instructions.len(), listing.functions[0].without_padding().len()), (3, 1));
    }

    #[test]
    fn branches_name_where_they_go() {
        let read = |line: &str| instruction(line).map(|one| (one.opcode, one.conditional, one.targets)).unwrap();
        let to = |labels: &[&str]| labels.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(read("/*0de0*/ @!P0 BRA P1, `(.L_x_1) ;"), ("BRA".into(), true, to(&[".L_x_1"])));
        assert_eq!(read("/*0de0*/ BRA.DIV UR4, `(.L_x_1) ;"), ("BRA.DIV".into(), true, to(&[".L_x_1"])));
        assert_eq!(read("/*0de0*/ BRA `(.L_x_1) ;"), ("BRA".into(), false, to(&[".L_x_1"])));
        assert_eq!(read("/*0de0*/ @P0 CALL.REL.NOINC `(.L_x_7) ;"), ("CALL.REL.NOINC".into(), true, to(&[".L_x_7"])));
        assert_eq!(read("/*0de0*/ CALL.REL.NOINC `($div) ;"), ("CALL.REL.NOINC".into(), false, vec![]));
        assert_eq!(read("/*0de0*/ BSSY B0, `(.L_x_9) ;"), ("BSSY".into(), false, vec![]));
        let computed = "/*0de0*/ BRX R2 -0x30 (*\"BRANCH_TARGETS .L_x_1,.L_x_2\"*) ;";
        assert_eq!(read(computed), ("BRX".into(), false, to(&[".L_x_1", ".L_x_2"])));
    }
}
