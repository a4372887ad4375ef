//! `docs/support.md`: what of the form table the emulator executes, made from the table and from the emulator itself.

use ptx::forms::FORMS;
use ptx::{Form, SPECIAL_REGISTERS};

const HEAD: &str = "\
# What runs

Made by `veriflash explain support`; a test compares. Every instruction form that veriflash knows, by family: whether the
emulator executes it (`runs`) or reads, verifies and prints it (`parses`: running it is exit 3 with its name), the PTX
version and the target that it needs, its spelling and its operands (`veriflash explain forms` says how to read them).
";

/// The whole page.
pub fn page() -> String {
    let mut page = HEAD.to_string();
    let executed = FORMS.iter().filter(|form| emulator::executes(form)).count();
    let parsed = FORMS.len() - executed;
    page += &format!("\n{executed} of {} forms run, {parsed} parse only.\n", FORMS.len());
    page += &refused();
    page += &differences();
    for family in FORMS.chunk_by(|one, next| one.op.family() == next.op.family()) {
        let rows: String = family.iter().map(|form| row(form) + "\n").collect();
        page += &format!("\n## {}\n\n```text\n{rows}```\n", family[0].op.family());
    }
    page
}

fn row(form: &Form) -> String {
    let word = if emulator::executes(form) { "runs" } else { "parses" };
    let (version, target) = (form.version.to_string(), form.target.to_string());
    let row = format!("{word:<6}  {version:<4} {target:<6}  {} {}", form.spelling, form.operands.text());
    row.trim_end().to_string()
}

/// What is refused by its name.
fn refused() -> String {
    let mut list = "\n## Refused, with its name\n\n".to_string();
    for form in FORMS.iter().filter(|form| !emulator::executes(form)) {
        list += &format!("- `{}`\n", form.spelling);
    }
    let unknown = SPECIAL_REGISTERS.iter().filter(|(name, _)| !emulator::knows_special(name));
    let names: Vec<String> = unknown.map(|(name, _)| format!("`{name}`")).collect();
    list + &format!("- special registers: {}\n", names.join(", "))
}

/// What is known not to be equal to the hardware.
fn differences() -> String {
    let mut list = "\n## Not bit-equal to an H200\n\n".to_string();
    for difference in emulator::NOT_BIT_EQUAL {
        let rows = FORMS.iter().filter(|form| difference.ops.contains(&form.op));
        let spellings: Vec<String> = rows.map(|form| format!("`{}`", form.spelling)).collect();
        list += &format!(
            "- {}: {}. Largest difference: {}.\n",
            spellings.join(", "),
            difference.reason,
            difference.largest
        );
    }
    list
}
