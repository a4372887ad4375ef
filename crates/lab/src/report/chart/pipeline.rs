//! What the warps of one block did, and what was in flight meanwhile.

use launch::Policy;
use serde::Serialize;

use super::Svg;
use super::scale::Scale;
use crate::stages::counted;
use crate::timeline::{Spans, Timeline, Track};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 20.0;

#[derive(Serialize)]
pub(crate) struct Pipeline {
    kernel: String,
    seed: u64,
    /// What the seed's schedule is.
    about: &'static str,
    end: u64,
    cut: bool,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    svg: String,
    /// What the row comes to.
    note: String,
}

pub(crate) fn pipeline(timeline: &Timeline) -> Pipeline {
    let scale = Scale::linear((0.0, timeline.end as f64), (0.0, WIDTH));
    Pipeline {
        kernel: timeline.kernel.clone(),
        seed: timeline.seed,
        about: Policy::of_seed(timeline.seed).about(),
        end: timeline.end,
        cut: timeline.cut,
        rows: timeline.tracks.iter().map(|track| row(track, &scale)).collect(),
    }
}

fn row(track: &Track, scale: &Scale) -> Row {
    let is_warp = track.name.starts_with("warp ");
    let mut svg = Svg::stretched(WIDTH, HEIGHT, &format!("timeline of {}", track.name));
    let depth = track.busy.depth();
    let most = depth.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
    if is_warp {
        svg.path("waits", &boxes(&track.waits, scale));
        svg.path("busy", &boxes(&track.busy, scale));
    } else {
        svg.path("flight", &stairs(&depth, most, scale));
    }
    let note = match is_warp {
        true => counted(track.waits.0.len(), "wait"),
        false => format!("{} in all, at most {most} at once", track.busy.0.len()),
    };
    Row { name: track.name.clone(), svg: svg.finish(), note }
}

/// One line around all of them, which runs along the ground between.
fn boxes(spans: &Spans, scale: &Scale) -> Vec<(f64, f64)> {
    let corners = |(start, end): &(u64, u64)| {
        let [left, right] = [start, end].map(|moment| scale.place(*moment as f64));
        [(left, HEIGHT), (left, 2.0), (right, 2.0), (right, HEIGHT)]
    };
    spans.0.iter().flat_map(corners).collect()
}

/// How many are in flight, as a share of the most.
fn stairs(depth: &[(u64, usize)], most: usize, scale: &Scale) -> Vec<(f64, f64)> {
    let height = |depth: usize| HEIGHT - (HEIGHT - 2.0) * depth as f64 / most.max(1) as f64;
    let mut places = vec![(0.0, HEIGHT)];
    for (moment, depth) in depth {
        let across = scale.place(*moment as f64);
        let before = places[places.len() - 1].1;
        places.extend([(across, before), (across, height(*depth))]);
    }
    places
}
