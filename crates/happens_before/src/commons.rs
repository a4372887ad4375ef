//! What clusters share that run in turns: who touched global memory, and what strong writes there published. A cluster that
//! runs apart has it for itself.

use super::abroad::Origin;
use super::clock::Row;
use super::mark::NAMES;
use super::shadow::Shadow;
use super::words::Words;
use super::{Detector, Space};

/// A row of some cluster that has touched global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    pub cluster: u32,
    pub row: Row,
    /// The warp that touched it first: the rows of mbarriers belong to none.
    pub warp: u32,
}

impl Member {
    pub fn seen_from(self, cluster: u32) -> Origin {
        Origin { abroad: (self.cluster != cluster).then_some(self.cluster), row: self.row }
    }
}

/// Lent to the cluster whose turn it is.
#[derive(Clone, Default)]
pub struct Commons {
    shadow: Shadow,
    words: Words,
    members: Vec<Member>,
}

/// The names of the rows of one cluster in the shadow of global memory.
#[derive(Clone, Default)]
pub struct Names {
    own: Vec<Option<u32>>,
    members: Vec<Member>,
}

impl Names {
    /// The name of a row, which it gets when it first touches global memory. When a million rows have one, the others get
    /// none, and what they do is not watched.
    #[inline]
    pub fn of(&mut self, cluster: u32, row: Row, warp: u32) -> Option<u32> {
        match self.own.get(row as usize) {
            Some(Some(name)) => Some(*name),
            _ => self.new_name(cluster, row, warp),
        }
    }

    fn new_name(&mut self, cluster: u32, row: Row, warp: u32) -> Option<u32> {
        let place = row as usize;
        if self.members.len() == NAMES {
            return None;
        }
        self.own.resize(self.own.len().max(place + 1), None);
        self.own[place] = Some(self.members.len() as u32);
        self.members.push(Member { cluster, row, warp });
        self.own[place]
    }

    /// Who is meant by the names in the shadow of a space; in that of shared memory they are numbers of rows.
    pub fn in_space(&self, space: Space) -> Option<&[Member]> {
        (space == Space::Global).then_some(&self.members)
    }

    pub fn member(&self, name: u32) -> Member {
        self.members[name as usize]
    }
}

impl Detector {
    /// Takes what clusters share at the beginning of a turn, and gives it back at the end.
    pub fn exchange(&mut self, commons: &mut Commons) {
        let shadow = &mut self.shadows[Space::Global as usize];
        std::mem::swap(shadow, &mut commons.shadow);
        // The record and what is compared are not of the shadow, but of who looks.
        std::mem::swap(&mut shadow.record, &mut commons.shadow.record);
        std::mem::swap(&mut shadow.earlier, &mut commons.shadow.earlier);
        std::mem::swap(&mut self.words[Space::Global as usize], &mut commons.words);
        std::mem::swap(&mut self.names.members, &mut commons.members);
    }
}
