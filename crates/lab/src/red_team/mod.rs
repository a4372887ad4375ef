//! Attacks on the lab itself: every way of passing for better than one is that we have heard of, tried, with the check that must
//! catch it.
//!
//! An attack is a kernel, a tool, a contender or a pack that lies. It goes through the code that honest ones go through, and hands
//! back what was objected. It is caught if the verdict is no pass and comes from the check that the attack names; a test shows of
//! each that it passes where that check is switched off, so that no check is there for show.

mod cubins;
mod hardware;
mod kernels;
mod machine_code;
mod model;
mod packs;
mod rigs;
mod timing;
mod workshop;

use std::fmt;

use rayon::prelude::*;

use crate::guard::{Guard, Objections};
#[cfg(test)]
use crate::outcome::State;

/// One lie.
pub struct Attack {
    pub name: &'static str,
    /// What it wants to be taken for.
    pub pretends: &'static str,
    /// Who must catch it: one check, or those that its row of the contract names.
    pub guards: &'static [Guard],
    pub place: Place,
    /// What is objected while these checks are switched off; an error means that it could not be tried.
    attempt: fn(&[Guard]) -> Result<Objections, String>,
}

/// One row of a table of attacks.
const fn row(
    place: Place,
    name: &'static str,
    pretends: &'static str,
    guards: &'static [Guard],
    attempt: fn(&[Guard]) -> Result<Objections, String>,
) -> Attack {
    Attack { name, pretends, guards, place, attempt }
}

/// Where an attack is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A kernel on the emulator, or a tool that says that it ran one.
    Emulator,
    /// What an assembler said and a disassembler printed.
    MachineCode,
    /// A cubin that ptxas makes.
    Assembler,
    Pack,
    /// A model of how a driver times.
    Model,
    Gpu,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Place::Emulator => "emulator",
            Place::MachineCode => "machine code",
            Place::Assembler => "ptxas",
            Place::Pack => "pack",
            Place::Model => "model",
            Place::Gpu => "GPU",
        })
    }
}

/// How an attack says what this machine lacks for it: whatever else keeps it from being tried is a fault of the red team.
const NEEDS: &str = "needs ";

impl Place {
    /// Whether a machine may be without it.
    fn may_lack(self, why: &str) -> bool {
        matches!(self, Place::Assembler | Place::Gpu) && why.starts_with(NEEDS)
    }
}

/// How an attack ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Caught {
        by: Guard,
        why: String,
    },
    /// By a check that is there for something else: the named one may be blind.
    CaughtByOther {
        by: Guard,
        why: String,
    },
    Passed,
    NotRun {
        why: String,
    },
}

impl Attack {
    /// Tries it against all checks.
    pub fn run(&self) -> Ended {
        let objections = match (self.attempt)(&[]) {
            Ok(objections) => objections,
            Err(why) => return Ended::NotRun { why },
        };
        let Some(told) = objections.told() else { return Ended::Passed };
        let (by, why) = (told.guard, told.state.why().unwrap_or_default().to_string());
        if self.guards.contains(&by) { Ended::Caught { by, why } } else { Ended::CaughtByOther { by, why } }
    }

    /// What the verdict is while its checks are switched off.
    #[cfg(test)]
    fn unguarded(&self) -> Result<State, String> {
        Ok((self.attempt)(self.guards)?.judge_without(self.guards))
    }
}

/// All of them, in the order of the contract's table where that has one.
pub fn attacks() -> impl Iterator<Item = &'static Attack> {
    let here = kernels::ATTACKS.iter().chain(machine_code::ATTACKS).chain(timing::ATTACKS).chain(packs::ATTACKS);
    here.chain(cubins::ATTACKS).chain(hardware::ATTACKS)
}

/// What became of every attack.
pub struct Report {
    pub tried: Vec<(&'static Attack, Ended)>,
}

/// Tries all of them.
pub fn run() -> Report {
    let all: Vec<&'static Attack> = attacks().collect();
    // One GPU takes one attack at a time.
    let (hardware, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|attack| attack.place == Place::Gpu);
    let mut tried: Vec<_> = others.into_par_iter().map(|attack| (attack, attack.run())).collect();
    tried.extend(hardware.into_iter().map(|attack| (attack, attack.run())));
    Report { tried }
}

impl Report {
    fn count(&self, is: impl Fn(&Ended) -> bool) -> usize {
        self.tried.iter().filter(|(_, ended)| is(ended)).count()
    }

    pub fn caught(&self) -> usize {
        self.count(|ended| matches!(ended, Ended::Caught { .. }))
    }

    pub fn not_run(&self) -> usize {
        self.count(|ended| matches!(ended, Ended::NotRun { .. }))
    }

    /// Those that could be tried here.
    pub fn ran(&self) -> usize {
        self.tried.len() - self.not_run()
    }

    /// Was all that could be tried caught by its named check? Only what needs ptxas or a GPU may have been left out.
    pub fn holds(&self) -> bool {
        let left_out = |(attack, ended): &(&Attack, Ended)| match ended {
            Ended::NotRun { why } => !attack.place.may_lack(why),
            _ => false,
        };
        self.caught() == self.ran() && !self.tried.iter().any(left_out)
    }
}

/// One line for each attack, and what they come to.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{:<26} {:<64} {:<21} where", "attack", "pretends", "caught by")?;
        for (attack, ended) in &self.tried {
            let result = match ended {
                Ended::Caught { by, .. } => by.to_string(),
                Ended::CaughtByOther { by, .. } => format!("{by} INSTEAD OF {}", attack.guards[0]),
                Ended::Passed => "NOBODY".into(),
                Ended::NotRun { why } => format!("not run: {why}"),
            };
            writeln!(f, "{:<26} {:<64} {result:<21} {}", attack.name, attack.pretends, attack.place)?;
        }
        if self.not_run() > 0 {
            writeln!(f, "{} not run", self.not_run())?;
        }
        write!(f, "caught {} of {}", self.caught(), self.ran())
    }
}

#[cfg(test)]
mod tests;
