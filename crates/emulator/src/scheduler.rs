//! The adversary: which warp runs next, and when copies land. A seed fixes everything.
//!
//! The first seeds are the extremes that most bugs need: warps one after the other, forwards or backwards, with copies
//! that land as late as they may or at once. The others mix at random.

/// The order in which ready warps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The first ready warp runs until it waits, or for very long.
    Forwards,
    Backwards,
    Random,
}

/// When the bytes of an asynchronous copy arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// At the wait that covers it.
    Late,
    AtOnce,
    Random,
}

#[derive(Clone, Debug)]
pub struct Adversary {
    order: Order,
    landing: Landing,
    random: SplitMix,
    /// How often a warp was chosen.
    choices: usize,
}

/// Instructions that a warp of a random schedule runs at most before another may.
const MAX_TURN: u64 = 64;
/// Choices after which a warp that spins for another lets that one run: hardware is fair at last.
const PATIENCE: usize = 1024;

impl Adversary {
    /// The schedule of one block.
    pub fn new(seed: u64, block: u64) -> Adversary {
        let (order, landing) = match seed {
            0 => (Order::Forwards, Landing::Late),
            1 => (Order::Backwards, Landing::Late),
            2 => (Order::Forwards, Landing::AtOnce),
            3 => (Order::Backwards, Landing::AtOnce),
            _ => (Order::Random, Landing::Random),
        };
        let mut random = SplitMix(seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        Adversary { order, landing, random, choices: 0 }
    }

    /// One of `ready` that runs next, and for how many instructions at most.
    pub fn choose(&mut self, ready: usize) -> (usize, u64) {
        self.choices += 1;
        let passed_over = self.choices / PATIENCE % ready;
        match self.order {
            Order::Forwards => (passed_over, u64::MAX),
            Order::Backwards => (ready - 1 - passed_over, u64::MAX),
            Order::Random => ((self.random.next() % ready as u64) as usize, 1 + self.random.next() % MAX_TURN),
        }
    }

    /// May others run between the two sides of a branch that parts?
    pub fn comes_between(&self) -> bool {
        self.order == Order::Random
    }

    /// May copies land before they are waited for?
    pub fn lands_early(&self) -> bool {
        self.landing != Landing::Late
    }

    /// Which of the operations in flight, if any, lands between two turns.
    pub fn drifts(&mut self, flying: usize) -> Option<usize> {
        let now = self.landing == Landing::Random && self.random.next().is_multiple_of(4);
        let overdue = self.choices % PATIENCE == PATIENCE - 1;
        (flying > 0 && (now || overdue)).then(|| (self.random.next() % flying as u64) as usize)
    }

    /// Does a wait give up at once, as the manual allows?
    pub fn gives_up(&mut self) -> bool {
        self.order == Order::Random && self.random.next().is_multiple_of(8)
    }

    /// Does one copy land now?
    pub fn lands(&mut self) -> bool {
        self.landing == Landing::AtOnce || self.random.next().is_multiple_of(4)
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
