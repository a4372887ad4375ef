//! `manifest.json`: the claim, in the shape of an in-toto statement, so that standard tools can sign it.

use std::collections::BTreeMap;

use launch::hash;
use serde::{Deserialize, Serialize};

use super::{Files, MANIFEST, SUMS, kernel_path};
use crate::SCHEMA;
use crate::case::Case;
use crate::cost::Cost;
use crate::figures::Subject;
use crate::gate::Made;
use crate::machine::Machine;
use crate::outcome::{Outcome, State};
use crate::request::Settings;
use crate::stages::{Stage, json};

/// in-toto Attestation Framework, "Statement".
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
const PREDICATE: &str = "urn:veriflash:evidence:3";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(rename = "_type")]
    statement: String,
    subject: Vec<Artefact>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    pub predicate: Predicate,
}

/// A kernel: its digest is that of its printed module without comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Artefact {
    name: String,
    digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Digest {
    sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    schema: u32,
    pub version: String,
    pub command: String,
    pub settings: Settings,
    pub kernels: Vec<Claimed>,
    /// What a GPU ran and timed.
    pub measured: Vec<Claimed>,
    pub stages: Vec<StageLine>,
    /// SHA-256 of every file but this one and `SHA256SUMS`.
    files: BTreeMap<String, String>,
    pub machine: Machine,
    pub cost: Cost,
    /// Seconds since 1970.
    pub time: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    pub subject: Subject,
    pub problem: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageLine {
    stage: Stage,
    state: State,
    figures: String,
    log: String,
}

impl StageLine {
    pub fn of(outcome: &Outcome) -> StageLine {
        StageLine {
            stage: outcome.stage(),
            state: outcome.state().clone(),
            figures: outcome.figures().into(),
            log: outcome.stage().log(),
        }
    }
}

/// What a manifest is made from, beside the files.
pub struct Claim<'a> {
    pub command: &'a str,
    pub settings: &'a Settings,
    pub cases: &'a [Case],
    pub measured: &'a [Case],
    pub outcomes: &'a [Outcome],
    pub machine: Machine,
    pub cost: &'a Cost,
    pub time: u64,
}

impl Manifest {
    pub fn new(claim: Claim, files: &Files) -> Manifest {
        let claimed = |case: &Case| Claimed { subject: case.subject(), problem: case.problem.to_string() };
        let kernels: Vec<Claimed> = claim.cases.iter().map(claimed).collect();
        let measured: Vec<Claimed> = claim.measured.iter().map(claimed).collect();
        Manifest {
            statement: STATEMENT.into(),
            subject: artefacts(&kernels, &measured),
            predicate_type: PREDICATE.into(),
            predicate: Predicate {
                schema: SCHEMA,
                version: env!("CARGO_PKG_VERSION").into(),
                command: claim.command.into(),
                settings: claim.settings.clone(),
                kernels,
                measured,
                stages: claim.outcomes.iter().map(StageLine::of).collect(),
                files: digests(files),
                machine: claim.machine,
                cost: claim.cost.clone(),
                time: claim.time,
            },
        }
    }

    pub fn made(&self) -> Made {
        let Predicate { kernels, measured, machine, time, .. } = &self.predicate;
        let kernels = kernels.iter().chain(measured).map(|kernel| kernel.subject.clone()).collect();
        Made { kernels, machine: machine.clone(), time: *time }
    }

    pub fn text(&self) -> String {
        json(self)
    }

    /// Reads what [`text`](Manifest::text) wrote, and nothing else.
    pub fn read(files: &Files) -> Result<Manifest, String> {
        let bytes = files.get(MANIFEST).ok_or_else(|| format!("{MANIFEST} is missing"))?;
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(|error| format!("{MANIFEST}: {error}"))?;
        if manifest.text().as_bytes() != bytes {
            return Err(format!("{MANIFEST} is not in the form that is written"));
        }
        manifest.check(files).map_err(|error| format!("{MANIFEST}: {error}"))?;
        Ok(manifest)
    }

    fn check(&self, files: &Files) -> Result<(), String> {
        let Predicate { schema, version, kernels, measured, files: listed, .. } = &self.predicate;
        if self.statement != STATEMENT || self.predicate_type != PREDICATE || *schema != SCHEMA {
            return Err(format!("expected {STATEMENT}, {PREDICATE}, schema {SCHEMA}"));
        }
        if version != env!("CARGO_PKG_VERSION") {
            let own = env!("CARGO_PKG_VERSION");
            return Err(format!("made by veriflash {version}: expected {own}, use the version that made the pack"));
        }
        if self.subject != artefacts(kernels, measured) {
            return Err("subjects and kernels differ".into());
        }
        if !self.predicate.cost.is_complete() {
            return Err("the cost does not speak of every stage".into());
        }
        let found = digests(files);
        let differs = |(path, digest): (&String, &String)| (listed.get(path) != Some(digest)).then(|| path.clone());
        if let Some(path) = found.iter().find_map(differs) {
            return Err(format!("{path} is not what it says"));
        }
        listed.keys().find(|path| !found.contains_key(*path)).map_or(Ok(()), |path| Err(format!("{path} is missing")))
    }
}

/// Every kernel once: those that were emulated, and those that were measured alone.
fn artefacts(kernels: &[Claimed], measured: &[Claimed]) -> Vec<Artefact> {
    let artefact = |kernel: &Claimed, file: &str| {
        let digest = Digest { sha256: kernel.subject.module.clone() };
        Artefact { name: kernel_path(&kernel.subject.kernel, file), digest }
    };
    let only = measured.iter().filter(|kernel| !kernels.contains(kernel));
    let emulated = kernels.iter().map(|kernel| artefact(kernel, "kernel.ptx"));
    emulated.chain(only.map(|kernel| artefact(kernel, "kernel.ptx.gz"))).collect()
}

fn digests(files: &Files) -> BTreeMap<String, String> {
    let others = files.iter().filter(|(path, _)| ![MANIFEST, SUMS].contains(&path.as_str()));
    others.map(|(path, bytes)| (path.clone(), hash::hex(bytes))).collect()
}
