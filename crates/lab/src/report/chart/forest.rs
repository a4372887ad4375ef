//! The ratio of each problem and peer with its interval, on one scale.

use serde::Serialize;

use super::Svg;
use super::scale::Scale;
use super::series::how;
use crate::bench::Point;
use crate::measure::{Interval, MARGIN, Verdict};

const WIDTH: f64 = 100.0;
const HEIGHT: f64 = 20.0;
/// No interval is drawn beyond: one without an end would leave no room for the others.
const WIDEST: (f64, f64) = (0.25, 4.0);
/// Without any figure beyond, so far.
const NARROWEST: (f64, f64) = (0.95, 1.05);
/// What may stand below the axis.
const MARKS: [f64; 15] = [0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0];
/// Marks are so far from each other, in hundredths of the width.
const APART: f64 = 14.0;

/// Every problem with its peers.
#[derive(Serialize)]
pub(crate) struct Forest {
    /// `Of 90 comparisons the candidate is faster in 60, equal in 3, slower in 20; 7 are not decided.`
    tally: String,
    marks: Vec<Mark>,
    groups: Vec<Group>,
}

/// A figure at the axis, and where it stands in hundredths of the width.
#[derive(Serialize)]
struct Mark {
    text: String,
    place: String,
}

#[derive(Serialize)]
struct Group {
    problem: String,
    how: String,
    /// The candidate against itself.
    same: String,
    rows: Vec<Row>,
    missing: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Row {
    peer: String,
    svg: String,
    ratio: String,
    interval: String,
    verdict: String,
    /// Why it is not decided.
    why: String,
}

pub(crate) fn forest(points: &[Point]) -> Forest {
    let scale = scale(points);
    Forest {
        tally: tally(points),
        marks: marks(&scale),
        groups: points.iter().map(|point| group(point, &scale)).collect(),
    }
}

fn tally(points: &[Point]) -> String {
    let verdicts: Vec<String> =
        points.iter().flat_map(Point::duels).map(|(_, versus)| versus.verdict.to_string()).collect();
    let count = |word: &str| verdicts.iter().filter(|verdict| *verdict == word).count();
    let [faster, equal, slower, open] = ["FASTER", "EQUAL", "SLOWER", "AMBIGUOUS"].map(count);
    let all = crate::stages::counted(verdicts.len(), "comparison");
    format!(
        "Of {all}, the candidate is faster in {faster}, equal in {equal} and slower in {slower}; {open} not decided."
    )
}

fn group(point: &Point, scale: &Scale) -> Group {
    let row = |(contender, versus): (&crate::bench::Contender, crate::measure::Versus)| Row {
        peer: contender.name.clone(),
        svg: drawing(&versus.time, &versus.verdict, scale, &format!("{}, {}", point.problem, contender.name)),
        ratio: versus.time.ratio.to_string(),
        interval: format!("{} to {}", versus.time.low, versus.time.high),
        verdict: versus.verdict.to_string(),
        why: match &versus.verdict {
            Verdict::Ambiguous { why } => why.clone(),
            _ => String::new(),
        },
    };
    Group {
        problem: point.problem.clone(),
        how: how(point),
        same: point.same().map_or("not measured".into(), |same| same.to_string()),
        rows: point.duels().map(row).collect(),
        missing: point.missing.iter().map(|missing| (missing.name.clone(), missing.why.clone())).collect(),
    }
}

/// The margin, one, the interval and its middle.
fn drawing(interval: &Interval, verdict: &Verdict, scale: &Scale, label: &str) -> String {
    let mut svg = Svg::stretched(WIDTH, HEIGHT, &format!("{label}: {interval}, {verdict}"));
    let (left, right) = (scale.place(1.0 / (1.0 + MARGIN)), scale.place(1.0 + MARGIN));
    svg.rectangle("margin", (left, 0.0), (right - left, HEIGHT));
    svg.line("one", (scale.place(1.0), 0.0), (scale.place(1.0), HEIGHT));
    let class = verdict.to_string().to_lowercase();
    let middle = HEIGHT / 2.0;
    let [low, high] = [interval.low, interval.high].map(|end| (scale.place(end.value()), middle));
    svg.line(&format!("whisker {class}"), low, high);
    svg.dot(&class, (scale.place(interval.ratio.value()), middle));
    svg.finish()
}

fn scale(points: &[Point]) -> Scale {
    let intervals: Vec<Interval> = points.iter().flat_map(Point::duels).map(|(_, versus)| versus.time).collect();
    let low = intervals.iter().map(|one| one.low.value()).fold(NARROWEST.0, f64::min).max(WIDEST.0);
    let high = intervals.iter().map(|one| one.high.value()).fold(NARROWEST.1, f64::max).min(WIDEST.1);
    // A little room, so that no dot lies on the edge.
    Scale::logarithmic((low / 1.02, high * 1.02), (0.0, WIDTH))
}

/// One, and of the others those that have room.
fn marks(scale: &Scale) -> Vec<Mark> {
    let mut chosen: Vec<f64> = vec![1.0];
    let place = |figure: f64| scale.place(figure);
    for figure in MARKS {
        let inside = (1.0..WIDTH - 1.0).contains(&place(figure));
        if inside && chosen.iter().all(|other| (place(*other) - place(figure)).abs() >= APART) {
            chosen.push(figure);
        }
    }
    chosen.sort_by(f64::total_cmp);
    chosen.into_iter().map(|one| Mark { text: one.to_string(), place: super::number(place(one)) }).collect()
}
