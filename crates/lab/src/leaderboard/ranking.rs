//! From rounds to ranks. Two whose paired ratio is not clear of one by the margin tie: neither is ahead of the other.

use crate::bench::Point;
use crate::measure::{Interval, Reading, Rounds, Verdict, Versus, differs_from_itself};

/// The first contender is timed twice; the second of these is the control and has no rank.
const CONTROL: usize = 1;

/// One contender's place.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its number in the point.
    pub contender: usize,
    /// One more than the contenders that are ahead of it beyond doubt.
    pub rank: usize,
    /// Others have the same rank, or are not clear of it.
    pub tied_with: Vec<usize>,
    /// Its speed over that of the first in the list.
    pub against_first: Interval,
}

/// Everybody's place, or why there are none.
#[derive(Clone, Debug, PartialEq)]
pub enum Ranking {
    Ranked(Vec<Standing>),
    Undecided { why: String },
}

/// Ranks all contenders of a point, by number: fastest first.
pub fn rank(point: &Point) -> Ranking {
    let undecided = |why: &str| Ranking::Undecided { why: why.into() };
    let Some(same) = point.same() else { return undecided("no round has a time of every contender") };
    let rounds = &point.rounds;
    let has_a_rank = |number: &usize| *number != CONTROL && point.is_believed(*number);
    let mut order: Vec<usize> = (0..point.contenders.len()).filter(has_a_rank).collect();
    // The interval against the first contender has the mean of the paired logs: nothing else sorts as it does.
    let speed = |number: usize| interval(rounds, number, 0, seconds).map_or(f64::NEG_INFINITY, |one| one.ratio.value());
    order.sort_by(|one, other| speed(*other).total_cmp(&speed(*one)));
    // Noise alone puts nobody ahead of anybody: intervals are wide then, and all tie.
    if let Some(why) = differs_from_itself(&same) {
        return undecided(&why);
    }
    let Some(first) = order.first().copied() else { return undecided("there is no contender") };
    let standing = |&contender: &usize| {
        let others = order.iter().copied().filter(|other| *other != contender);
        let (mut rank, mut tied_with) = (1, vec![]);
        for other in others {
            match versus(rounds, other, contender, &same) {
                Verdict::Faster => rank += 1,
                Verdict::Slower => {}
                Verdict::Equal | Verdict::Ambiguous { .. } => tied_with.push(other),
            }
        }
        let against_first = interval(rounds, contender, first, seconds)?;
        Some(Standing { contender, rank, tied_with, against_first })
    };
    match order.iter().map(standing).collect::<Option<Vec<_>>>() {
        Some(standings) => Ranking::Ranked(standings),
        None => undecided("no round has a time of every contender"),
    }
}

fn seconds(reading: &Reading) -> Option<f64> {
    Some(reading.seconds.value())
}

fn cycles(reading: &Reading) -> Option<f64> {
    Some(reading.seconds.value() * reading.megahertz?.value())
}

/// The speed of one contender over another's, in the rounds that count.
fn interval(rounds: &Rounds, one: usize, other: usize, of: fn(&Reading) -> Option<f64>) -> Option<Interval> {
    let kept = rounds.kept();
    let pairs = kept.iter().map(|round| Some((of(round.readings.get(one)?)?, of(round.readings.get(other)?)?)));
    Interval::of_pairs(&pairs.collect::<Option<Vec<_>>>()?)
}

