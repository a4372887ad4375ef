//! `explain`: what a finding means.

use super::Exit;
use super::output::{Format, print_json};
use anyhow::Context;
use emulator::checks::{self, Check};
use ptx::forms::{FORMS, Form};
use serde_json::{Value, json};

/// What a check finds, with an example and the fix; or a page of the documentation
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash explain missing-wait\n  veriflash explain            lists the checks\n  veriflash explain forms      lists the instruction forms that veriflash knows\n  veriflash explain support    docs/support.md: what of them the emulator executes\n  veriflash explain problem    docs/problem.md: the words of `--problem`"
)]
pub struct Arguments {
    /// The check, as it stands in `error[CHECK]`; `forms` lists the instruction table, `support` is the page of what runs,
    /// `problem` the one of the words of `--problem`
    check: Option<String>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    match (arguments.check.as_deref(), arguments.format) {
        (None, Format::Text) => {
            checks::ALL.iter().for_each(|check| println!("{:<22} {}", check.name, check.summary()));
        }
        (None, Format::Json) => print_own(json!({ "checks": list(checks::ALL.iter().copied(), check_json) })),
        (Some("forms"), Format::Text) => list_forms(),
        (Some("forms" | "support"), Format::Json) => print_own(json!({ "forms": list(FORMS.iter(), form_json) })),
        (Some("support"), Format::Text) => print!("{}", veriflash::support::page()),
        (Some("problem"), Format::Text) => print!("{PROBLEM}"),
        (Some("problem"), Format::Json) => print_own(json!({ "page": PROBLEM })),
        (Some(name), Format::Text) => println!("{}", find(name)?.page()),
        (Some(name), Format::Json) => print_own(json!({ "checks": [check_json(find(name)?)] })),
    }
    Ok(Exit::Clean)
}

const PROBLEM: &str = include_str!("../../docs/problem.md");

fn find(name: &str) -> anyhow::Result<&'static Check> {
    let names = || checks::ALL.iter().map(|check| check.name).collect::<Vec<_>>().join(", ");
    let near = || ptx::nearest(name, checks::ALL.iter().map(|check| check.name));
    Check::find(name).with_context(|| match near() {
        Some(near) => format!("no check is called `{name}`: did you mean `{near}`?"),
        None => format!("no check is called `{name}`: expected one of {}", names()),
    })
}

fn print_own(own: Value) {
    print_json("explain", Exit::Clean.verdict(), Exit::Clean, own);
}

fn list<T>(items: impl Iterator<Item = T>, json: impl Fn(T) -> Value) -> Value {
    items.map(json).collect()
}

fn check_json(check: &Check) -> Value {
    json!({
        "check": check.name,
        "severity": check.severity.word(),
        "summary": check.summary(),
        "page": check.page(),
    })
}

fn form_json(form: &Form) -> Value {
    json!({
        "form": form.name,
        "spelling": form.spelling.to_string(),
        "operands": form.operands.text(),
        "ptx": form.version.to_string(),
        "target": form.target.to_string(),
        "executes": emulator::executes(form),
    })
}

/// What the notation of the table means; `crates/ptx/src/forms/operands.rs` has all of it.
const LEGEND: &str = "\
Spelling: {.a|.b} may be left out, (.a|.b) is required, <int> and its like are lists of types.
Operands: d is written, the others are read; T, U, W are the first, second and third type of the spelling, 2T is twice as
wide; [a] is an address, x[4] a vector, {, b} may be left out, imm is a constant.
";

fn list_forms() {
    println!("{LEGEND}");
    for form in FORMS.iter() {
        let runs = if emulator::executes(form) { "" } else { "   (parsed, not executed)" };
        println!("{} {}{runs}", form.spelling, form.operands.text());
    }
}
