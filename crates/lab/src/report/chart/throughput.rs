//! Operations per second against length, with peers and what the GPU could do at most.

use serde::Serialize;

use super::frame::Frame;
use super::scale::Scale;
use super::series::{self, Family, families, length_text};
use crate::bench::{CANDIDATES, Point};

/// One chart for each family of problems.
#[derive(Serialize)]
pub(crate) struct Panel {
    pub name: String,
    pub svg: String,
}

pub(crate) fn throughput(points: &[Point]) -> Vec<Panel> {
    let names = series::contenders(points);
    families(points).iter().map(|family| panel(family, &names)).collect()
}

fn panel(family: &Family, names: &[&str]) -> Panel {
    let lengths: Vec<f64> = family.points.iter().map(|(length, _)| f64::from(*length)).collect();
    let across = Scale::logarithmic((lengths[0], lengths[lengths.len() - 1]), Frame::width());
    let label = format!("TFLOP/s against keys: {}", family.name);
    let mut frame = Frame::new(&label, "TFLOP/s", across, (0.0, most(family) * 1.04));
    for (length, _) in &family.points {
        frame.below(f64::from(*length), &length_text(*length));
    }
    let roof = family.points.iter().filter_map(|(length, point)| Some((f64::from(*length), roof(point)?)));
    curve(&mut frame, "roof", roof.collect());
    for (place, name) in names.iter().enumerate().rev() {
        let of = |(length, point): &(u32, &Point)| Some((f64::from(*length), teraflops(point, place, name)?));
        let class = format!("c{}", place % series::COLOURS);
        curve(&mut frame, &class, family.points.iter().filter_map(of).collect());
    }
    Panel { name: family.name.clone(), svg: frame.svg.finish() }
}

/// A line with a dot at each figure, so that one figure alone is seen too.
fn curve(frame: &mut Frame, class: &str, figures: Vec<(f64, f64)>) {
    let places: Vec<(f64, f64)> = figures.iter().map(|(across, up)| frame.place(*across, *up)).collect();
    frame.svg.path(&format!("curve {class}"), &places);
    places.iter().for_each(|place| frame.svg.dot(class, *place));
}

/// The first name is the candidate's.
fn teraflops(point: &Point, place: usize, name: &str) -> Option<f64> {
    let peers = || point.contenders.iter().skip(CANDIDATES).position(|contender| contender.name == name);
    let contender = if place == 0 { 0 } else { peers()? + CANDIDATES };
    point.teraflops(contender)
}

/// Nothing where the GPU's limits are not known.
fn roof(point: &Point) -> Option<f64> {
    let seconds = point.floor.seconds(&point.peaks);
    let roof = point.floor.operations.value() / seconds * 1e-12;
    roof.is_finite().then_some(roof)
}

/// The highest figure of a chart.
fn most(family: &Family) -> f64 {
    let of =
        |point: &Point| (0..point.contenders.len()).filter_map(|one| point.teraflops(one)).chain(roof(point)).collect();
    let all = family.points.iter().flat_map(|(_, point)| -> Vec<f64> { of(point) });
    all.fold(0.0, f64::max)
}