/// By the rules of `bench`: in time and in cycles, and only if the control shows no difference.
fn versus(rounds: &Rounds, one: usize, other: usize, same: &Interval) -> Verdict {
    match interval(rounds, one, other, seconds) {
        Some(time) => Versus::new(time, interval(rounds, one, other, cycles), Some(same)).verdict,
        None => Verdict::Ambiguous { why: "no round has a time of both".into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::point;

    fn ranks(point: &Point) -> Vec<(usize, usize)> {
        match rank(point) {
            Ranking::Ranked(all) => all.iter().map(|one| (one.contender, one.rank)).collect(),
            Ranking::Undecided { why } => panic!("{why}"),
        }
    }

    #[test]
    fn the_fastest_is_first_and_the_control_has_no_place() {
        assert_eq!(ranks(&point(&[10.0, 10.0, 8.0, 12.0])), [(2, 1), (0, 2), (3, 3)]);
        let Ranking::Ranked(all) = rank(&point(&[10.0, 10.0, 8.0])) else { panic!() };
        assert_eq!(all[1].against_first.to_string(), "0.800 [0.800, 0.800]");
    }

    #[test]
    fn who_did_not_do_the_work_or_cannot_have_has_no_place() {
        let mut point = point(&[10.0, 10.0, 2.0, 0.1, 12.0]);
        point.contenders[2].offence = Some("did not do the work".into());
        assert_eq!(ranks(&point), [(0, 1), (4, 2)]);
    }

    #[test]
    fn less_than_a_percent_is_a_tie_and_ranks_behind_it_are_skipped() {
        let point = point(&[10.0, 10.0, 10.05, 12.0]);
        assert_eq!(ranks(&point), [(0, 1), (2, 1), (3, 3)]);
        let Ranking::Ranked(all) = rank(&point) else { panic!() };
        assert_eq!((all[0].tied_with.clone(), all[2].tied_with.clone()), (vec![2], vec![]));
    }

    /// A ties with B and B with C, and yet A is ahead of C.
    #[test]
    fn ties_are_not_handed_on() {
        assert_eq!(ranks(&point(&[10.0, 10.0, 10.08, 10.16])), [(0, 1), (2, 1), (3, 2)]);
    }

    /// Every contender's time with noise of its own, in so many rounds.
    fn noisy(microseconds: &[f64], spread: f64, seed: u64) -> Point {
        let mut point = point(microseconds);
        let mut random = fastrand::Rng::with_seed(seed);
        for reading in point.rounds.0.iter_mut().flat_map(|round| &mut round.readings) {
            let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            *reading = reading.taking(reading.seconds.value() * (spread * normal).exp());
        }
        point
    }

    #[test]
    fn nobody_is_ahead_by_luck() {
        let ahead = (0..100).filter(|seed| match rank(&noisy(&[10.0; 6], 0.008, *seed)) {
            Ranking::Ranked(all) => all.iter().any(|one| one.rank > 1),
            Ranking::Undecided { .. } => false,
        });
        assert!(ahead.count() <= 1);
    }

    #[test]
    fn five_percent_are_seen_through_noise() {
        let right = (0..100).filter(|seed| match rank(&noisy(&[10.0, 10.0, 10.5, 11.1], 0.008, *seed)) {
            Ranking::Ranked(all) => all.iter().map(|one| (one.contender, one.rank)).eq([(0, 1), (2, 2), (3, 3)]),
            // The control showed a difference, which it may once in a while.
            Ranking::Undecided { .. } => true,
        });
        assert!(right.count() >= 95);
    }

    /// Three rounds know little: whoever is close ties, and who is far behind is behind all the same.
    #[test]
    fn few_rounds_rank_what_they_can() {
        let mut point = noisy(&[10.0, 10.0, 10.3, 700.0], 0.008, 1);
        point.rounds.0.truncate(3);
        let Ranking::Ranked(all) = rank(&point) else { panic!("not ranked") };
        assert_eq!(all.iter().map(|one| (one.contender, one.rank)).collect::<Vec<_>>(), [(0, 1), (2, 1), (3, 3)]);
        assert_eq!(all[0].tied_with, [2]);
    }

    #[test]
    fn a_control_that_differs_from_itself_ranks_nobody() {
        let Ranking::Undecided { why } = rank(&point(&[10.0, 10.2, 8.0])) else { panic!() };
        assert!(why.contains("differs from itself"), "{why}");
        let mut empty = point(&[10.0, 10.0, 8.0]);
        empty.rounds.0.clear();
        assert!(matches!(rank(&empty), Ranking::Undecided { .. }));
    }
}
