//! Packs that were edited, and gates that are asked to look away.

use std::sync::OnceLock;

use launch::hash;
use serde_json::Value;

use super::machine_code::assembled;
use super::workshop::{case, honest};
use super::{Attack, Place, row};
use crate::cost::Cost;
use crate::figures::Figure;
use crate::guard::{Guard, Objection, Objections};
use crate::outcome::{Outcome, State};
use crate::pack::{Files, MANIFEST, SUMS, code_path, squeezed, sums};
use crate::prove::{self, Bench};
use crate::stages::{self, Evidence, Record, Stage, resources};
use crate::verify::{VerifyOptions, verify_without};
use crate::{Gate, Request, SecondRun, Settings, Silent, Toolbox};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "ready-to-merge",     "ready, with the benchmark failing",                     &[Guard::Conjunction], ready_to_merge),
    row(HERE, "edited-afterwards",  "another machine than the one that made the pack",       &[Guard::Hashes],      edited_afterwards),
    row(HERE, "edited-verdict",     "a stage that passed, all hashes made anew",             &[Guard::Derived],     edited_verdict),
    row(HERE, "other-builds-figures", "registers of another build, the rest made to agree",  &[Guard::OneHash],     other_builds_figures),
    row(HERE, "forged-figures",     "smaller errors, the rest made to agree",                &[Guard::Rerun],       forged_figures),
];

const HERE: Place = Place::Pack;

/// Seven stages passed and one failed: nothing makes up for it.
fn ready_to_merge(_: &[Guard]) -> Result<Objections, String> {
    let state = |stage| if stage == Stage::Bench { State::fail("slower than every peer") } else { State::Pass };
    let outcomes = Stage::ALL.map(|stage| Outcome::ended(stage, state(stage)));
    let second = SecondRun::Apart { outcomes: Stage::ALL.map(|stage| Outcome::ended(stage, State::Pass)).into() };
    let result = Gate::publication().judge(&outcomes, &second);
    let failed = result != crate::GateResult::Held;
    Ok(Objections::of(failed.then(|| Objection::fail(Guard::Conjunction, format!("gate publication: {result}")))))
}

/// An honest pack, made once.
struct Honest {
    request: Request,
    evidence: Evidence,
    kernels: Files,
    cost: Cost,
}

fn pack() -> Result<&'static Honest, String> {
    static PACK: OnceLock<Result<Honest, String>> = OnceLock::new();
    PACK.get_or_init(make).as_ref().map_err(String::clone)
}

fn make() -> Result<Honest, String> {
    let mut request = Request::new(vec![case(&honest()?)?], "pack");
    request.settings = Settings { seeds: vec![0], rounds: 1, mutation_budget: 0, ..Settings::default() };
    request.tools = Toolbox::none();
    let bench = Bench::emulated(&request.cases, &request.settings, &Silent);
    let gathered = bench.gather(&request.tools, None).map_err(|error| error.to_string())?;
    let (kernels, cost) = (gathered.kernel_files(&request), gathered.cost.clone());
    Ok(Honest { evidence: gathered.evidence, kernels, cost, request })
}

/// Who finds what is wrong with a pack: the check without which it would be accepted.
fn objections(files: &Files) -> Result<Objections, String> {
    let options = VerifyOptions { rerun: true, tools: Toolbox::none(), progress: &Silent };
    let verified = |off: &[Guard]| verify_without(files, &options, off).map_err(|error| error.to_string());
    let honest = verified(&[])?;
    let Some(why) = honest.fault() else { return Ok(Objections::of([])) };
    for guard in [Guard::Hashes, Guard::Derived, Guard::OneHash, Guard::Rerun] {
        if verified(&[guard])?.accepted() {
            return Ok(Objections::of([Objection::fail(guard, why)]));
        }
    }
    Err(format!("the pack would be refused without any one check: {why}"))
}

/// A pack of this evidence in which everything agrees.
fn consistent(evidence: &Evidence, more: Files) -> Result<Files, String> {
    let honest = pack()?;
    let mut kernels = honest.kernels.clone();
    kernels.extend(more);
    Ok(prove::files(&honest.request, evidence, kernels, &honest.cost).0)
}

/// The pack with an edit in its manifest, in the form that is written.
fn with_manifest(mut files: Files, edit: impl FnOnce(&mut Value)) -> Result<Files, String> {
    let bytes = files.get(MANIFEST).ok_or("the pack has no manifest")?;
    let mut manifest: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    edit(&mut manifest["predicate"]);
    files.insert(MANIFEST.into(), stages::json(&manifest).into_bytes());
    Ok(files)
}

fn edited_afterwards(_: &[Guard]) -> Result<Objections, String> {
    let files = consistent(&pack()?.evidence, Files::new())?;
    objections(&with_manifest(files, |predicate| predicate["machine"]["processor"] = "a better one".into())?)
}

fn edited_verdict(_: &[Guard]) -> Result<Objections, String> {
    let files = consistent(&pack()?.evidence, Files::new())?;
    let mut files =
        with_manifest(files, |predicate| predicate["stages"][Stage::Bench as usize]["state"] = "pass".into())?;
    files.insert(SUMS.into(), sums::render(&files).into_bytes());
    objections(&files)
}

/// The log of `resources` has fewer registers than ptxas said of the cubin that is in the pack.
fn other_builds_figures(_: &[Guard]) -> Result<Objections, String> {
    let honest = pack()?;
    let case = &honest.request.cases[0];
    let mut evidence = honest.evidence.clone();
    let assembled = assembled(case, &hash::hex(b"cubin"), 0);
    let mut quoted = resources::run(&honest.request.cases, &assembled)?;
    quoted.kernels.iter_mut().flat_map(|entry| &mut entry.used).for_each(|used| used.registers = 40);
    (evidence.assemble, evidence.resources) = (Record::Ran(assembled), Record::Ran(quoted));
    let cubin = (code_path(&case.name, "sm_80", "cubin"), squeezed::squeeze(b"cubin"));
    objections(&consistent(&evidence, Files::from([cubin]))?)
}

fn forged_figures(_: &[Guard]) -> Result<Objections, String> {
    let mut evidence = pack()?.evidence.clone();
    if let Record::Ran(log) = &mut evidence.parity {
        log.kernels.iter_mut().for_each(|entry| entry.output.element_error = Figure::new(1e-9));
    }
    objections(&consistent(&evidence, Files::new())?)
}
