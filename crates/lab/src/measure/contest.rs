//! Takes rounds until every verdict is decided, or the patience ends.

use super::rounds::{Condition, Reading, Refused, Round, Rounds};
use super::verdict::{MARGIN, Verdict, Versus};

/// Times contenders, by number.
pub trait Stopwatch {
    /// One sample of one contender. An error ends the contest: somebody has died.
    fn sample(&mut self, contender: usize) -> Result<Reading, String>;

    /// Whether its clocks agree: where they do not, the sample is taken again.
    fn is_sound(&mut self, _: &Reading) -> bool {
        true
    }

    /// How the GPU is, asked after each round.
    fn condition(&mut self) -> Option<Condition> {
        None
    }

    /// Whether there is time for another round.
    fn has_time(&mut self) -> bool {
        true
    }
}

/// How many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Before anything is decided.
    pub least: usize,
    pub most: usize,
}

impl Default for Limits {
    /// A difference of 2 % takes about 15 rounds where noise is 1.1 % a round, 90 where it is 2.3 %, and 400 where it is 5 %, as with peers
    /// in processes of their own at the power cap of an H200. Whoever has less time stops earlier.
    fn default() -> Limits {
        Limits { least: 12, most: 500 }
    }
}

/// Clocks may disagree because the host was busy with something else.
pub const ATTEMPTS: usize = 3;

/// Times `contenders`, the first two of which are the candidate, against each other. One round before them warms up and is
/// thrown away. A round with a sample on which clocks never agreed is the last: it decides nothing, and says why.
pub fn contest(watch: &mut dyn Stopwatch, contenders: usize, limits: Limits, seed: u64) -> Result<Rounds, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut rounds = Rounds::default();
    take(watch, contenders, &mut random)?;
    // Who looks after every round, and stops when he likes what he sees, sees what is not there: looks are few.
    let mut look = limits.least;
    while rounds.0.len() < limits.most && watch.has_time() {
        let round = take(watch, contenders, &mut random)?;
        let sound = round.readings.iter().all(|reading| watch.is_sound(reading));
        rounds.0.push(round);
        if !sound {
            break;
        }
        if rounds.0.len() == look {
            if is_decided(&rounds, contenders) {
                break;
            }
            look += look.div_ceil(2);
        }
    }
    Ok(rounds)
}

fn take(watch: &mut dyn Stopwatch, contenders: usize, random: &mut fastrand::Rng) -> Result<Round, String> {
    let mut order: Vec<usize> = (0..contenders).collect();
    random.shuffle(&mut order);
    let (mut readings, mut refused) = (vec![None; contenders], vec![]);
    for &contender in &order {
        readings[contender] = Some(sample(watch, contender, &mut refused)?);
    }
    let readings = readings.into_iter().flatten().collect();
    Ok(Round { order, readings, refused: Some(refused), condition: watch.condition() })
}

/// The first sample that is sound, or the last attempt; those before it are not forgotten.
fn sample(watch: &mut dyn Stopwatch, contender: usize, refused: &mut Vec<Refused>) -> Result<Reading, String> {
    let mut reading = watch.sample(contender)?;
    for _ in 1..ATTEMPTS {
        if watch.is_sound(&reading) {
            break;
        }
        refused.push(Refused { contender, reading });
        reading = watch.sample(contender)?;
    }
    Ok(reading)
}

/// Before the last round a difference must be surer than it need be in the end: by an interval of about 99 %, since it is looked for
/// several times.
const SURE: f64 = 1.4;

