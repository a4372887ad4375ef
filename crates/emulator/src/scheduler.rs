//! The adversary: which warp runs next, when bytes land, which waits give up. Its policy says what it is after, a seed fixes
//! the rest.

use launch::Policy;
use launch::backend::Options;

/// The order in which ready warps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The first ready warp runs until it waits, or for very long.
    Forwards,
    Backwards,
    Random,
    /// Some warps only run when no other can.
    Starving(Starved),
}

/// Who starves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starved {
    /// Warps that start asynchronous operations.
    Producers,
    /// Warps that start none.
    Consumers,
    Warp(usize),
}

/// When the bytes of an asynchronous operation arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// At the wait that covers it.
    Late,
    AtOnce,
    Random,
    /// A stretch now and a stretch then.
    Ranges,
}

#[derive(Clone, Debug)]
pub struct Adversary {
    order: Order,
    landing: Landing,
    /// Of eight waits that are not over, so many give up.
    impatience: u64,
    /// The first look of a wait that is not over gives up.
    first_looks_fail: bool,
    meets_late: bool,
    random: SplitMix,
    /// How often a warp was chosen.
    choices: usize,
    /// Per warp: has it started an asynchronous operation?
    producers: Vec<bool>,
}

/// Instructions that a warp of a random schedule runs at most before another may.
const MAX_TURN: u64 = 64;
/// Choices after which a warp that spins for another lets that one run: hardware is fair at last.
const PATIENCE: usize = 1024;
/// The same for warps that starve.
const HUNGER: usize = 64;

impl Adversary {
    /// The schedule of one cluster of so many warps.
    pub fn new(options: &Options, cluster: u64, warps: usize) -> Adversary {
        let policy = options.policy.unwrap_or(Policy::of_seed(options.seed));
        // Numbers that follow each other must not start in the same stream, a step apart.
        let mut random = SplitMix(options.seed ^ SplitMix(cluster).next());
        let victim = Starved::Warp((random.next() % warps.max(1) as u64) as usize);
        let (order, landing) = match policy {
            Policy::Lazy => (Order::Forwards, Landing::Late),
            Policy::LazyReversed => (Order::Backwards, Landing::Late),
            Policy::Eager => (Order::Forwards, Landing::AtOnce),
            Policy::EagerReversed => (Order::Backwards, Landing::AtOnce),
            Policy::Random | Policy::Spurious | Policy::Parted => (Order::Random, Landing::Random),
            Policy::Ranges => (Order::Random, Landing::Ranges),
            Policy::ProducersAhead => (Order::Starving(Starved::Consumers), Landing::Random),
            Policy::ConsumersAhead => (Order::Starving(Starved::Producers), Landing::Late),
            Policy::OneLast => (Order::Starving(victim), Landing::Random),
        };
        let impatience = match policy {
            Policy::Spurious => 6,
            _ if order == Order::Random => 1,
            _ => 0,
        };
        Adversary {
            order,
            landing,
            impatience,
            first_looks_fail: matches!(policy, Policy::Lazy | Policy::LazyReversed),
            meets_late: policy == Policy::Parted,
            random,
            choices: 0,
            producers: vec![false; warps],
        }
    }

    /// One of `ready` that runs next, and for how many instructions at most.
    pub fn choose(&mut self, ready: usize) -> (usize, u64) {
        self.choices += 1;
        let passed_over = self.choices / PATIENCE % ready;
        match self.order {
            Order::Forwards => (passed_over, u64::MAX),
            Order::Backwards => (ready - 1 - passed_over, u64::MAX),
            Order::Random => ((self.random.next() % ready as u64) as usize, 1 + self.random.next() % MAX_TURN),
            Order::Starving(_) => ((self.random.next() % ready as u64) as usize, MAX_TURN),
        }
    }

    /// May others run between the two sides of a branch that parts, or its sides meet late?
    pub fn comes_between(&self) -> bool {
        self.meets_late || !matches!(self.order, Order::Forwards | Order::Backwards)
    }

    /// Does anybody starve now?
    pub fn starves_some(&self) -> bool {
        matches!(self.order, Order::Starving(_)) && self.choices % HUNGER != HUNGER - 1
    }

    /// Does this warp, as long as others can run?
    pub fn starves(&self, warp: usize) -> bool {
        match self.order {
            Order::Starving(Starved::Producers) => self.producers[warp],
            Order::Starving(Starved::Consumers) => !self.producers[warp],
            Order::Starving(Starved::Warp(victim)) => warp == victim,
            _ => false,
        }
    }

