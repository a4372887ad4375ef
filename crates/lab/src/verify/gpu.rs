//! What logs of a GPU say, beside each other: nobody here can run them again.

use std::collections::BTreeMap;

use crate::stages::half::Half;
use crate::stages::{Evidence, Record, parity};

/// The same kernel ran as the same machine code wherever it ran, and the emulator's bits are the emulator's.
pub fn check(evidence: &Evidence, launches: usize) -> Result<(), String> {
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
