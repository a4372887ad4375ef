//! Logs beside the request and beside each other. What a GPU did, nobody can run again here: it must at least agree with itself.

use std::collections::BTreeMap;

use crate::Settings;
use crate::bench::Point;
use crate::case::Case;
use crate::harness;
use crate::pack::manifest::Predicate;
use crate::stages::half::Half;
use crate::stages::{Evidence, Record, parity, sanitize};

/// The first thing that does not fit.
pub fn check(predicate: &Predicate, evidence: &Evidence, cases: &[&Case]) -> Result<(), String> {
    check_request(&predicate.settings, evidence)?;
    check_gpu(predicate, evidence)?;
    cases.iter().try_for_each(|case| check_launches(case, evidence))
}

/// Logs of a GPU ask for the launches of the recipe, or all of them for none: they are older than the question.
pub fn check_launches(case: &Case, evidence: &Evidence) -> Result<(), String> {
    let Evidence { parity_gpu, sanitize_gpu, code_gpu, profile, .. } = evidence;
    let (subject, expected) = (case.subject(), harness::asked(&case.kernel, &case.resolved.launches));
    let is_older = *code_gpu == Half::NotAsked;
    let told = |stage: &str| Err(format!("{stage}: the log asks for other launches than the recipe of {}", case.name));
    if let Half::Ran(log) = parity_gpu
        && log.kernels.iter().any(|entry| entry.subject == subject && entry.seen.asked != expected)
    {
        return told("parity");
    }
    if let Half::Ran(log) = sanitize_gpu {
        let words = if is_older { vec![] } else { sanitize::gpu::asked(case) };
        if log.kernels.iter().any(|entry| entry.subject == subject && entry.asked != words) {
            return told("sanitize");
        }
    }
    if let Record::Ran(log) = profile {
        let expected = if is_older { vec![] } else { expected };
        if log.kernels.iter().any(|entry| entry.subject == subject && entry.asked != expected) {
            return told("profile");
        }
    }
    Ok(())
}

/// Logs answer the request.
fn check_request(settings: &Settings, evidence: &Evidence) -> Result<(), String> {
    let seeded = match &evidence.parity {
        Record::Ran(log) => log.kernels.iter().all(|entry| entry.data_seed == settings.data_seed),
        Record::NotRun { .. } => true,
    };
    let seeds_of = |entry: &sanitize::Entry| entry.runs.iter().map(|run| run.seed).collect::<Vec<_>>();
    let sown = match &evidence.sanitize {
        Record::Ran(log) => log.kernels.iter().all(|entry| seeds_of(entry) == settings.seeds),
        Record::NotRun { .. } => true,
    };
    let stressed = match &evidence.stress {
        Record::Ran(log) => log.kernels.iter().all(|entry| entry.has_rounds(settings.rounds)),
        Record::NotRun { .. } => true,
    };
    if seeded && sown && stressed { Ok(()) } else { Err("a log has other seeds than the manifest".into()) }
}

/// Logs of a GPU agree with each other and with the manifest: all of them are there or none, the same machine code was judged,
/// launched and timed, and bits that are said to be the emulator's are.
fn check_gpu(predicate: &Predicate, evidence: &Evidence) -> Result<(), String> {
    let Evidence { parity_gpu, sanitize_gpu, stress_gpu, resources_gpu, code_gpu, bench, profile, .. } = evidence;
    let halves = [
        *parity_gpu == Half::NoGpu,
        *sanitize_gpu == Half::NoGpu,
        *stress_gpu == Half::NoGpu,
        *resources_gpu == Half::NoGpu,
        *code_gpu == Half::NoGpu,
    ];
    let has_gpu = predicate.machine.gpu.is_some();
    if halves.contains(&has_gpu) {
        return Err(
            "some stages ran on a GPU that the manifest does not name, or did not run on the one that it names".into(),
        );
    }
    let is_older = *code_gpu == Half::NotAsked;
    if let Record::Ran(log) = bench
        && log.points.iter().any(|point| is_of_another_age(point, is_older))
    {
        return Err("either bench or the logs of the driver's code are older than the other".into());
    }
    let emulated = |module: &str| predicate.kernels.iter().any(|kernel| kernel.subject.module == module);
    if let Some(unseen) = predicate.measured.iter().find(|kernel| !is_older && !emulated(&kernel.subject.module)) {
        return Err(format!("{} was timed, and no other stage saw its module", unseen.subject.kernel));
    }
    let idle = bench.lacks_gpu() && profile.lacks_gpu();
    if !has_gpu && !idle {
        return Err("bench or profile say something else than that there was no GPU".into());
    }
    agree(evidence, predicate.settings.launches)
}

