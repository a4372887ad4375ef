//! Two packs: what is the same, what changed, and whether anything got worse.
//!
//! Nothing in either pack is believed before [`verify`] has accepted it.

mod circumstances;
mod figures;
mod speed;

use std::path::Path;

use crate::figures::Subject;
use crate::outcome::{Outcome, State};
use crate::pack::manifest::Manifest;
use crate::pack::{Files, write};
use crate::stages::{Evidence, Stage, counted};
use crate::{Error, Silent, Toolbox, VerifyOptions, verify};

pub use circumstances::Circumstance;
pub use figures::Change;
pub use speed::{Duel, Speed};

/// How the second pack stands to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// Neither good nor bad by itself.
    Changed,
    Better,
    Worse,
    /// The two cannot be compared in this.
    Undecided,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Changed => "changed",
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
            Verdict::Undecided => "undecided",
        }
    }
}

/// A kernel of both packs, or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPair {
    pub left: Option<Subject>,
    pub right: Option<Subject>,
}

impl KernelPair {
    pub fn name(&self) -> &str {
        self.left.as_ref().or(self.right.as_ref()).map_or("", |subject| &subject.kernel)
    }

    /// What became of it.
    pub fn sentence(&self) -> &'static str {
        match (&self.left, &self.right) {
            (Some(left), Some(right)) => match (left.module == right.module, left.recipe == right.recipe) {
                (true, true) => "same",
                (true, false) => "same module, other recipe",
                (false, true) => "other module, same recipe",
                (false, false) => "other module, other recipe",
            },
            (Some(_), None) => "only in the first",
            (None, _) => "only in the second",
        }
    }

    /// The names in both packs.
    fn both(&self) -> Option<(&str, &str)> {
        Some((&self.left.as_ref()?.kernel, &self.right.as_ref()?.kernel))
    }
}

/// One stage of both packs.
#[derive(Clone, Debug, PartialEq)]
pub struct StagePair {
    pub left: Outcome,
    pub right: Outcome,
}

impl StagePair {
    pub fn stage(&self) -> Stage {
        self.left.stage()
    }

