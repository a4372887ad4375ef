//! The ratio by head and mask, and by length: one map for each peer.

use super::series::{contenders, families, length_text};
use super::{Svg, throughput::Panel};
use crate::bench::{CANDIDATES, Point};

const CELL: (f64, f64) = (46.0, 26.0);
const TOP: f64 = 22.0;
/// Above a row stands what it is of.
const NAME: f64 = 18.0;
/// Logarithms of ratios up to which a cell has each colour; beyond the last, the last.
const STEPS: [f64; 4] = [0.01, 0.05, 0.15, 0.30];

pub(crate) fn heat(points: &[Point]) -> Vec<Panel> {
    let peers = contenders(points).into_iter().skip(1);
    peers.filter_map(|peer| Some(Panel { name: peer.into(), svg: map(points, peer)? })).collect()
}

/// Nothing if no point has this peer.
fn map(points: &[Point], peer: &str) -> Option<String> {
    let families = families(points);
    let mut lengths: Vec<u32> = families.iter().flat_map(|family| family.points.iter().map(|(one, _)| *one)).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let rows = families.iter().filter(|family| family.points.iter().any(|(_, point)| ratio(point, peer).is_some()));
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let (width, step) = (CELL.0 * lengths.len() as f64, NAME + CELL.1 + 6.0);
    // Short maps are as wide as long ones, so that their letters have one size.
    let size = (width.max(360.0), TOP + step * rows.len() as f64);
    let mut svg = Svg::new(size.0, size.1, &format!("speed over {peer} by problem and length"));
    for (column, length) in lengths.iter().enumerate() {
        svg.text("tick middle", (CELL.0 * (column as f64 + 0.5), 12.0), &length_text(*length));
    }
    for (row, family) in rows.iter().enumerate() {
        let top = TOP + step * row as f64;
        svg.text("tick", (2.0, top + 12.0), &family.name);
        for (length, point) in &family.points {
            let column = lengths.iter().position(|other| other == length).unwrap_or(0) as f64;
            let Some(ratio) = ratio(point, peer) else { continue };
            svg.rectangle(&class(ratio), (CELL.0 * column + 1.0, top + NAME), (CELL.0 - 2.0, CELL.1));
            let middle = (CELL.0 * (column + 0.5), top + NAME + 17.0);
            svg.text(&format!("cell {}", class(ratio)), middle, &format!("{ratio:.2}"));
        }
    }
    Some(svg.finish())
}

fn ratio(point: &Point, peer: &str) -> Option<f64> {
    let place = point.contenders.iter().skip(CANDIDATES).position(|contender| contender.name == peer)?;
    Some(point.rounds.versus(place + CANDIDATES)?.time.ratio.value())
}

/// `up2`, `down4`, `even`.
fn class(ratio: f64) -> String {
    let distance = ratio.ln().abs();
    let step = STEPS.iter().filter(|step| distance > **step).count();
    match (step, ratio > 1.0) {
        (0, _) => "even".into(),
        (step, true) => format!("up{step}"),
        (step, false) => format!("down{step}"),
    }
}
