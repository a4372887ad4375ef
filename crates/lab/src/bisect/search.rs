//! Runs the kernel as it was given, then with one thing changed at a time, and picks the smallest change that matters.

use std::collections::BTreeSet;

use launch::Finding;

use super::axes::{self, Axis, Variation};
use super::bench::Bench;
use super::setup::{Between, Schedule, Setup};
use super::subject::Subject;
use super::symptom::{Symptom, Trial};

/// Hears how far a search is.
pub trait Spectator: Sync {
    /// So many more trials are to come.
    fn more(&self, trials: usize);

    fn tried(&self);
}

/// What a change did to the failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// It fails now, and did not before.
    On(Symptom),
    /// It does not fail any more.
    Off,
    /// The failure is gone, and others that were there before stay.
    Fewer(Symptom),
    /// It fails as before, or in another way.
    Fails(Symptom),
    /// It does not fail, as before.
    Fine,
    /// It could not be tried.
    Untried(String),
}

impl Effect {
    pub fn word(&self) -> &'static str {
        match self {
            Effect::On(_) => "FAILS",
            Effect::Off => "DOES NOT FAIL",
            Effect::Fewer(_) => "only others stay",
            Effect::Fails(_) => "fails",
            Effect::Fine => "does not fail",
            Effect::Untried(_) => "not tried",
        }
    }

    /// How it fails with the change.
    pub fn symptom(&self) -> Option<&Symptom> {
        match self {
            Effect::On(symptom) | Effect::Fewer(symptom) | Effect::Fails(symptom) => Some(symptom),
            Effect::Off | Effect::Fine | Effect::Untried(_) => None,
        }
    }
}

/// One change and its effect.
#[derive(Clone, Debug)]
pub struct Tried {
    pub axis: Axis,
    pub what: String,
    pub effect: Effect,
}

impl Tried {
    /// What the change brought to light, or caused.
    pub fn finding(&self) -> Option<&Finding> {
        self.effect.symptom().and_then(Symptom::finding)
    }
}

/// All that a search showed.
#[derive(Clone, Debug, Default)]
pub struct Bisection {
    /// How the kernel fails as it was given.
    pub given: Vec<Symptom>,
    /// What was tried to make a kernel fail that does not.
    pub provoked: Vec<Tried>,
    /// What was tried to make it stop.
    pub cured: Vec<Tried>,
    /// The failure that was looked into.
    pub symptom: Option<Symptom>,
}

impl Bisection {
    /// The smallest change that turns the failure on, where it was not given.
    pub fn on(&self) -> Option<&Tried> {
        smallest(&self.provoked, |effect| matches!(effect, Effect::On(_)))
    }

    /// The smallest change that turns it off.
    pub fn off(&self) -> Option<&Tried> {
        let off = smallest(&self.cured, |effect| *effect == Effect::Off);
        off.or_else(|| smallest(&self.cured, |effect| matches!(effect, Effect::Fewer(_))))
    }
}

fn smallest(all: &[Tried], has: impl Fn(&Effect) -> bool) -> Option<&Tried> {
    all.iter().filter(|tried| tried.axis.is_telling() && has(&tried.effect)).min_by_key(|tried| tried.axis)
}

/// Looks for the smallest change that turns the failure of a kernel on or off. An error says why it cannot run at all.
pub fn bisect(subject: &Subject, bench: &dyn Bench, spectator: &dyn Spectator) -> Result<Bisection, String> {
    spectator.more(1);
    let mut found = Bisection { given: bench.trial(&subject.setup)?, ..Bisection::default() };
    spectator.tried();
    let search = Search { subject, bench, spectator };
    let failing = match found.given.is_empty() {
        false => (subject.setup.clone(), found.given.clone()),
        true => match search.provoke(&mut found) {
            Some(failing) => failing,
            None => return Ok(found),
        },
    };
    search.cure(&mut found, failing.0, &failing.1);
    Ok(found)
}