    /// A stage that passed and does not any more is worse, whatever it does instead: silence is no pass.
    pub fn verdict(&self) -> Verdict {
        match (self.left.state(), self.right.state()) {
            (State::Pass, State::Pass) if self.left.figures() != self.right.figures() => Verdict::Changed,
            (State::Pass, State::Pass) | (State::Fail { .. }, State::Fail { .. }) => Verdict::Same,
            (_, State::Pass) => Verdict::Better,
            (State::Pass, _) => Verdict::Worse,
            (State::NotRun { .. }, State::NotRun { .. }) | (State::Ambiguous { .. }, State::Ambiguous { .. }) => {
                Verdict::Same
            }
            // What one of them has measured, if only to find nothing out, the other has not.
            _ => Verdict::Undecided,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub kernels: Vec<KernelPair>,
    /// In the order of [`Stage::ALL`].
    pub stages: Vec<StagePair>,
    /// Figures that differ.
    pub changes: Vec<Change>,
    /// Every problem that was timed, against every peer.
    pub speeds: Vec<Speed>,
    /// Settings and machines, as far as they differ.
    pub circumstances: Vec<Circumstance>,
}

/// An error means that one of them is no pack, or is broken.
pub fn compare(left: &Path, right: &Path) -> Result<Comparison, Error> {
    let (left, right) = (Contents::read(left)?, Contents::read(right)?);
    let kernels = pairs(left.subjects(), right.subjects());
    let stages = left.outcomes.iter().zip(&right.outcomes);
    Ok(Comparison {
        stages: stages.map(|(left, right)| StagePair { left: left.clone(), right: right.clone() }).collect(),
        changes: figures::changes(&kernels, &left.evidence, &right.evidence),
        speeds: speed::speeds(&left.evidence.bench, &right.evidence.bench),
        circumstances: circumstances::between(&left.manifest, &right.manifest),
        kernels,
    })
}

/// A pack that was accepted.
struct Contents {
    manifest: Manifest,
    evidence: Evidence,
    outcomes: Vec<Outcome>,
}

impl Contents {
    fn read(folder: &Path) -> Result<Contents, Error> {
        let options = VerifyOptions { rerun: false, tools: Toolbox::none(), progress: &Silent };
        let verification = verify(folder, &options)?;
        let broken = |why: String| Error::BrokenPack { path: folder.into(), why };
        if let Some(why) = verification.fault() {
            return Err(broken(why.into()));
        }
        let files: Files = write::read(folder)?;
        let text = |path: &str| std::str::from_utf8(files.get(path)?).ok();
        let manifest = Manifest::read(&files).map_err(broken)?;
        let evidence = Evidence::read(text).map_err(broken)?;
        Ok(Contents { manifest, evidence, outcomes: verification.outcomes })
    }

    fn subjects(&self) -> Vec<Subject> {
        self.manifest.predicate.kernels.iter().map(|claimed| claimed.subject.clone()).collect()
    }
}

/// By name; where each pack has one kernel, those two.
fn pairs(left: Vec<Subject>, mut right: Vec<Subject>) -> Vec<KernelPair> {
    if let ([one], [other]) = (&left[..], &right[..]) {
        return vec![KernelPair { left: Some(one.clone()), right: Some(other.clone()) }];
    }
    let mut pairs = Vec::new();
    for subject in left {
        let place = right.iter().position(|other| other.kernel == subject.kernel);
        pairs.push(KernelPair { left: Some(subject), right: place.map(|place| right.remove(place)) });
    }
    pairs.extend(right.into_iter().map(|subject| KernelPair { left: None, right: Some(subject) }));
    pairs
}

impl Comparison {
    /// Worse if anything is; undecided if anything could not be compared; better or changed if something is.
    pub fn verdict(&self) -> Verdict {
        let stages = self.stages.iter().map(StagePair::verdict);
        let changes = self.changes.iter().map(|change| change.verdict);
        let verdicts: Vec<Verdict> =
            stages.chain(changes).chain(self.speeds.iter().map(|speed| speed.verdict)).collect();
        let lost = self.kernels.iter().any(|pair| pair.right.is_none());
        let has = |verdict: Verdict| verdicts.contains(&verdict);
        match () {
            // Stages of other kernels say nothing about these.
            () if !self.has_common_kernel() => Verdict::Undecided,
            () if has(Verdict::Worse) => Verdict::Worse,
            () if has(Verdict::Undecided) || lost => Verdict::Undecided,
            () if has(Verdict::Better) => Verdict::Better,
            () if has(Verdict::Changed) || self.kernels.iter().any(|pair| pair.sentence() != "same") => {
                Verdict::Changed
            }
            () => Verdict::Same,
        }
    }

    fn has_common_kernel(&self) -> bool {
        self.kernels.iter().any(|pair| pair.both().is_some())
    }

    /// The verdict with its reason.
    pub fn sentence(&self) -> String {
        let of_stages = |verdict| self.stages.iter().filter(|pair| pair.verdict() == verdict).count();
        let of_figures = |verdict| self.changes.iter().filter(|change| change.verdict == verdict).count();
        let of_speeds = |verdict| self.speeds.iter().filter(|speed| speed.verdict == verdict).count();
        let tally = |verdict| {
            let all = [(of_stages(verdict), "stage"), (of_figures(verdict), "figure"), (of_speeds(verdict), "speed")];
            let some = all.into_iter().filter(|(count, _)| *count > 0);
            some.map(|(count, what)| counted(count, what)).collect::<Vec<_>>().join(" and ")
        };
        match self.verdict() {
            Verdict::Worse => format!("WORSE: {} got worse", tally(Verdict::Worse)),
            Verdict::Undecided if !self.has_common_kernel() => "NOT DECIDED: the packs have no kernel in common".into(),
            Verdict::Undecided if self.kernels.iter().any(|pair| pair.right.is_none()) => {
                "NOT DECIDED: the second pack lacks a kernel of the first".into()
            }
            Verdict::Undecided => format!("NOT DECIDED: {} cannot be compared", tally(Verdict::Undecided)),
            Verdict::Better => format!("better: {} got better, nothing got worse", tally(Verdict::Better)),
            Verdict::Changed => "no worse: something changed, nothing got worse".into(),
            Verdict::Same => "same: kernels, stages and figures".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(kernel: &str, module: &str) -> Subject {
        Subject { kernel: kernel.into(), module: module.into(), recipe: "r".into() }
    }

    #[test]
    fn kernels_are_paired_by_name_and_single_ones_anyhow() {
        let single = pairs(vec![subject("old", "1")], vec![subject("new", "2")]);
        assert_eq!((single.len(), single[0].sentence()), (1, "other module, same recipe"));
        let several = pairs(vec![subject("a", "1"), subject("b", "2")], vec![subject("c", "3"), subject("b", "2")]);
        let said: Vec<(&str, &str)> = several.iter().map(|pair| (pair.name(), pair.sentence())).collect();
        assert_eq!(said, [("a", "only in the first"), ("b", "same"), ("c", "only in the second")]);
    }

    #[test]
    fn a_kernel_that_is_gone_is_not_decided_and_a_new_one_is_a_change() {
        let of = |kernels: Vec<KernelPair>| {
            Comparison { kernels, stages: vec![], changes: vec![], speeds: vec![], circumstances: vec![] }.verdict()
        };
        let (a, b) = (Some(subject("a", "1")), Some(subject("b", "1")));
        let both = KernelPair { left: a.clone(), right: a };
        assert_eq!(of(vec![both.clone()]), Verdict::Same);
        assert_eq!(of(vec![both.clone(), KernelPair { left: b.clone(), right: None }]), Verdict::Undecided);
        assert_eq!(of(vec![both, KernelPair { left: None, right: b.clone() }]), Verdict::Changed);
        assert_eq!(of(vec![KernelPair { left: None, right: b }]), Verdict::Undecided);
    }

    #[test]
    fn stages_of_other_kernels_are_no_worse() {
        let [a, b] = ["a", "b"].map(|name| Some(subject(name, name)));
        let kernels = vec![KernelPair { left: a.clone(), right: None }, KernelPair { left: None, right: b }];
        let outcome = |state| Outcome::ended(Stage::Parity, state);
        let failed = outcome(State::Fail { why: "wrong".into() });
        let stages = vec![StagePair { left: outcome(State::Pass), right: failed }];
        let of = |kernels: Vec<KernelPair>| {
            let stages = stages.clone();
            Comparison { kernels, stages, changes: vec![], speeds: vec![], circumstances: vec![] }.verdict()
        };
        assert_eq!(of(kernels), Verdict::Undecided);
        assert_eq!(of(vec![KernelPair { left: a.clone(), right: a }]), Verdict::Worse);
    }

    #[test]
    fn evidence_that_is_gone_is_not_the_same() {
        let outcome = |state| Outcome::ended(Stage::Bench, state);
        let [ambiguous, missing] =
            [State::Ambiguous { why: "close".into() }, State::NotRun { why: "no GPU".into() }].map(outcome);
        let verdict =
            |left: &Outcome, right: &Outcome| StagePair { left: left.clone(), right: right.clone() }.verdict();
        assert_eq!(verdict(&ambiguous, &missing), Verdict::Undecided);
        assert_eq!(verdict(&missing, &ambiguous), Verdict::Undecided);
        assert_eq!(verdict(&ambiguous, &ambiguous), Verdict::Same);
        assert_eq!(verdict(&missing, &missing), Verdict::Same);
    }
}
