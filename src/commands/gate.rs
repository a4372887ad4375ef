//! `--gate`, `--settings` and `--second`: by what a pack is judged.

use super::Exit;
use anyhow::bail;
use lab::{Gate, GateResult, Outcome, SETTINGS, SecondRun, Verification, VerifyOptions};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct JudgedBy {
    /// Judge the pack by this gate: `merge`, `publication`, or one that the settings define
    #[arg(long, value_name = "NAME")]
    gate: Option<String>,

    /// The file that defines gates; `veriflash.toml` in the current folder, if there is one, unless given
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// A pack of the same kernels from another day or machine, for gates that want a second run
    #[arg(long, value_name = "PACK")]
    second: Option<PathBuf>,
}

/// The gates that a command judges by.
pub struct Gates {
    /// The one that was asked for, or all that are known.
    gates: Vec<Gate>,
    asked_for: bool,
    second: Option<PathBuf>,
}

/// What each gate says.
pub struct Judged {
    pub results: Vec<(String, GateResult)>,
    asked_for: bool,
}

impl JudgedBy {
    /// Reads the settings: what is wrong with them is said before anything runs.
    pub fn gates(&self) -> anyhow::Result<Gates> {
        let mut gates = Gate::built_in().to_vec();
        gates.extend(self.defined()?);
        if let Some(name) = &self.gate {
            let known = gates.iter().map(Gate::name).collect::<Vec<_>>().join(", ");
            gates.retain(|gate| gate.name() == name);
            if gates.is_empty() {
                let file = self.settings.as_deref().unwrap_or(Path::new(SETTINGS)).display();
                bail!(
                    "unknown gate `{name}`: expected one of {known}; a table [gate.{name}] in {file} would define it"
                );
            }
        }
        if self.second.is_some() && !gates.iter().any(Gate::wants_second_run) {
            bail!("`--second` is of no use: gate `{}` does not ask for a second run", gates[0].name());
        }
        if let Some(second) = self.second.as_ref().filter(|second| !second.is_dir()) {
            bail!("{}: expected the folder of a pack", second.display());
        }
        Ok(Gates { gates, asked_for: self.gate.is_some(), second: self.second.clone() })
    }

    fn defined(&self) -> anyhow::Result<Vec<Gate>> {
        let here = Path::new(SETTINGS);
        match &self.settings {
            Some(path) => Ok(lab::gates_of(path)?),
            None if here.exists() => Ok(lab::gates_of(here)?),
            None => Ok(Vec::new()),
        }
    }
}

impl Gates {
    /// Judges the outcomes of a pack. `first` verifies that pack: only a comparison with a second one needs it.
    pub fn judge(
        &self,
        outcomes: &[Outcome],
        options: &VerifyOptions,
        first: impl FnOnce() -> Result<Verification, lab::Error>,
    ) -> anyhow::Result<Judged> {
        let second = match &self.second {
            Some(folder) => SecondRun::of(&first()?, &lab::verify(folder, options).map_err(lab::Error::of_reader)?),
            None => SecondRun::NotGiven,
        };
        let result = |gate: &Gate| (gate.name().to_string(), gate.judge(outcomes, &second));
        Ok(Judged { results: self.gates.iter().map(result).collect(), asked_for: self.asked_for })
    }
}

impl Judged {
    pub fn asked_for(&self) -> Option<&(String, GateResult)> {
        self.results.first().filter(|_| self.asked_for)
    }

    /// The exit code of the gate that was asked for.
    pub fn exit(&self) -> Option<Exit> {
        Some(match self.asked_for()?.1 {
            GateResult::Held => Exit::Clean,
            GateResult::Failed(_) => Exit::Findings,
            GateResult::Undecided(_) => Exit::Undecided,
        })
    }

    /// `gate merge: held`, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.results.iter().map(|(name, result)| format!("gate {name}: {result}"))
    }

    /// The field `gates` of commands that judge a pack.
    pub fn json(&self) -> Value {
        self.results.iter().map(|(name, result)| json!({ "gate": name, "result": result.to_string() })).collect()
    }
}
