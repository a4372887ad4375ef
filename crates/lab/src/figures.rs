//! The small types that logs are made of. Logs hold what verdicts need and nothing that differs between two runs.

use std::fmt;

use launch::backend::{Output, Run, Witness};
use launch::finding::{Event, Finding, Severity};
use launch::hash;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::guard::Guard;

/// A measured number with six significant digits: what is written is what is judged, on every machine.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Figure(f64);

/// How an infinite figure is written; JSON has no number for it.
const INFINITE: &str = "infinite";

impl Figure {
    /// NaN becomes infinite: it is no distance.
    pub fn new(value: f64) -> Figure {
        let rounded = format!("{value:.5e}").parse().unwrap_or(f64::INFINITY);
        Figure(if f64::is_finite(rounded) { rounded } else { f64::INFINITY })
    }

    pub fn value(self) -> f64 {
        self.0
    }

    /// For an error: who objects to it.
    pub(crate) fn guard(self) -> Guard {
        if self.0.is_finite() { Guard::ErrorRule } else { Guard::NotANumber }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            value if value.is_infinite() => f.write_str(INFINITE),
            value if (1e-2..1e3).contains(&value) || value == 0.0 => write!(f, "{value:.2}"),
            value => write!(f, "{value:.1e}"),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.serialize_str(INFINITE) }
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(value) => Ok(Figure(value)),
            Written::Word(word) if word == INFINITE => Ok(Figure(f64::INFINITY)),
            Written::Word(word) => Err(serde::de::Error::custom(format!("`{word}` is no figure"))),
        }
    }
}

/// A kernel as manifest and logs name it: a result for another hash is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub kernel: String,
    /// SHA-256 of the printed module without comments.
    pub module: String,
    /// SHA-256 of the recipe as TOML.
    pub recipe: String,
}

impl Subject {
    pub fn describe(&self) -> String {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        format!("{} (module {}, recipe {})", self.kernel, short(&self.module), short(&self.recipe))
    }
}

/// A launch that a backend saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launched {
    pub entry: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub count: u32,
}

impl From<&Witness> for Launched {
    fn from(seen: &Witness) -> Launched {
        Launched { entry: seen.entry.clone(), grid: seen.grid, block: seen.block, count: seen.count }
    }
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Launched { entry, grid: [x, y, z], block, count } = self;
        write!(f, "`{entry}` with {x}×{y}×{z} blocks of {} threads, {count} times", block.iter().product::<u32>())
    }
}

/// What a buffer held before and after a run, as hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hashes {
    pub buffer: String,
    pub before: String,
    pub after: String,
}

impl From<Output> for Hashes {
    fn from(output: Output) -> Hashes {
        Hashes { buffer: output.buffer, before: hash::of(&output.before), after: hash::of(&output.after) }
    }
}

/// Proof that a run happened: the launches seen and asked for, the outputs out of their poison, the inputs untouched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub asked: Vec<Launched>,
    pub launches: Vec<Launched>,
    pub inputs: Vec<Hashes>,
    pub outputs: Vec<Hashes>,
}

impl Seen {
    pub fn new(asked: Vec<Launched>, run: &Run, inputs: Vec<Hashes>, outputs: Vec<Hashes>) -> Seen {
        Seen { asked, launches: run.witness.iter().map(Launched::from).collect(), inputs, outputs }
    }

    /// Why this shows nothing about the kernel, if it does not.
    pub fn missing(&self) -> Option<String> {
        if self.launches.is_empty() || self.launches.len() != self.asked.len() {
            return Some(format!("{} of {} launches were seen", self.launches.len(), self.asked.len()));
        }
        if self.inputs.is_empty() || self.outputs.is_empty() {
            return Some("no input or no output was watched".into());
        }
        None
    }

    /// The hashes of what it wrote.
    pub fn results(&self) -> Vec<&str> {
        self.outputs.iter().map(|output| output.after.as_str()).collect()
    }

    /// What the run did to buffers that it should not have done, and who objects.
    pub(crate) fn offences(&self) -> Vec<(Guard, String)> {
        let other = self.launches.iter().zip(&self.asked).find(|(seen, asked)| seen != asked);
        let other = other.map(|(seen, asked)| (Guard::Executed, format!("{seen} was launched: expected {asked}")));
        let changed = self.inputs.iter().find(|input| input.before != input.after);
        let kept = self.outputs.iter().find(|output| output.before == output.after);
        let changed = changed.map(|input| (Guard::Inputs, format!("the kernel changed its input `{}`", input.buffer)));
        let kept =
            kept.map(|output| (Guard::Poison, format!("the kernel left its output `{}` as it was", output.buffer)));
        other.into_iter().chain(changed).chain(kept).collect()
    }
}

/// A finding without the name of its file: the kernel's place in the pack says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    pub check: String,
    pub severity: String,
    pub message: String,
    pub first: Spot,
    pub second: Option<Spot>,
    pub missing: Option<String>,
    pub help: Option<String>,
    pub count: u64,
}

/// One side of a finding. A place in the recipe, which the pack writes in a form of its own, is line 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spot {
    pub label: String,
    pub line: u32,
    pub column: u32,
    pub source: Option<String>,
    pub cta: [u32; 3],
    pub warp: u32,
    pub lanes: u32,
}

impl Spot {
    fn place(&self, word: &str) -> String {
        if self.line == 0 { "in the recipe".into() } else { format!("{word} {}", self.line) }
    }
}

impl Found {
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error.word()
    }
}

impl From<&Finding> for Found {
    fn from(finding: &Finding) -> Found {
        Found {
            check: finding.check.into(),
            severity: finding.severity.word().into(),
            message: finding.message.clone(),
            first: Spot::from(&finding.first),
            second: finding.second.as_ref().map(Spot::from),
            missing: finding.missing.clone(),
            help: finding.help.clone(),
            count: finding.count,
        }
    }
}

impl From<&Event> for Spot {
    fn from(event: &Event) -> Spot {
        let Event { label, source, cta, warp, lanes, .. } = event.clone();
        let (line, column) = if event.in_recipe { (0, 0) } else { (event.line, event.column) };
        Spot { label, line, column, source, cta, warp, lanes }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}[{}] {}", self.severity, self.check, self.first.place("at line"))?;
        if let Some(second) = &self.second {
            write!(f, " and {}", second.place("line"))?;
        }
        write!(f, ": {}", self.message)?;
        self.missing.as_ref().map_or(Ok(()), |missing| write!(f, "; missing: {missing}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_back_as_written() {
        for value in [0.0, 1.0 / 3.0, 1.234567e-30, 9.999999e20, f64::INFINITY, f64::NAN] {
            let figure = Figure::new(value);
            let text = serde_json::to_string(&figure).unwrap();
            assert_eq!(serde_json::from_str::<Figure>(&text).unwrap(), figure, "{text}");
        }
        assert_eq!(serde_json::to_string(&Figure::new(1.0 / 3.0)).unwrap(), "0.333333");
        assert!(serde_json::from_str::<Figure>("\"large\"").is_err());
    }

    #[test]
    fn nan_is_infinitely_wrong() {
        assert!(Figure::new(f64::NAN).value().is_infinite());
    }
}
