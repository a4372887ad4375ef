//! `explain`: what a finding means.

use super::Exit;
use emulator::checks::{self, Check};
use ptx::forms::FORMS;

/// What a check finds, with an example and the fix
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash explain missing-wait\n  veriflash explain            lists the checks\n  veriflash explain forms      lists the instruction forms that veriflash knows"
)]
pub struct Arguments {
    /// The check, as it stands in `error[CHECK]`; `forms` lists the instruction table
    check: Option<String>,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    match arguments.check.as_deref() {
        None => checks::ALL.iter().for_each(|check| println!("{:<22} {}", check.name, summary(check))),
        Some("forms") => list_forms(),
        Some(name) => match Check::find(name) {
            Some(check) => println!("{}", check.page()),
            None => {
                let names: Vec<_> = checks::ALL.iter().map(|check| check.name).collect();
                anyhow::bail!("no check is called `{name}`: expected one of {}", names.join(", "));
            }
        },
    }
    Ok(Exit::Clean)
}

/// The first sentence of the page.
fn summary(check: &Check) -> String {
    let page = check.page();
    let text = page.lines().skip(2).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    text.split_inclusive(". ").next().unwrap_or_default().trim().to_string()
}

fn list_forms() {
    for form in FORMS.iter() {
        let runs = if emulator::executes(form) { "" } else { "   (parsed, not executed)" };
        println!("{} {}{runs}", form.spelling, form.operands.text());
    }
}
