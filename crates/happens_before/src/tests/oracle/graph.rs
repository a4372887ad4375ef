//! The graph of operations, and how lanes take what others have released.

use std::rc::Rc;

use super::{Oracle, Thread};
use crate::tests::lanes_of;
use crate::{Lanes, Scope, Space};

pub type Id = usize;

#[derive(Clone, Default)]
pub struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, id: Id) {
        self.0.resize(self.0.len().max(id / 64 + 1), 0);
        self.0[id / 64] |= 1 << (id % 64);
    }

    pub fn has(&self, id: Id) -> bool {
        self.0.get(id / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    fn join(&mut self, other: &Set) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

/// Ancestors by the model, and as if every scope were wide and everything synchronised.
#[derive(Clone, Default)]
pub struct Node {
    pub exact: Set,
    pub loose: Set,
}

#[derive(Clone, Copy)]
pub struct Release {
    pub node: Id,
    pub scope: Option<Scope>,
    pub block: u32,
    pub lane: (u32, u8),
    /// A completion tells of itself only, not of the thread that issued it.
    pub alone: bool,
}

impl Release {
    pub fn reaches(&self, block: u32, scope: Scope) -> bool {
        let wide = |scope: Scope| scope != Scope::Cta || self.block == block;
        self.scope.is_some_and(wide) && wide(scope)
    }

    pub fn broken(self) -> Release {
        Release { scope: None, ..self }
    }
}

impl Oracle {
    pub fn block(&self, warp: u32) -> u32 {
        warp / self.warps_per_block
    }

    pub(super) fn thread(&mut self, warp: u32, lane: u8) -> &mut Thread {
        &mut self.threads[warp as usize * 32 + lane as usize]
    }

    pub fn live(&mut self, at: Lanes) -> Vec<u8> {
        lanes_of(at.mask).into_iter().filter(|lane| !self.thread(at.warp, *lane).exited).collect()
    }

    pub fn fresh(&mut self, parents: &[Id]) -> Id {
        let mut node = Node::default();
        for parent in parents {
            node.exact.join(&self.nodes[*parent].exact);
            node.loose.join(&self.nodes[*parent].loose);
        }
        node.exact.insert(self.nodes.len());
        node.loose.insert(self.nodes.len());
        self.nodes.push(Rc::new(node));
        self.nodes.len() - 1
    }

    /// The lane's next operation, which also follows `parents`.
    pub fn next(&mut self, warp: u32, lane: u8, parents: &[Id]) -> Id {
        let last = self.thread(warp, lane).last;
        let id = self.fresh(&[&[last], parents].concat());
        self.thread(warp, lane).last = id;
        id
    }

    /// The lane learns that units are done, and nothing else.
    pub fn learn(&mut self, warp: u32, lane: u8, done: &[Id]) {
        let id = self.next(warp, lane, &[]);
        let node = Rc::make_mut(&mut self.nodes[id]);
        done.iter().for_each(|done| {
            node.exact.insert(*done);
            node.loose.insert(*done);
        });
    }

    pub fn take(&mut self, warp: u32, lane: u8, release: &Release, ordered: bool) {
        let id = self.next(warp, lane, &[]);
        let mut from = (*self.nodes[release.node]).clone();
        if release.alone {
            from = Node::default();
            from.exact.insert(release.node);
            from.loose.insert(release.node);
        }
        let node = Rc::make_mut(&mut self.nodes[id]);
        node.loose.join(&from.loose);
        if ordered {
            node.exact.join(&from.exact);
        }
    }

    pub fn take_all(&mut self, at: Lanes, releases: &[Release], scope: Scope) {
        let block = self.block(at.warp);
        for lane in self.live(at) {
            releases.iter().for_each(|release| self.take(at.warp, lane, release, release.reaches(block, scope)));
        }
    }

    /// The lane has read what others released: without an acquire that only explains.
    pub fn pend(&mut self, warp: u32, lane: u8, place: (Space, u64), release: Release) {
        self.take(warp, lane, &release, false);
        self.thread(warp, lane).pending.push((place, release));
    }

    /// Takes what the lane has read so far, at one place or everywhere.
    pub fn take_pending(&mut self, warp: u32, lane: u8, place: Option<(Space, u64)>, scope: Scope) {
        let block = self.block(warp);
        let pending = self.thread(warp, lane).pending.clone();
        for (_, release) in pending.iter().filter(|(at, _)| place.is_none_or(|place| place == *at)) {
            self.take(warp, lane, release, release.reaches(block, scope));
        }
    }
}