fn is_decided(rounds: &Rounds, contenders: usize) -> bool {
    let sure = |versus: &Versus| match versus.verdict {
        Verdict::Faster | Verdict::Slower => versus.time.widened(SURE).excludes_one_by(MARGIN),
        Verdict::Equal => true,
        Verdict::Ambiguous { .. } => false,
    };
    let decided = |peer| rounds.versus(peer).is_some_and(|versus| sure(&versus));
    (2..contenders).all(decided)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    /// A GPU in a model: every contender's time with the noise of a round, which all share, and its own.
    struct Model {
        random: fastrand::Rng,
        seconds: Vec<f64>,
        own: f64,
        shared: f64,
        drift: f64,
        taken: usize,
    }

    /// Mostly near zero, with tails: what a virtual machine's neighbours do.
    fn noise(random: &mut fastrand::Rng, spread: f64) -> f64 {
        let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let tail = if random.u8(..) < 5 { 3.0 } else { 1.0 };
        spread * normal * tail
    }

    impl Stopwatch for Model {
        fn sample(&mut self, contender: usize) -> Result<Reading, String> {
            if self.taken.is_multiple_of(self.seconds.len()) {
                self.drift += noise(&mut self.random, self.shared);
            }
            self.taken += 1;
            let log = self.drift + noise(&mut self.random, self.own);
            Ok(Reading {
                seconds: Figure::new(self.seconds[contender] * log.exp()),
                megahertz: Some(Figure::new(1980.0)),
                clocks: None,
            })
        }
    }

    /// Verdicts of 100 contests against a peer whose time is that share of the candidate's.
    fn verdicts(peer: f64, own: f64) -> Vec<Verdict> {
        let one = |seed| {
            let random = fastrand::Rng::with_seed(seed);
            let mut model =
                Model { random, seconds: vec![1e-5, 1e-5, 1e-5 * peer], own, shared: 0.02, drift: 0.0, taken: 0 };
            let rounds = contest(&mut model, 3, Limits::default(), seed).unwrap();
            rounds.versus(2).unwrap().verdict
        };
        (0..100).map(one).collect()
    }

    /// Noise of one round's log-ratio on an H200: 0.8 % below 400 W, 1.1 % typically, 2.3 % at the power cap.
    const NOISE: [f64; 3] = [0.008, 0.011, 0.023];

    #[test]
    fn two_of_the_same_are_not_called_different() {
        for noise in NOISE {
            let verdicts = verdicts(1.0, noise / 2f64.sqrt());
            let wrong = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Faster | Verdict::Slower)).count();
            assert!(wrong <= 1, "{wrong} of 100 at {noise}");
        }
    }

    #[test]
    fn a_slowdown_of_two_percent_is_seen() {
        for noise in NOISE {
            let verdicts = verdicts(1.0 / 1.02, noise / 2f64.sqrt());
            let seen = verdicts.iter().filter(|verdict| **verdict == Verdict::Slower).count();
            assert!(seen >= 95, "{seen} of 100 at {noise}");
        }
    }

    #[test]
    fn a_contest_ends_when_somebody_dies_or_time_is_up() {
        struct Dying(usize);
        impl Stopwatch for Dying {
            fn sample(&mut self, _: usize) -> Result<Reading, String> {
                self.0 += 1;
                if self.0 > 10 { Err("died".into()) } else { Ok(reading(1.0)) }
            }
        }
        assert_eq!(contest(&mut Dying(0), 3, Limits::default(), 0), Err("died".into()));
        struct Late(usize);
        impl Stopwatch for Late {
            fn sample(&mut self, _: usize) -> Result<Reading, String> {
                Ok(reading(1.0))
            }
            fn has_time(&mut self) -> bool {
                self.0 += 1;
                self.0 <= 3
            }
        }
        assert_eq!(contest(&mut Late(0), 3, Limits::default(), 0).unwrap().0.len(), 3);
    }

    fn reading(seconds: f64) -> Reading {
        Reading { seconds: Figure::new(seconds), megahertz: Some(Figure::new(1980.0)), clocks: None }
    }

    /// The times are the numbers of the samples: those in the list are not sound.
    struct Unsound {
        taken: usize,
        unsound: std::ops::Range<usize>,
    }

    impl Stopwatch for Unsound {
        fn sample(&mut self, _: usize) -> Result<Reading, String> {
            self.taken += 1;
            Ok(reading(self.taken as f64))
        }

        fn is_sound(&mut self, reading: &Reading) -> bool {
            !self.unsound.contains(&(reading.seconds.value() as usize))
        }
    }

    /// Samples 1 to 3 warm up, 4 to 6 are the first round.
    #[test]
    fn a_sample_that_is_taken_again_is_written_down() {
        let mut watch = Unsound { taken: 0, unsound: 5..7 };
        let rounds = contest(&mut watch, 3, Limits { least: 2, most: 2 }, 0).unwrap();
        let first = &rounds.0[0];
        let second = first.order[1];
        let refused: Vec<(usize, f64)> =
            rounds.refused().map(|(_, one)| (one.contender, one.reading.seconds.value())).collect();
        assert_eq!(refused, [(second, 5.0), (second, 6.0)]);
        assert_eq!((first.readings[second].seconds.value(), rounds.0.len()), (7.0, 2));
    }

    #[test]
    fn where_clocks_never_agree_the_last_attempt_is_kept_and_ends_the_contest() {
        let mut watch = Unsound { taken: 0, unsound: 7..1000 };
        let rounds = contest(&mut watch, 3, Limits::default(), 0).unwrap();
        assert_eq!(rounds.0.len(), 2);
        let last = &rounds.0[1];
        assert_eq!(last.refused.as_ref().map(Vec::len), Some(3 * (ATTEMPTS - 1)));
        assert_eq!(last.readings[last.order[0]].seconds.value(), 6.0 + ATTEMPTS as f64);
    }

    #[test]
    fn the_order_of_a_round_is_random() {
        let random = fastrand::Rng::with_seed(1);
        let mut model = Model { random, seconds: vec![1.0; 4], own: 0.01, shared: 0.01, drift: 0.0, taken: 0 };
        let rounds = contest(&mut model, 4, Limits { least: 40, most: 40 }, 7).unwrap();
        let firsts: std::collections::BTreeSet<usize> = rounds.0.iter().map(|round| round.order[0]).collect();
        assert_eq!(firsts.len(), 4);
    }
}
