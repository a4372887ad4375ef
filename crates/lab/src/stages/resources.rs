//! # resources
//!
//! What `ptxas -v` says each kernel takes on each target: registers, stack, spilled bytes, shared memory; and how many
//! blocks of the launch's size then share a multiprocessor. A spilled register or a stack frame is a failure.

use ptx::Target;
use serde::{Deserialize, Serialize};

use super::{Log, Stage, assemble, counted};
use crate::case::Case;
use crate::figures::Subject;
use crate::occupancy::{self, Block};
use crate::outcome::State;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub ptxas: String,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub used: Vec<Used>,
}

/// One entry function on one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub entry: String,
    pub target: String,
    /// Per thread.
    pub registers: u32,
    pub stack_bytes: u32,
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// Declared in the PTX and asked for by the launch.
    pub shared_bytes: u32,
    pub threads: u32,
    /// Nothing where the target's limits are not known.
    pub blocks_per_processor: Option<u32>,
    pub occupancy_percent: Option<u32>,
}

/// Reads what ptxas said in the stage `assemble`; no tool runs here.
pub(crate) fn run(cases: &[Case], assembled: &assemble::Report) -> Result<Report, String> {
    let ptxas = assembled.ptxas.clone().ok_or_else(missing)?;
    let mut kernels = Vec::new();
    for (case, entry) in cases.iter().zip(&assembled.kernels) {
        let mut used = Vec::new();
        for one in &entry.assembled {
            used.extend(of_target(case, one).map_err(|error| format!("{}, {}: {error}", case.name, one.target))?);
        }
        kernels.push(Entry { subject: case.subject(), used });
    }
    Ok(Report { ptxas, kernels })
}

pub(crate) fn missing() -> String {
    format!("ptxas was not found: get it with `{}`", crate::tools::INSTALL)
}

