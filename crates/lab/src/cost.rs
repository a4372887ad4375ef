//! What a pack cost: the time of each stage, and what that comes to at a declared rate.
//!
//! It differs between two runs like machine and time, and no verdict follows from it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stages::Stage;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// In the order of [`Stage::ALL`].
    pub stages: Vec<StageCost>,
    /// Nothing if none was declared.
    pub rate: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageCost {
    pub stage: Stage,
    pub milliseconds: u64,
    /// The stage was run for the pack that was there before, and cost its time then.
    pub kept: bool,
}

/// What an hour costs, in whatever the money is: `3.50/h`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rate(String);

impl Cost {
    pub fn add(&mut self, stage: Stage, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match self.stages.last_mut().filter(|last| last.stage == stage) {
            // The half of a stage that a GPU ran.
            Some(last) => last.milliseconds = last.milliseconds.saturating_add(milliseconds),
            None => self.stages.push(StageCost { stage, milliseconds, kept: false }),
        }
    }

    /// Takes over what a stage cost when it was run.
    pub fn keep(&mut self, stage: Stage, before: &Cost) {
        let known = before.stages.iter().find(|one| one.stage == stage);
        self.stages.push(StageCost { stage, milliseconds: known.map_or(0, |one| one.milliseconds), kept: true });
    }

    pub fn is_kept(&self, stage: Stage) -> bool {
        self.stages.iter().any(|one| one.stage == stage && one.kept)
    }

    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(StageCost::seconds).sum()
    }

    /// Does it speak of every stage once, in their order?
    pub(crate) fn is_complete(&self) -> bool {
        self.stages.iter().map(|one| one.stage).eq(Stage::ALL)
    }
}

impl StageCost {
    pub fn seconds(&self) -> f64 {
        self.milliseconds as f64 / 1e3
    }
}

impl Rate {
    fn per_hour(&self) -> f64 {
        self.0.trim_end_matches("/h").parse().unwrap_or_default()
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let number = text.strip_suffix("/h").filter(|number| number.chars().all(|c| c.is_ascii_digit() || c == '.'));
        let is_number = number.is_some_and(|number| number.parse::<f64>().is_ok());
        if is_number { Ok(Rate(text.into())) } else { Err("expected a price per hour such as 3.50/h".into()) }
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Rate, String> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `0.0042 hours × 3.50/h = 0.0147`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let hours = self.seconds() / 3600.0;
        write!(f, "{hours:.4} hours")?;
        match &self.rate {
            Some(rate) => write!(f, " × {rate} = {:.4}", hours * rate.per_hour()),
            None => f.write_str("; no rate was declared"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_times_rate() {
        let mut cost = Cost::default();
        cost.add(Stage::Parity, Duration::from_secs(1800));
        assert_eq!(cost.to_string(), "0.5000 hours; no rate was declared");
        cost.rate = Some("3.50/h".parse().unwrap());
        assert_eq!(cost.to_string(), "0.5000 hours × 3.50/h = 1.7500");
        let mut later = Cost::default();
        later.keep(Stage::Parity, &cost);
        assert!(later.is_kept(Stage::Parity) && later.seconds() == 1800.0, "a kept stage costs what it did cost");
        assert!(!later.is_complete());
    }

    #[test]
    fn rates_are_prices_per_hour() {
        for wrong in ["", "3.50", "/h", "3.5.0/h", "-1/h", "inf/h", "1e9/h", "3 /h"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
        assert_eq!("2/h".parse::<Rate>().unwrap().per_hour(), 2.0);
    }
}
