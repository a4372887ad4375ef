//! Verdicts as people read them: operators by verdicts, then what nobody noticed, one by one.

use super::Judged;
use emulator::mutate::{Catch, Mutant, Operator, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The columns.
const COLUMNS: [&str; 4] = ["caught", "equivalent", "not executed", "missed"];

/// Where more than this share of the mutants is called equivalent, each is listed.
const LARGE_SHARE: f64 = 0.15;

/// How many mutants have each verdict, in the order of the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub [usize; 4]);

impl Tally {
    pub fn of<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Tally {
        let mut tally = Tally::default();
        verdicts.for_each(|verdict| tally.add(verdict));
        tally
    }

    fn add(&mut self, verdict: &Verdict) {
        let column = COLUMNS.iter().position(|column| *column == verdict.word());
        self.0[column.unwrap_or_default()] += 1;
    }

    pub fn total(self) -> usize {
        self.0.iter().sum()
    }

    /// Of those that ran and make a difference, the share that was caught.
    pub fn score(self) -> Option<f64> {
        let [caught, _, _, missed] = self.0;
        share(caught, caught + missed)
    }

    /// Of those that ran, the share that is called equivalent.
    pub fn equivalent(self) -> Option<f64> {
        let [caught, equivalent, _, missed] = self.0;
        share(equivalent, caught + equivalent + missed)
    }

    /// Are there so many of these that somebody should look at each?
    fn is_suspicious(self) -> bool {
        self.equivalent().is_some_and(|share| share > LARGE_SHARE)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What caught how many.
pub fn catchers<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> BTreeMap<&'static str, usize> {
    let mut all = BTreeMap::new();
    for verdict in verdicts {
        if let Verdict::Caught(catch) = verdict {
            *all.entry(catch.by()).or_default() += 1;
        }
    }
    all
}

/// A table for each kernel, and one for all of them.
pub fn report(judged: &[Judged], list: bool) -> String {
    let mut text = String::new();
    let total = Tally::of(judged.iter().flat_map(|one| &one.mutants).map(|(_, verdict)| verdict));
    judged.iter().for_each(|one| text.push_str(&of_kernel(one, list, total.is_suspicious())));
    if judged.len() > 1 {
        let all: Vec<&(Mutant, Verdict)> = judged.iter().flat_map(|one| &one.mutants).collect();
        text.push_str(&format!("all {} kernels\n{}", judged.len(), rows(&all)));
    }
    text
}

fn of_kernel(judged: &Judged, list: bool, suspicious: bool) -> String {
    let all: Vec<&(Mutant, Verdict)> = judged.mutants.iter().collect();
    if all.is_empty() {
        return format!("{}\n{}  nothing synchronises\n\n", judged.names.join(", "), own(judged));
    }
    let large = suspicious || Tally::of(all.iter().map(|(_, verdict)| verdict)).is_suspicious();
    let shown = |verdict: &Verdict| match verdict {
        Verdict::Missed(_) | Verdict::NotExecuted => true,
        Verdict::Equivalent(_) => list || large,
        Verdict::Caught(_) => list,
    };
    let mut text = format!("{}\n{}{}", judged.names.join(", "), own(judged), rows(&all));
    for (mutant, verdict) in all.iter().filter(|(_, verdict)| shown(verdict)) {
        let (word, file, line) = (verdict.word(), &judged.file, mutant.line);
        let what = format!("{}: `{}`", mutant.operator.name(), mutant.text);
        text.push_str(&format!("  {word:<12}  {file}:{line}: {what}{}\n", because(verdict)));
    }
    text + "\n"
}

/// What is wrong with the kernel itself, which changes what its mutants tell.
fn own(judged: &Judged) -> String {
    let findings = judged.findings.iter().map(|finding| {
        let (severity, check, line) = (finding.severity.word(), finding.check, finding.primary().line);
        let then = if ["deadlock", "trap"].contains(&check) {
            "its mutants cannot be judged"
        } else {
            "mutants are judged by what is new"
        };
        format!("  note: the kernel itself has {severity}[{check}] at line {line}: {then}\n")
    });
    let failures =
        judged.failures.iter().map(|failure| format!("  note: results of the kernel itself are wrong: {failure}\n"));
    findings.chain(failures).collect()
}

/// The reason behind a verdict, after a colon.
fn because(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Caught(Catch::Finding(finding)) => format!(": {} at line {}", finding.check, finding.primary().line),
        Verdict::Caught(Catch::WrongResult { seed }) => format!(": wrong result under seed {seed}"),
        Verdict::Equivalent(proof) => format!(": {proof}"),
        Verdict::Missed(cause) => format!(": {cause}"),
        Verdict::NotExecuted => String::new(),
    }
}

/// Operators by verdicts, their sum, and the shares that follow from it.
fn rows(all: &[&(Mutant, Verdict)]) -> String {
    let mut by_operator: BTreeMap<Operator, Tally> = BTreeMap::new();
    all.iter().for_each(|(mutant, verdict)| by_operator.entry(mutant.operator).or_default().add(verdict));
    let total = Tally::of(all.iter().map(|(_, verdict)| verdict));
    let head = COLUMNS.map(|column| format!("  {column:>12}")).concat();
    let mut text = format!("  {:<28}{head}\n", "operator");
    let lines = by_operator.iter().map(|(operator, tally)| (operator.name(), *tally));
    for (name, tally) in lines.chain([("all", total)]) {
        let cells = tally.0.map(|count| format!("  {count:>12}")).concat();
        text.push_str(&format!("  {name:<28}{cells}\n"));
    }
    let by: Vec<String> = catchers(all.iter().map(|(_, verdict)| verdict))
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let percent = |share: Option<f64>| share.map_or("none ran".into(), |share| format!("{:.1} %", share * 100.0));
    let _ = writeln!(text, "  caught by: {}", if by.is_empty() { "nobody".into() } else { by.join(", ") });
    let _ = writeln!(
        text,
        "  {} mutants; caught of those not equivalent: {}; called equivalent: {}",
        total.total(),
        percent(total.score()),
        percent(total.equivalent())
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::mutate::{Cause, Proof};

    #[test]
    fn shares_leave_out_what_did_not_run() {
        let caught = Verdict::Caught(Catch::WrongResult { seed: 0 });
        let missed = Verdict::Missed(Cause::Blind("nothing watches"));
        let verdicts = [caught.clone(), caught.clone(), caught, missed, Verdict::Equivalent(Proof::Stronger)];
        let tally = Tally::of(verdicts.iter().chain([&Verdict::NotExecuted]));
        assert_eq!((tally.score(), tally.equivalent(), tally.total()), (Some(0.75), Some(0.2), 6));
        assert_eq!(Tally::default().score(), None);
    }
}
