//! What verdicts are worth under the noise of a real GPU: that of the rounds in `evidence/`, in which the same kernel was timed twice.

use flate2::read::GzDecoder;
use lab::Figure;
use lab::measure::{Limits, Reading, Rounds, Stopwatch, Verdict, contest};
use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;
use std::io::Read;
use std::path::Path;

/// How far the two samples of each round of a problem lay from their mean: logarithms of time and of the clock.
type Noise = Vec<[(f64, f64); 2]>;

/// Problems from the quietest to the noisiest.
fn recorded() -> Vec<(String, Noise)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence/samples.csv.gz");
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let column = |name: &str| columns.iter().position(|other| *other == name).unwrap();
    let [problem, round, kept, contender, seconds, megahertz] =
        ["problem", "round", "kept", "contender", "seconds", "megahertz"].map(column);
    let mut rounds: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        if fields[contender].starts_with("candidate") && fields[kept] != "refused" {
            let key = (fields[problem].to_string(), fields[round].to_string());
            let log = |column: usize| fields[column].parse::<f64>().unwrap().ln();
            rounds.entry(key).or_default().push((log(seconds), log(megahertz)));
        }
    }
    let mut noise: BTreeMap<String, Noise> = BTreeMap::new();
    for ((problem, _), logs) in rounds {
        let (time, clock) = ((logs[0].0 - logs[1].0) / 2.0, (logs[0].1 - logs[1].1) / 2.0);
        noise.entry(problem).or_default().push([(time, clock), (-time, -clock)]);
    }
    let mut all: Vec<(String, Noise)> = noise.into_iter().collect();
    all.sort_by(|(_, one), (_, other)| spread(one).total_cmp(&spread(other)));
    all
}

/// The standard deviation of a round's log-ratio.
fn spread(noise: &Noise) -> f64 {
    let squares: f64 = noise.iter().map(|[one, other]| (one.0 - other.0).powi(2)).sum();
    (squares / noise.len() as f64).sqrt()
}

/// The candidate, the candidate again, and a peer, each with the noise of some recorded sample. Two lie less far from their mean than from what
/// they would be without noise, by √2.
struct Replayed<'a> {
    noise: &'a Noise,
    peer: f64,
    random: fastrand::Rng,
}

impl Stopwatch for Replayed<'_> {
    fn sample(&mut self, contender: usize) -> Result<Reading, String> {
        let (time, clock) = self.noise[self.random.usize(..self.noise.len())][self.random.usize(..2)];
        let seconds = if contender == 2 { self.peer } else { 1.0 };
        Ok(Reading {
            seconds: Figure::new(1e-5 * seconds * (time * SQRT_2).exp()),
            megahertz: Some(Figure::new(1980.0 * (clock * SQRT_2).exp())),
            clocks: None,
        })
    }
}

/// Of a hundred contests against a peer whose time is that share of the candidate's, how many end so.
fn verdicts(noise: &Noise, peer: f64, counts: impl Fn(&Verdict) -> bool) -> usize {
    let ends = |seed: u64| {
        let mut watch = Replayed { noise, peer, random: fastrand::Rng::with_seed(seed) };
        let rounds = contest(&mut watch, 3, Limits::default(), seed).unwrap();
        counts(&rounds.versus(2).unwrap().verdict)
    };
    (0..100).filter(|seed| ends(*seed)).count()
}

/// Equals are told apart in one of a hundred contests at most, whatever the noise. A slowdown of 2 % is seen in ninety-five at least.
#[test]
fn under_recorded_noise_equals_are_equal_and_a_slowdown_of_two_percent_is_seen() {
    let problems = recorded();
    assert_eq!(problems.len(), 26);
    for level in [0, problems.len() / 4, problems.len() / 2, problems.len() - 1] {
        let (problem, noise) = &problems[level];
        let wrong = verdicts(noise, 1.0, |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower));
        let seen = verdicts(noise, 1.0 / 1.02, |verdict| *verdict == Verdict::Slower);
        let faster = verdicts(noise, 1.0 / 1.02, |verdict| *verdict == Verdict::Faster);
        println!("{problem}: {:.1} % a round: {wrong} wrong; of slowdowns {seen} seen", spread(noise) * 100.0);
        assert!(wrong <= 1 && seen >= 95 && faster == 0, "{problem}: {wrong} wrong, {seen} seen, {faster} faster");
    }
}

/// At its power limit an H200 has another clock in every sample: a rule by which nothing but a still clock counts would leave nothing to
/// decide by.
#[test]
fn under_recorded_clocks_a_third_of_the_rounds_of_every_problem_counts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence/logs/bench.json");
    let log: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let points = log["record"]["ran"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 26);
    for point in points {
        let mut rounds: Rounds = serde_json::from_value(point["rounds"].clone()).unwrap();
        rounds.0.iter_mut().for_each(|round| round.refused = Some(vec![]));
        let (kept, all) = (rounds.kept().len(), rounds.0.len());
        println!("{}: {kept} of {all} rounds count", point["problem"]);
        assert!(3 * kept >= all, "{}: {kept} of {all} rounds count", point["problem"]);
    }
}
