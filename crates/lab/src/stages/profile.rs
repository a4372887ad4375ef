//! # profile
//!
//! What Nsight Compute counts while a kernel runs on a GPU: how busy the multiprocessors and their tensor cores are, how much of
//! memory and cache is used, and what warps wait for. Of the kernels that are measured, the first and the one with the most work are
//! profiled. How busy the latter must keep the GPU is a gate's affair.

mod ncu;

use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted};
use crate::case::Case;
use crate::figures::{Figure, Launched, Subject};
use crate::gpu;
use crate::guard::{Guard, Objection, Objections};
use crate::hardware::{Hardware, write_case};
use crate::harness;

/// What a gate may ask of the kernel with the most work, in percent.
pub(crate) const BUSY: &str = "busy";
pub(crate) const TENSOR: &str = "tensor";
pub(crate) const MEASURES: [&str; 2] = [BUSY, TENSOR];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub ncu: String,
    pub kernels: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub subject: Subject,
    pub problem: String,
    /// It has the most work, and could fill the GPU.
    pub largest: bool,
    /// The launches that ncu must see. Packs that are older than the question have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Launched>,
    /// The launches that ncu saw, each time that a kernel was launched.
    pub launches: Vec<Profiled>,
}

/// One launch, as ncu saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiled {
    pub entry: String,
    /// As ncu writes them: `(16, 8, 2)`.
    pub grid: String,
    pub block: String,
    pub microseconds: Figure,
    /// Of the time, the share in which multiprocessors had work, in percent.
    pub active: Figure,
    /// How much of the most that a multiprocessor can do was done, in percent: instructions of the busiest pipe.
    pub busy: Figure,
    /// The same of the tensor cores alone.
    pub tensor: Figure,
    pub memory: Figure,
    pub cache: Figure,
    /// What warps waited for, in cycles for each instruction that was issued, the longest first.
    pub stalls: Vec<Stall>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub reason: String,
    pub cycles: Figure,
}

/// Those that are profiled: the first, and the one with the most work.
pub(crate) fn chosen(cases: &[Case]) -> Vec<(&Case, bool)> {
    let work = |case: &Case| gpu::floor(&case.problem, true).operations.value();
    let largest = (0..cases.len()).max_by(|a, b| work(&cases[*a]).total_cmp(&work(&cases[*b]))).unwrap_or(0);
    let picked = cases.iter().enumerate().filter(|(number, _)| *number == 0 || *number == largest);
    picked.map(|(number, case)| (case, number == largest)).collect()
}

pub(crate) fn run(hardware: &Hardware, cases: &[Case], step: &dyn Fn()) -> Result<Report, String> {
    let tool = hardware.ncu.as_ref().ok_or("ncu was not found: it comes with the CUDA toolkit, as Nsight Compute")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut kernels = Vec::new();
    for (case, largest) in chosen(cases) {
        let file = write_case(folder.path(), case)?;
        let log = folder.path().join(format!("{}.csv", case.name));
        let (metrics, written) = (ncu::metrics(), log.display().to_string());
        // Names as the PTX has them, whatever language they are from.
        let names = ["--print-kernel-base", "mangled"];
        let options =
            ["--csv", "--page", "raw", "--clock-control", "none", "--metrics", &metrics, "--log-file", &written];
        let options = [&options[..], &names].concat();
        let process = hardware.watched(tool, &options, &file, &["--unjudged"])?;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if process.code != Some(0) {
            let last = said.lines().last().unwrap_or("nothing");
            return Err(format!("{}: under ncu it ended with {:?}; ncu said: {last}", case.name, process.code));
        }
        let launches = ncu::read(&said).map_err(|error| format!("{}: {error}", case.name))?;
        let asked = harness::asked(&case.kernel, &case.resolved.launches);
        kernels.push(Entry { subject: case.subject(), problem: case.problem.to_string(), largest, asked, launches });
        step();
    }
    Ok(Report { ncu: tool.version.clone(), kernels })
}

impl Entry {
    fn objections(&self) -> Vec<Objection> {
        let name = &self.subject.kernel;
        let Some(main) = self.launches.first() else {
            return vec![Objection::not_run(Guard::Witness, format!("{name}: ncu saw no launch"))];
        };
        let other = self.other().map(|why| Objection::fail(Guard::Executed, format!("{name}: {why}")));
        let cold = (main.tensor.value() <= 0.0)
            .then(|| Objection::fail(Guard::TensorPipe, format!("{name}: the tensor cores did nothing")));
        other.into_iter().chain(cold).collect()
    }

