//! How the samples of a point are distributed: the share of them that is at most so long.

use super::frame::Frame;
use super::scale::{Scale, tick_text, ticks};
use super::series::class;
use crate::bench::Point;

/// Nothing without samples.
pub(crate) fn distribution(point: &Point, names: &[&str]) -> Option<String> {
    let samples: Vec<Vec<f64>> = (0..point.contenders.len()).map(|contender| microseconds(point, contender)).collect();
    let all = || samples.iter().flatten().copied().filter(|time| time.is_finite());
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    // Samples that are all the same have a chart too.
    let room = ((high - low) * 0.03).max(high * 0.001);
    let (low, high) = (low - room, high + room);
    let label = format!("share of samples that took at most so many microseconds: {}", point.problem);
    let mut frame =
        Frame::new(&label, "share of samples, by µs", Scale::linear((low, high), Frame::width()), (0.0, 1.0));
    let marks = ticks(low, high, 4);
    let step = marks.get(1).map_or(1.0, |second| second - marks[0]);
    marks.iter().for_each(|mark| frame.below(*mark, &tick_text(*mark, step)));
    for (contender, times) in samples.iter().enumerate().rev() {
        let again = if contender == 1 { " again" } else { "" };
        let steps = steps(&frame, times, low);
        frame.svg.path(&format!("curve {}{again}", class(names, point, contender)), &steps);
    }
    Some(frame.svg.finish())
}

fn microseconds(point: &Point, contender: usize) -> Vec<f64> {
    let mut times: Vec<f64> = point.rounds.seconds(contender).into_iter().map(|seconds| seconds * 1e6).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// A stair with a step at each sample.
fn steps(frame: &Frame, times: &[f64], low: f64) -> Vec<(f64, f64)> {
    let mut places = vec![frame.place(low, 0.0)];
    for (count, time) in times.iter().enumerate() {
        let share = |count: usize| count as f64 / times.len() as f64;
        places.extend([frame.place(*time, share(count)), frame.place(*time, share(count + 1))]);
    }
    places
}