fn of_target(case: &Case, assembled: &assemble::Assembled) -> Result<Vec<Used>, String> {
    let target: Target = assembled.target.parse().map_err(|()| "unknown target".to_string())?;
    let functions = read(&assembled.said)?;
    let mut all = Vec::new();
    for launch in &case.resolved.launches {
        let entry = case.kernel.entry(launch).map_err(|error| error.to_string())?;
        let function = functions.iter().find(|function| function.entry == entry.name);
        let function = function.ok_or_else(|| format!("ptxas said nothing of `{}`", entry.name))?;
        let (threads, shared_bytes) = (launch.block.iter().product(), function.shared_bytes + launch.shared);
        let occupancy = occupancy::of(target, Block { threads, registers: function.registers, shared_bytes });
        all.push(Used {
            entry: entry.name.clone(),
            target: assembled.target.clone(),
            registers: function.registers,
            stack_bytes: function.stack_bytes,
            spill_store_bytes: function.spill_store_bytes,
            spill_load_bytes: function.spill_load_bytes,
            shared_bytes,
            threads,
            blocks_per_processor: occupancy.map(|(blocks, _)| blocks),
            occupancy_percent: occupancy.map(|(_, percent)| percent),
        });
    }
    Ok(all)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Function {
    entry: String,
    registers: u32,
    stack_bytes: u32,
    spill_store_bytes: u32,
    spill_load_bytes: u32,
    shared_bytes: u32,
}

/// The lines of `ptxas -v`, each of which must be one that is known: three per entry, and memory of the module.
fn read(said: &[String]) -> Result<Vec<Function>, String> {
    let mut functions: Vec<Function> = Vec::new();
    let mut lines = said.iter().map(|line| line.trim());
    while let Some(line) = lines.next() {
        let unknown = || format!("ptxas said something unknown: `{line}`");
        let info = line.strip_prefix("ptxas info").and_then(|rest| rest.trim_start().strip_prefix(':'));
        let info = info.ok_or_else(unknown)?.trim();
        if let Some(rest) = info.strip_prefix("Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_string();
            functions.push(Function { entry, ..Function::default() });
        } else if info.starts_with("Function properties for ") {
            let properties = lines.next().ok_or_else(unknown)?;
            let function = functions.last_mut().ok_or_else(unknown)?;
            let values = numbers(properties, &["bytes stack frame", "bytes spill stores", "bytes spill loads"])
                .ok_or_else(|| format!("ptxas said something unknown: `{properties}`"))?;
            (function.stack_bytes, function.spill_store_bytes, function.spill_load_bytes) =
                (values[0], values[1], values[2]);
        } else if info.starts_with("Used ") {
            let function = functions.last_mut().ok_or_else(unknown)?;
            (function.registers, function.shared_bytes) = usage(info).ok_or_else(unknown)?;
        } else if !info.ends_with("bytes gmem") && !info.contains("bytes gmem, ") {
            return Err(unknown());
        }
    }
    match functions.iter().find(|function| function.registers == 0) {
        Some(function) => Err(format!("ptxas did not say how many registers `{}` uses", function.entry)),
        None => Ok(functions),
    }
}

/// `0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads`
fn numbers(line: &str, units: &[&str]) -> Option<Vec<u32>> {
    let parts: Vec<&str> = line.split(", ").collect();
    let value = |(part, unit): (&&str, &&str)| part.strip_suffix(unit)?.trim().parse().ok();
    (parts.len() == units.len()).then(|| parts.iter().zip(units).map(value).collect())?
}

/// `Used 96 registers, used 1 barriers, 1024 bytes smem, 476 bytes cmem[0]`: registers and shared memory.
fn usage(info: &str) -> Option<(u32, u32)> {
    let mut parts = info.split(", ");
    let registers = parts.next()?.strip_prefix("Used ")?.strip_suffix(" registers")?.parse().ok()?;
    let mut shared = 0;
    for part in parts {
        if let Some(bytes) = part.strip_suffix(" bytes smem") {
            shared = bytes.parse().ok()?;
        } else if !(part.starts_with("used ") && part.ends_with(" barriers") || part.contains(" bytes cmem[")) {
            return None;
        }
    }
    Some((registers, shared))
}

impl Used {
    fn fault(&self) -> Option<String> {
        let Used { stack_bytes, spill_store_bytes, spill_load_bytes, target, .. } = self;
        if stack_bytes + spill_store_bytes + spill_load_bytes > 0 {
            return Some(format!(
                "{stack_bytes} bytes of stack, {spill_store_bytes} spilled, {spill_load_bytes} loaded back on {target}"
            ));
        }
        (self.blocks_per_processor == Some(0)).then(|| {
            format!(
                "a block of {} threads does not fit on {target}: {} registers, {} bytes of shared memory",
                self.threads, self.registers, self.shared_bytes
            )
        })
    }
}

impl Log for Report {
    const STAGE: Stage = Stage::Resources;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn judge(&self) -> State {
        for entry in &self.kernels {
            let name = &entry.subject.kernel;
            if entry.used.is_empty() {
                return State::not_run(format!("{name}: ptxas made no cubin of it"));
            }
            if let Some(fault) = entry.used.iter().find_map(Used::fault) {
                return State::fail(format!("{name}: {fault}"));
            }
        }
        State::Pass
    }

    fn figures(&self) -> String {
        let used: Vec<&Used> = self.kernels.iter().flat_map(|entry| &entry.used).collect();
        let most = |of: fn(&Used) -> u32| used.iter().map(|used| of(used)).max().unwrap_or(0);
        let mut occupancy: Vec<String> = Vec::new();
        for one in &used {
            let text = one.occupancy_percent.map(|percent| format!("{percent} % on {}", one.target));
            occupancy.extend(text.filter(|text| !occupancy.contains(text)));
        }
        format!(
            "{}: at most {} registers, {} bytes spilled, {} bytes of stack, {} bytes of shared memory; occupancy {}",
            counted(self.kernels.len(), "kernel"),
            most(|used| used.registers),
            most(|used| used.spill_store_bytes + used.spill_load_bytes),
            most(|used| used.stack_bytes),
            most(|used| used.shared_bytes),
            if occupancy.is_empty() { "unknown".into() } else { occupancy.join(", ") },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attention_forward' for 'sm_80'
ptxas info    : Function properties for attention_forward
    0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 1024 bytes smem, 476 bytes cmem[0]";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    #[test]
    fn every_figure_is_read() {
        let expected = Function {
            entry: "attention_forward".into(),
            registers: 96,
            stack_bytes: 0,
            spill_store_bytes: 8,
            spill_load_bytes: 12,
            shared_bytes: 1024,
        };
        assert_eq!(read(&lines(SAID)).unwrap(), [expected]);
    }

    #[test]
    fn a_line_that_is_not_known_is_an_error() {
        for (from, to) in [
            ("spill loads", "spilled"),
            ("bytes smem", "bytes of smem"),
            ("Used 96", "Uses 96"),
            ("Used 96", "Used some"),
            ("0 bytes gmem", "all is well"),
            ("    0 bytes stack", "    no bytes stack"),
        ] {
            assert!(read(&lines(&SAID.replace(from, to))).is_err(), "{from} {to}");
        }
        let cut: Vec<String> = lines(SAID)[..4].to_vec();
        assert!(read(&cut).unwrap_err().contains("how many registers"));
    }
}
