//! One synchronisation added, taken away or weakened.

use std::collections::BTreeSet;

use emulator::mutate::{Mutant, mutants};
use launch::{Finding, Kernel, cure, header};
use ptx::{Immediate, Instruction, Operand, Statement};

use super::super::setup::Setup;
use super::super::symptom::Symptom;
use super::{Axis, Variation};

/// Mutants that are tried: of kernels with more, the first.
const MOST_MUTANTS: usize = 200;

/// What may be missing, strongest and most frequent first. Those that the target does not have are refused and left out.
#[rustfmt::skip] // One row per line.
const CANDIDATES: [(&str, Option<i128>); 9] = [
    ("bar.sync", Some(0)),
    ("bar.warp.sync", Some(0xffff_ffff)),
    ("cp.async.wait_all", None),
    ("fence.acq_rel.gpu", None),
    ("fence.proxy.async", None),
    ("wgmma.fence.sync.aligned", None),
    ("wgmma.wait_group.sync.aligned", Some(0)),
    ("cp.async.bulk.wait_group", Some(0)),
    ("griddepcontrol.wait", None),
];

/// A statement of a function.
type Site = (usize, usize);

/// The cures that the file itself brings, one at a time; then additions around what a finding names; then every mutant.
pub fn edits(failing: &Setup, symptom: &Symptom) -> Vec<Variation> {
    let kernel = &failing.kernel;
    let vary = |(what, kernel): (String, Kernel)| Variation::new(Axis::Instruction, what, failing.with(kernel));
    // A `trap` waits for nobody.
    let finding = symptom.finding().filter(|finding| finding.check != emulator::checks::trap::CHECK.name);
    let added = finding.map_or(vec![], |finding| additions(kernel, finding));
    let changed = kernel.resolve(&launch::Limits::default()).map_or(vec![], |resolved| mutants(kernel, &resolved));
    let mutated = |mutant: &Mutant| {
        let what = format!("{} at line {}: `{}`", mutant.operator.name(), mutant.line, mutant.text);
        (what, mutant.of(kernel))
    };
    // A spelling that the target does not have is no change that anybody could make.
    let taken = |(_, changed): &(String, Kernel)| is_taken(changed) || !is_taken(kernel);
    let mutated = changed.iter().take(MOST_MUTANTS).map(mutated).filter(taken);
    cures(kernel).into_iter().chain(added).chain(mutated).map(vary).collect()
}

fn is_taken(kernel: &Kernel) -> bool {
    ptx::verify(&kernel.parsed).is_empty()
}

/// Each `//@ fix` line alone.
fn cures(kernel: &Kernel) -> Vec<(String, Kernel)> {
    let (name, text) = (kernel.file(), &kernel.parsed.source.text);
    let marked: Vec<usize> =
        (0..).zip(text.lines()).filter(|(_, line)| line.contains("//@ fix")).map(|(at, _)| at).collect();
    let alone = |at: &usize| {
        let kept = (0..).zip(text.lines()).map(|(line, words): (usize, &str)| {
            if line == *at { words.to_string() } else { words.replace("//@ fix", "// fix") }
        });
        let cured = cure::cured(name, &kept.collect::<Vec<_>>().join("\n")).ok()??;
        let recipe = header::read(name, &cured).ok()?.unwrap_or(kernel.recipe.clone());
        Some((format!("the cure at line {} of the file", at + 1), Kernel::with_text(name, &cured, recipe).ok()?))
    };
    marked.iter().filter_map(alone).collect()
}

/// Each candidate at each place where it may belong; those that the finding's help names first.
fn additions(kernel: &Kernel, finding: &Finding) -> Vec<(String, Kernel)> {
    let help = finding.help.clone().unwrap_or_default();
    let mut candidates: Vec<(&str, Option<i128>)> = CANDIDATES.to_vec();
    candidates.sort_by_key(|(mnemonic, _)| !help.contains(mnemonic));
    let places = places(kernel, finding);
    let each = candidates.iter().flat_map(|candidate| places.iter().map(move |place| (candidate, place)));
    each.filter_map(|((mnemonic, operand), (site, place))| {
        let operands = operand.iter().map(|value| Operand::Immediate(Immediate::Integer(*value))).collect();
        let text = operand.map_or(mnemonic.to_string(), |value| format!("{mnemonic} {value}"));
        let kernel = inserted(kernel, *site, Instruction::new(mnemonic, operands).ok()?);
        is_taken(&kernel).then(|| (format!("`{text}` added {place}"), kernel))
    })
    .collect()
}

/// Before the second event, behind the first, and behind every barrier and wait of the same function.
fn places(kernel: &Kernel, finding: &Finding) -> Vec<(Site, String)> {
    let primary = finding.primary().line;
    let mut places: Vec<(Site, String)> =
        site(kernel, primary).map(|site| (site, format!("before line {primary}"))).into_iter().collect();
    let behind =
        |line: u32| site(kernel, line).map(|(function, at)| ((function, at + 1), format!("behind line {line}")));
    if finding.second.is_some() {
        places.extend(behind(finding.first.line));
    }
    let function = places.first().map(|((function, _), _)| *function);
    let lines: BTreeSet<u32> = kernel
        .resolve(&launch::Limits::default())
        .map_or(vec![], |resolved| mutants(kernel, &resolved))
        .iter()
        .filter(|mutant| mutant.operator.deletes())
        .map(|mutant| mutant.line)
        .collect();
    places.extend(lines.into_iter().filter_map(behind).filter(|((of, _), _)| Some(*of) == function));
    let mut seen = BTreeSet::new();
    places.retain(|(site, _)| seen.insert(*site));
    places
}

/// The first instruction on a line.
fn site(kernel: &Kernel, line: u32) -> Option<Site> {
    let parsed = &kernel.parsed;
    let functions = parsed.module.functions.iter().zip(&parsed.spans).enumerate();
    functions
        .flat_map(|(number, (function, spans))| {
            function.body.iter().zip(spans).enumerate().map(move |(at, pair)| (number, at, pair))
        })
        .find(|(_, _, (statement, spans))| {
            matches!(statement, Statement::Instruction(_)) && parsed.source.position(spans.head.start).line == line
        })
        .map(|(function, at, _)| (function, at))
}

/// The kernel with one more instruction, which reports place where the next one stands, or the last.
fn inserted(kernel: &Kernel, (function, at): Site, instruction: Instruction) -> Kernel {
    let mut kernel = kernel.clone();
    let spans = &mut kernel.parsed.spans[function];
    let near = spans.get(at).or(spans.last()).cloned().unwrap_or_default();
    spans.insert(at, near);
    kernel.parsed.module.functions[function].body.insert(at, Statement::Instruction(instruction));
    kernel
}
