//! The clock over rounds: whether it stood still, and which rounds were dropped because it did not.

use super::frame::Frame;
use super::scale::Scale;
use crate::bench::Point;
use crate::figures::Figure;
use crate::measure::Round;

/// Nothing where the clock was not read.
pub(crate) fn clock(point: &Point) -> Option<String> {
    let rounds = &point.rounds.0;
    let clocks: Vec<(usize, f64)> =
        rounds.iter().enumerate().filter_map(|(number, round)| Some((number, megahertz(round)?))).collect();
    let (low, high) = clocks
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), (_, clock)| (low.min(*clock), high.max(*clock)));
    // At least two percent, so that noise does not look like a mountain.
    let (low, high) = ((low * 0.995).min(high * 0.99), high * 1.005);
    if clocks.is_empty() || !low.is_finite() {
        return None;
    }
    let last = rounds.len().saturating_sub(1) as f64;
    let label = format!("clock of each round: {}", point.problem);
    let mut frame = Frame::new(&label, "MHz, by round", Scale::linear((0.0, last), Frame::width()), (low, high));
    frame.below(0.0, "1");
    if last > 0.0 {
        frame.below(last, &rounds.len().to_string());
    }
    let places: Vec<(f64, f64)> = clocks.iter().map(|(number, clock)| frame.place(*number as f64, *clock)).collect();
    frame.svg.path("curve clock", &places);
    let kept = point.rounds.kept();
    for ((number, _), place) in clocks.iter().zip(&places) {
        if !kept.iter().any(|round| std::ptr::eq(*round, &rounds[*number])) {
            frame.svg.dot("dropped", *place);
        }
    }
    Some(frame.svg.finish())
}

/// The mean of those that were read.
fn megahertz(round: &Round) -> Option<f64> {
    let clocks: Vec<f64> = round.readings.iter().filter_map(|reading| reading.megahertz.map(Figure::value)).collect();
    (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64)
}
