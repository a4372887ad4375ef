//! How a kernel of ours cuts its work: it is made anew with one thing changed.

use attention::configs::{Config, Math};

use super::super::setup::Setup;
use super::super::subject::{Design, Subject};
use super::{Axis, Variation};

/// Every configuration that differs in one thing and computes the problem.
pub fn others(subject: &Subject, setup: &Setup) -> Vec<Variation> {
    let Some(design) = &subject.design else { return vec![] };
    let made = |(axis, what, config): (Axis, String, Config)| {
        attention::kernels::check(&design.problem, &config).ok()?;
        Some(Variation::new(axis, what, setup.with((design.build)(&config).ok()?)))
    };
    changes(design).into_iter().filter_map(made).collect()
}

fn changes(design: &Design) -> Vec<(Axis, String, Config)> {
    let config = design.config;
    let mut all = vec![];
    let assertions = if config.debug { "without assertions" } else { "with assertions (`--debug`)" };
    all.push((Axis::Debug, assertions.to_string(), Config { debug: !config.debug, ..config }));
    for (name, math) in Math::BY_NAME.iter().filter(|(_, math)| *math != config.math.named()) {
        let other = config.with_math(*math).map(|other| Config { debug: config.debug, splits: config.splits, ..other });
        all.extend(other.ok().map(|other| (Axis::Math, format!("math {name}"), other)));
    }
    let stages = [config.stages.wrapping_sub(1), config.stages + 1].into_iter().filter(|stages| *stages > 0);
    let staged =
        |stages| (Axis::Stages, format!("stages {stages} instead of {}", config.stages), Config { stages, ..config });
    all.extend(stages.map(staged));
    let splits = [1, 2].into_iter().filter(|splits| *splits != config.splits);
    let split =
        |splits| (Axis::Splits, format!("splits {splits} instead of {}", config.splits), Config { splits, ..config });
    all.extend(splits.map(split));
    for other in Config::rows().filter(|other| other.id != config.id) {
        let other = other.with_math(config.math.named()).map(|other| Config {
            debug: config.debug,
            splits: config.splits,
            ..other
        });
        all.extend(other.ok().map(|other| (Axis::Tile, tile(&other), other)));
    }
    all
}

fn tile(config: &Config) -> String {
    let Config { id, rows, keys, warps, stages, .. } = config;
    format!("config {id}: tiles of {rows}×{keys}, {warps} warps, {stages} stages")
}
