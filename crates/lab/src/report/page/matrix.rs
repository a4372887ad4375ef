//! Claim, check, artefact, and the command that repeats it.

use serde::Serialize;

use super::verdict::{self, Stage as Shown};
use crate::pack::{SAMPLES, kernel_path};
use crate::report::Facts;
use crate::stages::{Record, Stage};

#[derive(Serialize)]
pub(super) struct View {
    rows: Vec<Row>,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Row {
    stage: Shown,
    check: &'static str,
    artefacts: Vec<Artefact>,
    commands: Vec<String>,
}

/// A file or a kind of file in the pack; only one that is a file has a link.
#[derive(Serialize)]
struct Artefact {
    text: String,
    link: bool,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    problem: String,
    module: String,
}

pub(super) fn view(facts: &Facts) -> View {
    let row = |outcome: &crate::Outcome| Row {
        stage: verdict::stage(outcome),
        check: check(outcome.stage()),
        artefacts: artefacts(facts, outcome.stage()),
        commands: commands(facts, outcome.stage()),
    };
    let kernel = |case: &crate::Case| Kernel {
        name: case.name.clone(),
        problem: case.problem.to_string(),
        module: case.subject().module.chars().take(16).collect(),
    };
    View { rows: facts.outcomes.iter().map(row).collect(), kernels: facts.cases.iter().map(kernel).collect() }
}

/// How a stage finds out.
fn check(stage: Stage) -> &'static str {
    match stage {
        Stage::Assemble => "our verifier reads every instruction; ptxas assembles for every target",
        Stage::Parity => "the emulator's result against float64; results with one injected error must fail",
        Stage::Sanitize => "the emulator under all its checks, once per seed; outputs begin as poison",
        Stage::Stress => {
            "every policy and seed, three calls on the same buffers; each synchronisation taken away in turn"
        }
        Stage::Resources => "what ptxas -v says, and the occupancy that follows",
        Stage::Code => "instructions and loops counted in the disassembly of the same cubins",
        Stage::Bench => "paired rounds against peers, the candidate against itself, every timed result checked",
        Stage::Profile => "Nsight Compute's counters while the kernel runs",
    }
}

fn artefacts(facts: &Facts, stage: Stage) -> Vec<Artefact> {
    let files = |kind: &str| Artefact { text: format!("kernels/*/{kind}"), link: false };
    let assembled = matches!(&facts.evidence.assemble, Record::Ran(log) if log.ptxas.is_some());
    let disassembled = matches!(facts.evidence.code, Record::Ran(_));
    let mut all = vec![Artefact { text: stage.log(), link: true }];
    all.extend(facts.evidence.gpu_log(stage).map(|text| Artefact { text, link: true }));
    match stage {
        Stage::Assemble => {
            all.push(files("kernel.ptx"));
            all.extend(assembled.then(|| files("kernel.sm_*.cubin.gz")));
        }
        Stage::Parity | Stage::Sanitize | Stage::Stress => all.extend([files("kernel.ptx"), files("kernel.toml")]),
        Stage::Resources => all.extend(assembled.then(|| files("kernel.sm_*.cubin.gz"))),
        Stage::Code => all.extend(disassembled.then(|| files("kernel.sm_*.sass.gz"))),
        Stage::Bench => all.extend(
            matches!(facts.evidence.bench, Record::Ran(_)).then(|| Artefact { text: SAMPLES.into(), link: true }),
        ),
        Stage::Profile => {}
    }
    all
}

/// Run in the folder of the pack, on its first kernel; nothing repeats what this version cannot do.
fn commands(facts: &Facts, stage: Stage) -> Vec<String> {
    let Some(case) = facts.cases.first() else { return vec![] };
    let recipe = kernel_path(&case.name, "kernel.toml");
    let command = |rest: &str| format!("veriflash {rest}").replace("RECIPE", &recipe);
    match stage {
        Stage::Assemble => vec![command("inspect RECIPE")],
        Stage::Parity => vec![command("run RECIPE")],
        Stage::Sanitize => vec![command("sanitize RECIPE")],
        Stage::Stress => vec![command("mutate RECIPE"), command("sanitize RECIPE --seeds 22")],
        Stage::Resources => vec![command("inspect RECIPE")],
        Stage::Code => vec![command("inspect RECIPE --sass")],
        Stage::Bench => {
            let measured = match &facts.evidence.bench {
                Record::Ran(log) => log.points.first().map(|point| point.problem.clone()),
                Record::NotRun { .. } => None,
            };
            vec![command("bench --problem") + &format!(" '{}'", measured.unwrap_or(case.problem.to_string()))]
        }
        Stage::Profile => vec![],
    }
}
