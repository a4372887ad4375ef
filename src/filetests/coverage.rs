//! Which forms and which checks the cases cover.

use super::case::{Case, Kind};
use super::expectation;
use emulator::checks;
use ptx::forms::FORMS;
use std::collections::BTreeMap;

/// Cases per form and per check.
pub struct Coverage {
    /// Row of the table, its spelling, and how many `run` cases contain it; none for forms that only parse.
    pub forms: Vec<(&'static str, String, Option<usize>)>,
    /// Check, and how many `fail` cases expect it.
    pub checks: Vec<(&'static str, usize)>,
}

impl Coverage {
    pub fn of(cases: &[Case]) -> Coverage {
        let mut seen: BTreeMap<*const ptx::Form, usize> = BTreeMap::new();
        for case in cases.iter().filter(|case| case.kind == Kind::Run) {
            forms_of(case).into_iter().for_each(|form| *seen.entry(form).or_default() += 1);
        }
        let count = |form: &ptx::Form| seen.get(&std::ptr::from_ref(form)).copied().unwrap_or(0);
        let row = |form: &ptx::Form| emulator::executes(form).then(|| count(form));
        let forms = FORMS.iter().map(|form| (form.name, form.spelling.to_string(), row(form))).collect();
        let expecting = |name: &str| cases.iter().filter(|case| expects(case, name)).count();
        let checks = checks::ALL.iter().map(|check| (check.name, expecting(check.name))).collect();
        Coverage { forms, checks }
    }

    /// Forms and checks that no case covers.
    pub fn gaps(&self) -> Vec<String> {
        let forms = self.forms.iter().filter(|(_, _, cases)| *cases == Some(0));
        let forms = forms.map(|(name, spelling, _)| format!("form {name} ({spelling}) has no `run` case"));
        let checks = self.checks.iter().filter(|(_, cases)| *cases == 0);
        forms.chain(checks.map(|(name, _)| format!("check {name} has no `fail` case"))).collect()
    }
}

/// The forms a case contains, each once.
fn forms_of(case: &Case) -> Vec<*const ptx::Form> {
    let Ok(parsed) = ptx::parse(&ptx::Source::new(&case.name, &case.text)) else { return vec![] };
    let instructions = parsed.module.functions.iter().flat_map(|function| function.instructions());
    let mut forms: Vec<_> = instructions.map(|(_, one)| std::ptr::from_ref(one.form)).collect();
    forms.sort();
    forms.dedup();
    forms
}

fn expects(case: &Case, check: &str) -> bool {
    let expected = expectation::read(&case.text).unwrap_or_default();
    case.kind == Kind::Fail && expected.iter().any(|one| one.what.contains(&format!("[{check}]")))
}
