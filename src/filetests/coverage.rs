//! Which forms and which checks the cases cover, and what the forms are fed.

use super::case::{Case, Kind};
use super::expectation;
use super::verdict::kernel;
use emulator::{OperandSets, Special, checks, needed_sets, operand_sets, special_types};
use ptx::Op;
use ptx::forms::{Control, FORMS};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Forms that no `run` case can feed, and why.
const NEVER_FED: &[(Op, &str)] =
    &[(Op::Control(Control::Trap), "a kernel that executes it has no results; `fail` cases hold it")];

/// Cases per form and per check.
pub struct Coverage {
    pub forms: Vec<FormCoverage>,
    /// Check, and how many `fail` or `lint` cases expect it.
    pub checks: Vec<(&'static str, usize)>,
    /// How many `run` cases there are.
    pub run_cases: usize,
    /// Cases that cannot be run, and why.
    pub broken: Vec<String>,
}

/// What the `run` cases do with a row of the table.
pub struct FormCoverage {
    pub name: &'static str,
    pub spelling: String,
    /// None for forms that only parse.
    pub executed: Option<Executed>,
}

pub struct Executed {
    /// Cases that contain the form.
    pub cases: usize,
    /// Distinct operand sets that the lanes of one case fed to it, where that is most, counted up to
    /// [`emulator::ENOUGH`]; and how many it needs.
    pub sets: usize,
    pub needed: usize,
    /// Special numbers that it was never fed, with their type.
    pub missing: Vec<String>,
    /// Why it needs fewer sets than others.
    pub reason: Option<&'static str>,
}

impl Coverage {
    /// Runs every `run` case once, to see what its instructions are fed.
    pub fn of(cases: &[Case]) -> Coverage {
        let run: Vec<&Case> = cases.iter().filter(|case| case.kind == Kind::Run).collect();
        let mut seen: BTreeMap<*const ptx::Form, usize> = BTreeMap::new();
        for case in &run {
            forms_of(case).into_iter().for_each(|form| *seen.entry(form).or_default() += 1);
        }
        let fed: Vec<_> = run.par_iter().map(|case| feed(case)).collect();
        let broken = fed.iter().filter_map(|one| one.as_ref().err().cloned()).collect();
        let fed: Vec<OperandSets> = fed.into_iter().flatten().collect();
        let count = |form: &ptx::Form| seen.get(&std::ptr::from_ref(form)).copied().unwrap_or(0);
        let row = |form: &ptx::Form| FormCoverage {
            name: form.name,
            spelling: form.spelling.to_string(),
            executed: emulator::executes(form).then(|| Executed::of(form, count(form), &fed)),
        };
        let expecting = |name: &str| cases.iter().filter(|case| expects(case, name)).count();
        let checks = checks::ALL.iter().map(|check| (check.name, expecting(check.name))).collect();
        Coverage { forms: FORMS.iter().map(row).collect(), checks, run_cases: run.len(), broken }
    }

    /// Forms and checks that no case covers, and forms that are fed too little.
    pub fn gaps(&self) -> Vec<String> {
        let forms = self.forms.iter().flat_map(FormCoverage::gaps);
        let checks = self.checks.iter().filter(|(_, cases)| *cases == 0);
        let checks = checks.map(|(name, _)| format!("check {name} has no `fail` or `lint` case"));
        self.broken.iter().cloned().chain(forms).chain(checks).collect()
    }