/// Older packs know neither what launches cost nor which samples were taken again, and others know both: who wants his samples to be asked for
/// nothing must say that all of his pack is older.
fn is_of_another_age(point: &Point, is_older: bool) -> bool {
    point.asks_for_launches() == is_older || point.tell_refused().any(|tells| tells == is_older)
}

/// The same kernel ran as the same machine code wherever it ran, and the emulator's bits are the emulator's.
fn agree(evidence: &Evidence, launches: usize) -> Result<(), String> {
    let mut codes: BTreeMap<&str, &str> = BTreeMap::new();
    for (kernel, cubin) in machine_code(evidence) {
        if *codes.entry(kernel).or_insert(cubin) != cubin {
            return Err(format!("{kernel}: logs speak of different machine code"));
        }
    }
    if let Half::Ran(log) = &evidence.parity_gpu {
        log.kernels.iter().try_for_each(|entry| emulated(entry, &evidence.parity))?;
    }
    if let Half::Ran(log) = &evidence.stress_gpu {
        let short = |entry: &&crate::stages::stress::gpu::Entry| entry.runs.iter().any(|run| run.launches != launches);
        if let Some(entry) = log.kernels.iter().find(short) {
            return Err(format!("{}: other numbers of launches than the manifest", entry.subject.kernel));
        }
    }
    Ok(())
}

/// Kernel and hash, from every log that has them.
fn machine_code(evidence: &Evidence) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    if let Half::Ran(log) = &evidence.parity_gpu {
        found.extend(log.kernels.iter().map(|entry| (entry.subject.kernel.as_str(), entry.cubin.as_str())));
    }
    if let Half::Ran(log) = &evidence.stress_gpu {
        found.extend(log.kernels.iter().map(|entry| (entry.subject.kernel.as_str(), entry.cubin.as_str())));
    }
    if let Half::Ran(log) = &evidence.resources_gpu {
        found.extend(log.kernels.iter().map(|entry| (entry.subject.kernel.as_str(), entry.cubin.as_str())));
    }
    if let Half::Ran(log) = &evidence.code_gpu {
        found.extend(log.kernels.iter().map(|entry| (entry.subject.kernel.as_str(), entry.cubin.as_str())));
        found.extend(log.listings.iter().map(|listing| (listing.kernel.as_str(), listing.cubin.as_str())));
    }
    if let Record::Ran(log) = &evidence.bench {
        for point in &log.points {
            let own = point.contenders.iter().take(crate::bench::CANDIDATES);
            found.extend(own.map(|contender| (point.subject.kernel.as_str(), contender.identity.as_str())));
        }
    }
    found
}

fn emulated(entry: &parity::gpu::Entry, emulator: &Record<parity::Report>) -> Result<(), String> {
    let Record::Ran(log) = emulator else { return Ok(()) };
    let own = log.kernels.iter().find(|other| other.subject == entry.subject);
    let expected = own.map(|own| own.seen.results() == entry.seen.results());
    if entry.as_emulated == expected {
        return Ok(());
    }
    Err(format!("{}: whether the bits are the emulator's does not follow from the logs", entry.subject.kernel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::test_point;

    #[test]
    fn a_point_is_as_old_as_its_pack() {
        let mut point = test_point(&[10.0, 10.0, 12.0]);
        assert!(!is_of_another_age(&point, false) && is_of_another_age(&point, true));
        point.rounds.0[5].refused = None;
        assert!(is_of_another_age(&point, false), "one round forgets what was taken again");
        point.rounds.0.iter_mut().for_each(|round| round.refused = None);
        assert!(is_of_another_age(&point, false) && is_of_another_age(&point, true), "launches are still known");
        point.contenders.iter_mut().for_each(|contender| contender.launches = None);
        assert!(is_of_another_age(&point, false) && !is_of_another_age(&point, true));
    }
}
