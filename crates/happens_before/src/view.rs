//! What lanes know: which accesses they follow, and which of those a proxy fence has made fit for asynchronous units.

use super::abroad::Origin;
use super::clock::{Clock, Row};

/// Rows of a warp: its lanes, their `cp.async` copies, and the reads and the writes of their bulk stores.
pub const LANES: usize = 0;
pub const COPIES: usize = 1;
pub const STORE_READS: usize = 2;
pub const STORE_WRITES: usize = 3;
pub const ROWS: usize = 4;

/// What a proxy fence covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cover {
    /// The shared memory of every block of the cluster.
    Shared,
    /// The shared memory of one block.
    Cluster(u32),
    Global,
    /// Writes that were released to the tensormap proxy.
    TensorMap,
    /// What came before a `fence.sc`. It travels further than order does: see `words`.
    Sequential,
}

/// How many kinds of covers there are.
const COVERS: usize = 5;

impl Cover {
    fn index(self) -> usize {
        match self {
            Cover::Shared => 0,
            Cover::Cluster(_) => 1,
            Cover::Global => 2,
            Cover::TensorMap => 3,
            Cover::Sequential => 4,
        }
    }

    /// Does a fence with this cover serve an access that needs `needed`? Needs name one block, never all.
    fn serves(self, needed: Cover) -> bool {
        self == needed || self == Cover::Shared && matches!(needed, Cover::Cluster(_))
    }
}

/// What somebody knows.
#[derive(Clone, Default, Debug)]
pub struct View {
    /// Base causality order.
    pub seen: Clock,
    /// The parts of it that passed a proxy fence, by what the fence covers.
    fenced: Vec<(Cover, Clock)>,
    /// What would be known besides if every scope were wide and every relaxed operation synchronised. It only explains.
    pub loose: Clock,
    /// The grid before this one is complete.
    pub grids: bool,
    /// It was so before a `fence.sc`.
    sequential_grids: bool,
}

impl View {
    pub fn new(rows: usize) -> View {
        View { seen: Clock::new(rows), ..View::default() }
    }

    /// Knows that a row is complete up to `time`, and nothing else.
    pub fn of_row(row: Row, time: u32) -> View {
        let mut view = View::default();
        view.seen.raise(row, u32::MAX, time);
        view
    }

    pub fn join(&mut self, other: &View) {
        self.grids |= other.grids;
        self.sequential_grids |= other.sequential_grids;
        self.seen.join(&other.seen);
        other.fenced.iter().for_each(|(cover, clock)| self.cover(*cover).join(clock));
        if !other.loose.is_empty() {
            self.loose.join(&other.loose);
        }
    }

    /// Learns only for explanations.
    pub fn join_loosely(&mut self, other: &View) {
        self.loose.join(&other.seen);
        self.loose.join(&other.loose);
    }

    fn cover(&mut self, cover: Cover) -> &mut Clock {
        let found = self.fenced.iter().position(|(known, _)| *known == cover);
        let place = found.unwrap_or_else(|| {
            self.fenced.push((cover, Clock::default()));
            self.fenced.len() - 1
        });
        &mut self.fenced[place].1
    }

    /// A proxy fence by those who know this.
    pub fn fence(&mut self, cover: Cover) {
        let seen = std::mem::take(&mut self.seen);
        self.cover(cover).join(&seen);
        self.seen = seen;
        self.sequential_grids |= cover == Cover::Sequential && self.grids;
    }

    /// The lanes of `mask` whose operations up to `time` have not all passed a fence that serves `needed`.
    pub fn unfenced(&self, needed: Cover, origin: Origin, time: u32, mask: u32) -> u32 {
        let serving = self.fenced.iter().filter(|(cover, _)| cover.serves(needed));
        serving.fold(mask, |left, (_, clock)| clock.unknown_at(origin, time, left))
    }

    /// What a cluster knows as another one learns it. Fences of one block's shared memory mean nothing there.
    pub fn carried(&self, from: u32, to: u32) -> View {
        let everywhere = self.fenced.iter().filter(|(cover, _)| !matches!(cover, Cover::Cluster(_)));
        View {
            seen: self.seen.carried(from, to),
            fenced: everywhere.map(|(cover, clock)| (*cover, clock.carried(from, to))).collect(),
            loose: self.loose.carried(from, to),
            ..*self
        }
    }

