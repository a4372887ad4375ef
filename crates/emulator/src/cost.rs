//! What instructions cost, added up per statement until the launch is over: lints tell of it.

use crate::checks::Check;
use crate::finding::{Actor, Report};
use std::collections::BTreeMap;

/// What one execution cost, and what it would have to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub spent: u64,
    pub needed: u64,
}

/// The costs of all executions of a statement, as one check counts them.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Who paid most at once, the first of them.
    pub example: Actor,
    pub worst: Spent,
    pub times: u64,
    pub total: Spent,
    /// What to say of it, if anything.
    word: fn(&Cost) -> Option<Report>,
}

impl Cost {
    /// One execution.
    pub fn new(example: Actor, spent: Spent, word: fn(&Cost) -> Option<Report>) -> Cost {
        Cost { example, worst: spent, times: 1, total: spent, word }
    }

    /// Costs of an execution that was counted before.
    pub fn later(self) -> Cost {
        Cost { times: 0, ..self }
    }

    fn add(&mut self, other: Cost) {
        if other.worst.spent > self.worst.spent {
            (self.worst, self.example) = (other.worst, other.example);
        }
        self.times += other.times;
        self.total.spent += other.total.spent;
        self.total.needed += other.total.needed;
    }
}

/// By statement and check.
#[derive(Clone, Debug, Default)]
pub struct Costs(BTreeMap<(u32, &'static str), Cost>);

impl Costs {
    pub fn add(&mut self, statement: u32, check: &'static Check, cost: Cost) {
        self.insert((statement, check.name), cost);
    }

    pub fn absorb(&mut self, other: Costs) {
        other.0.into_iter().for_each(|(key, cost)| self.insert(key, cost));
    }

    fn insert(&mut self, key: (u32, &'static str), cost: Cost) {
        match self.0.get_mut(&key) {
            Some(known) => known.add(cost),
            None => {
                self.0.insert(key, cost);
            }
        }
    }

    /// What is worth saying.
    pub fn reports(self) -> impl Iterator<Item = Report> {
        self.0.into_values().filter_map(|cost| Some((cost.word)(&cost)?.count(cost.times)))
    }
}