    /// What ncu saw in place of what was asked for.
    fn other(&self) -> Option<String> {
        if self.asked.is_empty() {
            return None;
        }
        let times = |one: &Launched| std::iter::repeat_n(as_ncu_writes(one), one.count as usize);
        let expected: Vec<String> = self.asked.iter().flat_map(times).collect();
        let seen = |one: &Profiled| format!("`{}` with grid {} and block {}", one.entry, one.grid, one.block);
        let seen: Vec<String> = self.launches.iter().map(seen).collect();
        let differs = seen.iter().zip(&expected).find(|(seen, expected)| seen != expected);
        let differs = differs.map(|(seen, expected)| format!("ncu saw {seen}: expected {expected}"));
        let launches = if seen.len() == 1 { "launch" } else { "launches" };
        let counts = || format!("ncu saw {} {launches}: expected {}", seen.len(), expected.len());
        differs.or_else(|| (seen.len() != expected.len()).then(counts))
    }
}

fn as_ncu_writes(Launched { entry, grid: [x, y, z], block, .. }: &Launched) -> String {
    let [width, height, depth] = block;
    format!("`{entry}` with grid ({x}, {y}, {z}) and block ({width}, {height}, {depth})")
}

impl Log for Report {
    const STAGE: Stage = Stage::Profile;

    fn subjects(&self) -> Vec<Subject> {
        self.kernels.iter().map(|entry| entry.subject.clone()).collect()
    }

    fn objections(&self) -> Objections {
        Objections::of_parts(self.kernels.iter().map(Entry::objections))
    }

    fn measures(&self) -> Vec<(&'static str, Figure)> {
        let largest = self.kernels.iter().find(|entry| entry.largest);
        let launch = largest.and_then(|entry| entry.launches.first());
        launch.map_or(vec![], |launch| vec![(BUSY, launch.busy), (TENSOR, launch.tensor)])
    }

    fn figures(&self) -> String {
        let one = |entry: &Entry| {
            let launch = entry.launches.first()?;
            let stall = launch.stalls.first().map_or(String::new(), |stall| format!(", waits for {}", stall.reason));
            let Profiled { busy, tensor, memory, cache, .. } = launch;
            let shares = format!("busy {busy} %, tensor cores {tensor} %, memory {memory} %, L2 {cache} %");
            Some(format!("; {}: {shares}{stall}", entry.problem))
        };
        let each: String = self.kernels.iter().filter_map(one).collect();
        format!("ncu {}, {}{each}", self.ncu, counted(self.kernels.len(), "kernel"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::State;

    /// As ncu 2025.3.1.0 saw a kernel on an H200.
    fn entry(launches: usize) -> Entry {
        let profiled = Profiled {
            entry: "attention_forward".into(),
            grid: "(16, 8, 2)".into(),
            block: "(128, 1, 1)".into(),
            microseconds: Figure::new(8.8),
            active: Figure::new(77.26),
            busy: Figure::new(31.64),
            tensor: Figure::new(24.67),
            memory: Figure::new(7.51),
            cache: Figure::new(14.86),
            stalls: vec![],
        };
        let asked = Launched {
            entry: "attention_forward".into(),
            grid: [16, 8, 2],
            block: [128, 1, 1],
            count: launches as u32,
        };
        Entry {
            subject: Subject { kernel: "k".into(), module: "m".into(), recipe: "r".into() },
            problem: "f16 B2 H8 S512 D64 full".into(),
            largest: true,
            asked: vec![asked],
            launches: vec![profiled; launches],
        }
    }

    fn judge(edit: impl FnOnce(&mut Entry)) -> State {
        let mut entry = entry(2);
        edit(&mut entry);
        Objections::of(entry.objections()).judge()
    }

    #[test]
    fn what_was_profiled_is_what_was_asked_for() {
        assert_eq!(judge(|_| ()), State::Pass);
        let fails = |edit: fn(&mut Entry), expected: &str| {
            let state = judge(edit);
            assert!(matches!(&state, State::Fail { why } if why.contains(expected)), "{state:?}: expected {expected}");
        };
        fails(|entry| entry.launches[1].entry = "warm_up".into(), "ncu saw `warm_up` with grid (16, 8, 2)");
        fails(
            |entry| entry.launches[0].grid = "(16, 8, 200)".into(),
            "grid (16, 8, 200) and block (128, 1, 1): expected",
        );
        fails(|entry| entry.launches[0].block = "(64, 1, 1)".into(), "block (64, 1, 1): expected");
        fails(|entry| drop(entry.launches.pop()), "ncu saw 1 launch: expected 2");
        fails(|entry| entry.launches.push(entry.launches[0].clone()), "ncu saw 3 launches: expected 2");
        assert!(matches!(judge(|entry| entry.launches.clear()), State::NotRun { .. }));
    }
}