    /// What passed a fence with exactly this cover.
    pub fn covered(&self, cover: Cover) -> Clock {
        self.fenced.iter().find(|(known, _)| *known == cover).map(|(_, clock)| clock.clone()).unwrap_or_default()
    }

    /// A `fence.sc` follows those that are known to have come before it.
    pub fn follow_sequential(&mut self) {
        let before = self.covered(Cover::Sequential);
        if !before.is_empty() {
            self.seen.join(&before);
        }
        self.grids |= self.sequential_grids;
    }

    /// Tells of earlier `fence.sc` and of nothing else.
    pub fn only_sequential(&self) -> Option<View> {
        let clock = self.covered(Cover::Sequential);
        let sequential_grids = self.sequential_grids;
        let tells = !clock.is_empty() || sequential_grids;
        tells.then(|| View { fenced: vec![(Cover::Sequential, clock)], sequential_grids, ..View::default() })
    }

    /// A view with the same order, for which only `clock` has passed a fence with this cover.
    pub fn with_only(&self, cover: Cover, clock: Clock) -> View {
        View {
            seen: self.seen.clone(),
            fenced: vec![(cover, clock)],
            loose: self.loose.clone(),
            sequential_grids: false,
            ..*self
        }
    }

    /// Writes out what lanes know of themselves; `time` is that of their own row.
    pub fn write_out(&mut self, first_row: Row, mask: u32, time: u32, own: &Own, block: u32) {
        self.seen.raise(first_row, mask, time);
        for row in COPIES..ROWS {
            self.seen.raise(first_row + row as Row, mask, own.seen[row]);
        }
        if !own.has_fenced {
            return;
        }
        for cover in [Cover::Shared, Cover::Cluster(block), Cover::Global, Cover::TensorMap, Cover::Sequential] {
            self.write_out_cover(cover, first_row, mask, own);
        }
    }

    /// Writes out what lanes did before their own `fence.sc`.
    pub fn write_out_sequential(&mut self, first_row: Row, mask: u32, own: &Own) {
        self.write_out_cover(Cover::Sequential, first_row, mask, own);
    }

    fn write_out_cover(&mut self, cover: Cover, first_row: Row, mask: u32, own: &Own) {
        for (row, time) in own.fenced[cover.index()].iter().enumerate().filter(|(_, time)| **time != 0) {
            self.cover(cover).raise(first_row + row as Row, mask, *time);
        }
    }
}

/// What each lane of a group knows of itself in the rows of its warp, beyond the view that it shares with others.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Own {
    /// Up to which batch the lane has waited. Its own row is known by program order.
    pub seen: [u32; ROWS],
    fenced: [[u32; ROWS]; COVERS],
    has_fenced: bool,
}

impl Own {
    /// Up to when a lane knows what it did itself.
    pub fn time(&self, row: usize) -> u32 {
        if row == LANES { u32::MAX } else { self.seen[row] }
    }

    /// Up to when what it did itself has passed a fence that serves `needed`; `block` is its own.
    pub fn fenced_time(&self, row: usize, needed: Cover, block: u32) -> u32 {
        let everywhere = self.fenced[Cover::Shared.index()][row];
        match needed {
            Cover::Cluster(other) if other != block => everywhere,
            Cover::Cluster(_) => everywhere.max(self.fenced[needed.index()][row]),
            _ => self.fenced[needed.index()][row],
        }
    }

    /// A proxy fence by the lane at `time` of its row.
    pub fn fence(&mut self, cover: Cover, time: u32) {
        self.has_fenced = true;
        self.fenced[cover.index()] = self.seen;
        self.fenced[cover.index()][LANES] = time;
    }

    /// What two lanes both know of themselves.
    pub fn least(&self, other: &Own) -> Own {
        let least = |one: &[u32; ROWS], two: &[u32; ROWS]| std::array::from_fn(|row| one[row].min(two[row]));
        Own {
            seen: least(&self.seen, &other.seen),
            fenced: std::array::from_fn(|cover| least(&self.fenced[cover], &other.fenced[cover])),
            has_fenced: self.has_fenced && other.has_fenced,
        }
    }

    /// The lane's knowledge without its fences.
    pub fn unfenced(&self) -> Own {
        Own { seen: self.seen, ..Own::default() }
    }
}
