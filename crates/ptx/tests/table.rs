//! Every mnemonic that a row allows is accepted: by the verifier, and, where it is installed, by ptxas.

mod support;

use ptx::forms::{FORMS, Form};
use ptx::{Source, Target, Version};
use support::{Picks, instruction, module};

/// Rounds of operands that each mnemonic is tried with.
const ROUNDS: u64 = 4;

fn lines(form: &Form) -> Vec<(String, String)> {
    let examples = form.spelling.examples();
    let rounds = examples.iter().flat_map(|mnemonic| (0..ROUNDS).map(move |round| (mnemonic, round)));
    rounds
        .map(|(mnemonic, round)| (mnemonic.clone(), instruction(form.op, mnemonic, &mut Picks(round * 977))))
        .collect()
}

#[test]
fn every_spelling_of_every_row_verifies() {
    for form in FORMS.iter() {
        let lines: Vec<String> = lines(form).into_iter().map(|(_, line)| line).collect();
        let source = Source::new(format!("{}.ptx", form.name), module("9.0", "sm_90a", &[lines]));
        let parsed = ptx::parse(&source).unwrap_or_else(|errors| panic!("{errors}"));
        let errors = ptx::verify(&parsed);
        assert!(errors.is_empty(), "{}", ptx::Diagnostics { source, all: errors });
    }
}

#[test]
fn a_form_is_refused_before_the_version_it_came_with() {
    let late = FORMS.iter().filter(|form| form.version > Version { major: 6, minor: 0 });
    for form in late {
        let mnemonic = &form.spelling.examples()[0];
        let line = instruction(form.op, mnemonic, &mut Picks(1));
        let parsed = ptx::parse(&Source::new("old.ptx", module("6.0", "sm_90a", &[vec![line]]))).expect("reads well");
        let wanted = format!("needs PTX {} or later", form.version);
        assert!(ptx::verify(&parsed).iter().any(|error| error.message.contains(&wanted)), "{mnemonic}: {wanted}");
    }
}

/// The oldest module that a mnemonic of this form may stand in, as far as ptxas 13 goes back: sm_75.
fn oldest(form: &Form, mnemonic: &str) -> (Version, Target) {
    let chosen =
        ptx::forms::candidates(mnemonic).into_iter().find(|(one, _)| one.op == form.op).expect("in the table").1;
    let needs: Vec<(Version, Target)> = form.spelling.needs(&chosen).collect();
    let specific = form.target.specific;
    let oldest = Target { sm: 75, specific: false };
    let targets = needs.iter().map(|(_, target)| *target).chain([form.target]);
    let target = targets.fold(oldest, |most, one| if one.sm > most.sm { one } else { most });
    let first = match target.sm {
        75 => Version { major: 6, minor: 3 },
        80 => Version { major: 7, minor: 0 },
        86 => Version { major: 7, minor: 1 },
        _ if specific => Version { major: 8, minor: 0 },
        _ => Version { major: 7, minor: 8 },
    };
    let newest = needs.iter().map(|(version, _)| *version).fold(form.version, Ord::max);
    (newest.max(first), Target { specific, ..target })
}

/// `VERIFLASH_PTXAS=/path/to/ptxas cargo test -p ptx --test table -- --ignored`
#[test]
#[ignore = "needs ptxas: set VERIFLASH_PTXAS to its path"]
fn ptxas_accepts_every_spelling_of_every_row() {
    let ptxas = std::env::var("VERIFLASH_PTXAS").expect("VERIFLASH_PTXAS is the path of ptxas");
    let folder = std::env::temp_dir();
    let mut refused = String::new();
    for form in FORMS.iter() {
        let mut modules: Vec<((Version, Target), Vec<String>)> = vec![];
        for (mnemonic, line) in lines(form) {
            let oldest = oldest(form, &mnemonic);
            match modules.iter_mut().find(|(one, _)| *one == oldest) {
                Some((_, lines)) => lines.push(line),
                None => modules.push((oldest, vec![line])),
            }
        }
        for ((version, target), lines) in modules {
            let file = folder.join(format!("veriflash-table-{}-{}-{version}.ptx", std::process::id(), form.name));
            let text = module(&version.to_string(), &target.to_string(), &[lines]);
            std::fs::write(&file, &text).expect("the temporary folder can be written");
            let run = std::process::Command::new(&ptxas)
                .args(["-arch", &target.to_string(), "-o", "/dev/null"])
                .arg(&file)
                .output();
            let run = run.expect("ptxas runs");
            std::fs::remove_file(&file).expect("the file was there");
            if !run.status.success() {
                let errors = String::from_utf8_lossy(&run.stderr);
                let named = errors
                    .lines()
                    .filter(|line| !line.contains("Advisory"))
                    .take(6)
                    .map(|error| format!("{error}\n    {}\n", blamed(&text, error)));
                refused += &format!("{} PTX {version} {target}\n{}", form.name, named.collect::<String>());
            }
        }
    }
    assert!(refused.is_empty(), "{refused}");
}

/// The line of `text` that a message of ptxas is about.
fn blamed<'a>(text: &'a str, error: &str) -> &'a str {
    let number = error.split("line ").nth(1).and_then(|rest| rest.split(';').next()?.parse::<usize>().ok());
    number.and_then(|number| text.lines().nth(number - 1)).unwrap_or("")
}
