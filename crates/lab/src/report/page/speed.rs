//! What the stage `bench` measured, as charts.

use serde::Serialize;

use crate::bench::Point;
use crate::outcome::Outcome;
use crate::report::chart::clock::clock;
use crate::report::chart::distribution::distribution;
use crate::report::chart::forest::{Forest, forest};
use crate::report::chart::heat::heat;
use crate::report::chart::series::{COLOURS, contenders, how};
use crate::report::chart::throughput::{Panel, throughput};
use crate::stages::Stage;

#[derive(Serialize)]
pub(super) struct View {
    /// Why there is nothing to show; empty where there is.
    nothing: String,
    legend: Vec<Named>,
    forest: Forest,
    throughput: Vec<Panel>,
    heat: Vec<Panel>,
    samples: Vec<Samples>,
}

/// A contender and its colour.
#[derive(Serialize)]
struct Named {
    name: String,
    class: String,
}

/// The samples of one point.
#[derive(Serialize)]
struct Samples {
    problem: String,
    how: String,
    rounds: usize,
    dropped: usize,
    retaken: usize,
    times: Vec<Times>,
    distribution: Option<String>,
    clock: Option<String>,
}

/// Microseconds of a contender that so many percent of its samples stay below, and what that comes to.
#[derive(Serialize)]
struct Times {
    name: String,
    percentiles: [String; 3],
    teraflops: String,
    roofline: String,
}

pub(super) fn view(points: &[Point], outcomes: &[Outcome]) -> View {
    let names = contenders(points);
    let named =
        |(place, name): (usize, &&str)| Named { name: name.to_string(), class: format!("c{}", place % COLOURS) };
    View {
        nothing: if points.is_empty() { reason(outcomes) } else { String::new() },
        legend: names.iter().enumerate().map(named).collect(),
        forest: forest(points),
        throughput: throughput(points),
        heat: heat(points),
        samples: points.iter().map(|point| samples(point, &names)).collect(),
    }
}

/// `bench was not run: it needs a GPU.`
fn reason(outcomes: &[Outcome]) -> String {
    let bench = outcomes.iter().find(|outcome| outcome.stage() == Stage::Bench);
    let why = bench.and_then(|outcome| outcome.state().why()).unwrap_or("its log has no point");
    format!("bench was not run: {}.", why.trim_end_matches('.'))
}

fn samples(point: &Point, names: &[&str]) -> Samples {
    Samples {
        problem: point.problem.clone(),
        how: how(point),
        rounds: point.rounds.0.len(),
        dropped: point.rounds.dropped(),
        retaken: point.retaken(),
        times: (0..point.contenders.len()).map(|contender| times(point, contender)).collect(),
        distribution: distribution(point, names),
        clock: clock(point),
    }
}

fn times(point: &Point, contender: usize) -> Times {
    let digits = |value: Option<f64>, factor: f64, decimals: usize| {
        value.map_or("–".into(), |value| format!("{:.decimals$}", value * factor))
    };
    Times {
        name: point.contenders[contender].name.clone(),
        percentiles: [0.5, 0.9, 0.99].map(|share| digits(point.percentile(contender, share), 1e6, 2)),
        teraflops: digits(point.teraflops(contender), 1.0, 1),
        roofline: digits(point.roofline(contender), 100.0, 1),
    }
}
