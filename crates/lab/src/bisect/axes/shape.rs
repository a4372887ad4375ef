//! How much is launched, and for which architecture.

use launch::Expr;
use ptx::{Target, Tuning};

use super::super::bench::Bench;
use super::super::setup::Setup;
use super::super::symptom::Symptom;
use super::{Axis, Variation};

/// Threads of a warp.
const WARP: u64 = 32;

/// Where it loads: what the emulator knows.
const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_89", "sm_90", "sm_90a"];

/// Less of it. Results would be incomplete, so this is for findings and launches alone.
pub fn smaller(failing: &Setup, symptom: &Symptom, bench: &dyn Bench) -> Vec<Variation> {
    if matches!(symptom, Symptom::WrongResult(_)) {
        return vec![];
    }
    let Ok(resolved) = failing.kernel.resolve(&launch::Limits::default()) else { return vec![] };
    let mut all = vec![];
    let blocks =
        resolved.launches.iter().map(|launch| launch.grid.iter().map(|count| u64::from(*count)).product::<u64>());
    if bench.is_emulator() && blocks.max().is_some_and(|blocks| blocks > 1) {
        let setup = Setup { first_cluster: true, ..failing.clone() };
        all.push(Variation::new(Axis::Shape, "the first block (or cluster) of each launch alone", setup));
    }
    let threads =
        |launch: &launch::resolved::Launch| launch.block.iter().map(|count| u64::from(*count)).product::<u64>();
    if resolved.launches.iter().any(|launch| threads(launch) > WARP) && !fixes_threads(failing) {
        let mut setup = Setup { judged: false, ..failing.clone() };
        let warp = || [WARP as u32, 1, 1].map(Expr::from);
        setup.kernel.recipe.launches.iter_mut().for_each(|launch| launch.block = warp());
        all.push(Variation::new(Axis::Shape, "blocks of one warp", setup));
    }
    all
}

fn fixes_threads(setup: &Setup) -> bool {
    let mut tuning = setup.kernel.module().entries().flat_map(|entry| &entry.tuning);
    tuning.any(|one| matches!(one, Tuning::RequiredThreads(_)))
}

/// For another architecture.
pub fn targets(setup: &Setup) -> Vec<Variation> {
    let own = setup.kernel.module().target;
    let others = TARGETS.iter().filter_map(|name| name.parse::<Target>().ok()).filter(|target| *target != own);
    // Elsewhere instructions are missing that the kernel was written with: that is no news.
    let others = others.filter(|target| target.provides(own));
    let one = |target: Target| {
        let mut setup = setup.clone();
        setup.kernel.parsed.module.target = target;
        setup.kernel.recipe.target = Some(target);
        Variation::new(Axis::Target, format!("target {target} instead of {own}"), setup)
    };
    // A module of an old version is refused by a new target, which says nothing of the kernel.
    let refused = |setup: &Setup| !ptx::verify(&setup.kernel.parsed).is_empty();
    let was_refused = refused(setup);
    others.map(one).filter(|variation| was_refused || !refused(&variation.setup)).collect()
}