    /// A warp has started an asynchronous operation.
    pub fn see_producer(&mut self, warp: usize) {
        self.producers[warp] = true;
    }

    /// May copies land before they are waited for?
    pub fn lands_early(&self) -> bool {
        self.landing != Landing::Late
    }

    /// Do operations land in parts?
    pub fn lands_in_ranges(&self) -> bool {
        self.landing == Landing::Ranges
    }

    /// Does an operation land as it starts?
    pub fn lands_at_start(&mut self) -> bool {
        self.lands_early() && !self.lands_in_ranges() && self.lands()
    }

    /// Which of the operations in flight, if any, lands between two turns.
    pub fn drifts(&mut self, flying: usize) -> Option<usize> {
        let now = match self.landing {
            Landing::Random => self.random.next().is_multiple_of(4),
            Landing::Ranges => true,
            Landing::Late | Landing::AtOnce => false,
        };
        let overdue = self.choices % PATIENCE == PATIENCE - 1;
        (flying > 0 && (now || overdue)).then(|| (self.random.next() % flying as u64) as usize)
    }

    /// Does a wait give up at once, as the manual allows? `again`: it has given up before.
    pub fn gives_up(&mut self, again: bool) -> bool {
        self.first_looks_fail && !again || self.impatience > 0 && self.random.next() % 8 < self.impatience
    }

    /// Do lanes that a branch parted meet again as late as they may?
    pub fn meets_late(&self) -> bool {
        self.meets_late
    }

    /// Does one copy land now?
    pub fn lands(&mut self) -> bool {
        self.landing == Landing::AtOnce || self.random.next().is_multiple_of(4)
    }
}

/// In which order the clusters of a launch that may wait for each other take their turns.
pub struct Rounds {
    order: Order,
    random: SplitMix,
}

impl Rounds {
    pub fn new(options: &Options) -> Rounds {
        let Adversary { order, random, .. } = Adversary::new(options, u64::MAX, 1);
        Rounds { order, random }
    }

    /// Puts the clusters of a round, which come in the order of their numbers, into the order of their turns.
    pub fn arrange<T>(&mut self, clusters: &mut [T]) {
        match self.order {
            Order::Forwards => {}
            Order::Backwards => clusters.reverse(),
            Order::Random | Order::Starving(_) => {
                for last in (1..clusters.len()).rev() {
                    clusters.swap(last, (self.random.next() % (last as u64 + 1)) as usize);
                }
            }
        }
    }
}

/// A small generator with a well-known definition (Steele, Lea and Flood, 2014), so that seeds mean the same everywhere.
#[derive(Clone, Debug)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adversary(policy: Policy) -> Adversary {
        Adversary::new(&Options { policy: Some(policy), seed: 7, ..Options::default() }, 0, 4)
    }

    #[test]
    fn every_policy_has_a_seed_and_a_name() {
        for (policy, seed) in Policy::ALL.into_iter().zip(0..) {
            assert_eq!(Policy::of_seed(seed), policy);
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert!("lasy".parse::<Policy>().is_err());
    }

    #[test]
    fn those_who_starve_are_those_the_policy_names() {
        let starved = |policy| {
            let mut adversary = adversary(policy);
            adversary.see_producer(2);
            assert!(adversary.starves_some());
            (0..4).filter(|warp| adversary.starves(*warp)).collect::<Vec<_>>()
        };
        assert_eq!(starved(Policy::ProducersAhead), [0, 1, 3]);
        assert_eq!(starved(Policy::ConsumersAhead), [2]);
        assert_eq!(starved(Policy::OneLast).len(), 1);
        assert!(!adversary(Policy::Random).starves_some());
    }

    #[test]
    fn nobody_starves_for_ever() {
        let mut adversary = adversary(Policy::OneLast);
        let mut fed = 0;
        for _ in 0..2 * HUNGER {
            adversary.choose(4);
            fed += usize::from(!adversary.starves_some());
        }
        assert_eq!(fed, 2);
    }

    #[test]
    fn waits_give_up_where_the_policy_says() {
        let gives_up = |policy| {
            let mut adversary = adversary(policy);
            (0..800).filter(|_| adversary.gives_up(true)).count()
        };
        assert_eq!(gives_up(Policy::Eager), 0);
        assert_eq!(gives_up(Policy::Lazy), 0);
        assert!(adversary(Policy::Lazy).gives_up(false));
        assert!((50..200).contains(&gives_up(Policy::Random)));
        assert!((500..700).contains(&gives_up(Policy::Spurious)));
    }
}
