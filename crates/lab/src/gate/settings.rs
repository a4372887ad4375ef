//! Gates of one's own, from `veriflash.toml`:
//!
//! ```toml
//! [gate.nightly]
//! require = ["assemble", "parity", "sanitize"]   # must have passed
//! allow_not_run = ["resources", "code"]          # must have passed if they were run
//! least = { busy = 60.0, tensor = 40.0 }         # percent, of the kernel with the most work: figures of `profile`
//! second_run = true                              # and a pack from another day or machine says the same
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use launch::{Fault, Source, Spot};
use serde::Deserialize;
use toml::Spanned;

use super::{Gate, Threshold};
use crate::Error;
use crate::stages::{Stage, profile};

/// The file that is read where no other is named.
pub const SETTINGS: &str = "veriflash.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    gate: BTreeMap<Spanned<String>, Demands>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Demands {
    require: Spanned<Vec<Spanned<Stage>>>,
    #[serde(default)]
    allow_not_run: Vec<Spanned<Stage>>,
    #[serde(default)]
    least: BTreeMap<Spanned<String>, f64>,
    #[serde(default)]
    second_run: bool,
}

/// The gates that a file defines, by name.
pub fn gates_of(path: &Path) -> Result<Vec<Gate>, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::folder(path, error))?;
    let source = Source::new(path.display().to_string(), text);
    read(source.text()).map_err(|fault| Error::Settings(source.error(fault)))
}

fn read(text: &str) -> Result<Vec<Gate>, Fault> {
    let settings: Settings = toml::from_str(text).map_err(|error| fault(error.span(), error.message()))?;
    settings.gate.into_iter().map(|(name, demands)| gate(&name, demands)).collect()
}

fn gate(name: &Spanned<String>, demands: Demands) -> Result<Gate, Fault> {
    let at_name = |message: String| Err(fault(Some(name.span()), message));
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let text = name.get_ref();
    if Gate::built_in().iter().any(|gate| gate.name() == text) {
        return at_name(format!("the gate `{text}` is built in: expected another name"));
    }
    if text.is_empty() || !text.bytes().all(known) {
        return at_name(format!("gate name {text:?}: expected letters, digits, `-` and `_`"));
    }
    if demands.require.get_ref().is_empty() {
        let message = format!("the gate `{text}` requires nothing, and would always hold: expected stages");
        return Err(fault(Some(demands.require.span()), message));
    }
    let all: Vec<&Spanned<Stage>> = demands.require.get_ref().iter().chain(&demands.allow_not_run).collect();
    for (index, stage) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.get_ref() == stage.get_ref()) {
            let message = format!("the gate `{text}` names the stage `{}` twice: expected once", stage.get_ref());
            return Err(fault(Some(stage.span()), message));
        }
    }
    let least = demands.least.iter().map(|(measure, least)| threshold(measure, *least)).collect::<Result<_, _>>()?;
    let stages = |list: Vec<Spanned<Stage>>| list.into_iter().map(Spanned::into_inner).collect();
    Ok(Gate {
        name: text.clone(),
        require: stages(demands.require.into_inner()),
        allow_not_run: stages(demands.allow_not_run),
        least,
        covers: vec![],
        second_run: demands.second_run,
    })
}

fn threshold(measure: &Spanned<String>, least: f64) -> Result<Threshold, Fault> {
    let known = profile::MEASURES.into_iter().find(|known| known == measure.get_ref());
    let known = known.filter(|_| least > 0.0 && least <= 100.0);
    known.map(|measure| Threshold { stage: Stage::Profile, measure, least }).ok_or_else(|| {
        let expected = profile::MEASURES.join(", ");
        fault(
            Some(measure.span()),
            format!(
                "least `{}`: expected one of {expected}, and a percentage above 0 and up to 100",
                measure.get_ref()
            ),
        )
    })
}

fn fault(span: Option<Range<usize>>, message: impl Into<String>) -> Fault {
    Fault::new(Spot::at(span.map_or(0, |span| span.start)), message)
}