    /// How many executed forms are fed fewer operand sets than they need.
    pub fn hungry(&self) -> usize {
        let executed = self.forms.iter().filter_map(|form| form.executed.as_ref());
        executed.filter(|one| one.sets < one.needed).count()
    }
}

impl Executed {
    /// `fed`: by each case.
    fn of(form: &ptx::Form, cases: usize, fed: &[OperandSets]) -> Executed {
        let never = NEVER_FED.iter().find(|(op, _)| *op == form.op).map(|(_, reason)| *reason);
        let needed = if never.is_some() { 0 } else { needed_sets(form) };
        let reason = never.or((needed == 1).then_some("reads no register and no memory"));
        let sets = fed.iter().map(|sets| sets.count(form.op)).max().unwrap_or(0);
        Executed { cases, sets, needed, missing: missing(form, fed), reason }
    }
}

impl FormCoverage {
    fn gaps(&self) -> Vec<String> {
        let FormCoverage { name, spelling, executed } = self;
        let Some(Executed { cases, sets, needed, missing, .. }) = executed else { return vec![] };
        let form = format!("form {name} ({spelling})");
        if *cases == 0 {
            return vec![format!("{form} has no `run` case")];
        }
        let hungry = (sets < needed)
            .then(|| format!("{form} is fed {sets} operand sets by one case at most: expected {needed}"));
        let plain = (!missing.is_empty()).then(|| format!("{form} is never fed {}", missing.join("; ")));
        hungry.into_iter().chain(plain).collect()
    }
}

/// What a case feeds to its instructions.
fn feed(case: &Case) -> Result<OperandSets, String> {
    let kernel = kernel(&case.name, &case.text);
    let sets = kernel.and_then(|kernel| operand_sets(&kernel).map_err(|error| error.to_string()));
    sets.map_err(|error| format!("case {} does not run: {error}", case.name))
}

/// Special numbers that a form computes with and was never fed, by type.
fn missing(form: &ptx::Form, fed: &[OperandSets]) -> Vec<String> {
    let of_type = |ty: ptx::Type| {
        let nobody_feeds = |special: &Special| fed.iter().all(|sets| sets.missing(form.op, ty).contains(special));
        let all: Vec<String> = Special::of_type(ty).filter(nobody_feeds).map(|special| special.to_string()).collect();
        (!all.is_empty()).then(|| format!("{} of {ty}", all.join(", ")))
    };
    special_types(form).into_iter().filter_map(of_type).collect()
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
    matches!(case.kind, Kind::Fail | Kind::Lint) && expected.iter().any(|one| one.what.contains(&format!("[{check}]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The coverage of one case, whose threads each have their own `%x`.
    fn covered(threads: u32, body: &str) -> Coverage {
        let text = format!(
            "//@ [[launch]]\n//@ grid = [1, 1, 1]\n//@ block = [{threads}, 1, 1]\n//@ args = []\n.version 7.0\n\
             .target sm_80\n.address_size 64\n.visible .entry one()\n{{\n.reg .b32 %x;\n.reg .f32 %f;\n\
             mov.u32 %x, %tid.x;\n{body}\nret;\n}}\n"
        );
        Coverage::of(&[Case { name: "run/one.ptx".into(), path: "one.ptx".into(), kind: Kind::Run, text }])
    }

    fn gaps_of(coverage: &Coverage, spelling: &str) -> Vec<String> {
        let form = coverage.forms.iter().find(|form| form.spelling == spelling);
        form.map(FormCoverage::gaps).unwrap_or_default()
    }

    #[test]
    fn a_form_that_is_fed_too_little_is_a_gap() {
        let negate = "neg(.s16|.s32|.s64)";
        let found = gaps_of(&covered(40, "neg.s32 %x, %x;"), negate);
        assert_eq!(found, [format!("form Negate ({negate}) is fed 40 operand sets by one case at most: expected 64")]);
        assert_eq!(gaps_of(&covered(64, "neg.s32 %x, %x;"), negate), [""; 0]);
        assert_eq!(gaps_of(&covered(64, ""), negate), [format!("form Negate ({negate}) has no `run` case")]);
    }

    #[test]
    fn a_form_that_is_fed_no_special_numbers_is_a_gap() {
        let root = "sqrt.approx{.ftz}.f32";
        let found = gaps_of(&covered(64, "cvt.rn.f32.u32 %f, %x;\nsqrt.approx.f32 %f, %f;"), root);
        let missing = "NaN, inf, -inf, -0, a subnormal of .f32";
        assert_eq!(found, [format!("form SquareRootApproximate ({root}) is never fed {missing}")]);
    }

    #[test]
    fn a_form_that_reads_nothing_needs_one_set_and_says_so() {
        let coverage = covered(1, "membar.gl;");
        let fence = coverage.forms.iter().find(|form| form.spelling == "membar(.cta|.gl|.sys)");
        let fence = fence.and_then(|form| form.executed.as_ref()).expect("a form that is executed");
        assert_eq!((fence.sets, fence.needed, fence.reason), (1, 1, Some("reads no register and no memory")));
    }

    #[test]
    fn a_case_that_does_not_run_is_a_gap() {
        let coverage = covered(1, "nonsense;");
        assert_eq!(coverage.broken.len(), 1);
        assert!(coverage.gaps()[0].starts_with("case run/one.ptx does not run: "), "{}", coverage.gaps()[0]);
    }
}