struct Search<'a> {
    subject: &'a Subject,
    bench: &'a dyn Bench,
    spectator: &'a dyn Spectator,
}

impl Search<'_> {
    fn trials(&self, variations: &[Variation]) -> Vec<Trial> {
        self.spectator.more(variations.len());
        let setups: Vec<&Setup> = variations.iter().map(|variation| &variation.setup).collect();
        self.bench.trials(&setups, &|| self.spectator.tried())
    }

    /// What makes it fail; the smallest such change is the failure from then on.
    fn provoke(&self, found: &mut Bisection) -> Option<(Setup, Vec<Symptom>)> {
        let variations = axes::provoking(self.subject, self.bench);
        let trials = self.trials(&variations);
        let mut failing: Option<(Axis, Setup, Vec<Symptom>)> = None;
        for (variation, trial) in variations.into_iter().zip(trials) {
            let Variation { axis, what, setup } = variation;
            let effect = match &trial {
                Err(why) => Effect::Untried(why.clone()),
                Ok(symptoms) => symptoms.first().map_or(Effect::Fine, |first| Effect::On(first.clone())),
            };
            found.provoked.push(Tried { axis, what, effect });
            if let Ok(symptoms) = trial
                && !symptoms.is_empty()
                && failing.as_ref().is_none_or(|(smaller, ..)| axis < *smaller)
            {
                failing = Some((axis, setup, symptoms));
            }
        }
        failing.map(|(_, setup, symptoms)| (setup, symptoms))
    }

    fn cure(&self, found: &mut Bisection, failing: Setup, symptoms: &[Symptom]) {
        let Some(symptom) = symptoms.first() else { return };
        let failing = quickest(failing, symptom);
        self.try_all(found, axes::curing(self.subject, &failing, symptom, self.bench), symptoms);
        // Where the module's variables are innocent, it is a buffer.
        let of_state = |tried: &&Tried| tried.axis == Axis::State;
        let innocent = found.cured.iter().find(of_state).is_some_and(|tried| matches!(tried.effect, Effect::Fails(_)));
        let one_stream = failing.streams == 1 && failing.between == Between::Nothing;
        let variables = super::bench::has_variables(&failing.kernel) && one_stream;
        if innocent && variables {
            self.try_all(found, axes::buffers(&failing), symptoms);
        }
        found.symptom = Some(symptom.clone());
    }

    fn try_all(&self, found: &mut Bisection, variations: Vec<Variation>, before: &[Symptom]) {
        let trials = self.trials(&variations);
        for (Variation { axis, what, .. }, trial) in variations.into_iter().zip(trials) {
            found.cured.push(Tried { axis, what, effect: effect(trial, before) });
        }
    }
}

fn effect(trial: Trial, before: &[Symptom]) -> Effect {
    let after = match trial {
        Err(why) => return Effect::Untried(why),
        Ok(after) => after,
    };
    let Some(first) = after.first() else { return Effect::Off };
    let keys = |symptoms: &[Symptom]| symptoms.iter().map(key).collect::<BTreeSet<_>>();
    let (old, new) = (keys(before), keys(&after));
    let gone = before.first().is_some_and(|symptom| !new.contains(&key(symptom)));
    if gone && new.is_subset(&old) { Effect::Fewer(first.clone()) } else { Effect::Fails(first.clone()) }
}

fn key(symptom: &Symptom) -> (String, u32, u32) {
    let (what, first, second) = symptom.key();
    (what.to_string(), first, second)
}

/// The schedule that failed goes first: whatever still fails ends there.
fn quickest(mut setup: Setup, symptom: &Symptom) -> Setup {
    if let Some(finding) = symptom.finding() {
        let failed = Schedule { seed: finding.seed, policy: finding.policy };
        setup.schedules.sort_by_key(|schedule| *schedule != failed);
    }
    setup
}
