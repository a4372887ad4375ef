//! Races with earlier grids, where the recipe lets the two overlap. They belong to `race-global`.

use super::race_global::{self, Scene};
use crate::finding::{Place, Report};
use crate::machine::LaunchShape;
use happens_before::{Crossing, Touches};
use std::sync::Arc;

/// A grid that may still run when the next one starts.
pub struct EarlierGrid {
    pub touches: Arc<Touches>,
    /// Does it let the next one start while its blocks run?
    pub early: bool,
    pub shape: LaunchShape,
    /// The first step of each of its functions, and which functions they are.
    pub layout: Vec<(u32, usize)>,
}

impl EarlierGrid {
    fn place(&self, step: u32) -> Place {
        let index = self.layout.partition_point(|(base, _)| *base <= step).saturating_sub(1);
        let (base, function) = self.layout[index];
        Place::Elsewhere(function, step - base)
    }
}

pub fn report(scene: &Scene, earlier: &EarlierGrid, crossing: &Crossing) -> Report {
    let before = Scene { shape: &earlier.shape, global: scene.global };
    let (block, verb, place) =
        (scene.block(&crossing.second), race_global::verb(&crossing.second), scene.place(crossing));
    let still = if crossing.first.write { "write" } else { "read" };
    let message = format!("block {block} {verb} {place}, which an earlier grid may still {still}");
    let mut first = before.actor(crossing, &crossing.first, 1);
    first.place = earlier.place(crossing.first.site.0);
    first.label = first.label.replace(" in block", " of an earlier grid, in block");
    let second = scene.actor(crossing, &crossing.second, 2);
    Report::new(&race_global::CHECK, message, second)
        .first(first)
        .count(crossing.count)
        .missing("`griddepcontrol.wait` before (2)")
        .help("emit `griddepcontrol.wait` before the first access to what earlier grids read or write")
}
