//! Every access to memory passes here: bounds, bytes nobody wrote, order. Then the bytes move.

use super::At;
use crate::audit::Column;
use crate::checks;
use crate::machine::{Cluster, Values, lanes};
use crate::memory::{LOCAL_WINDOW, PARAMETER_WINDOW, SharedMemory, in_window};
use happens_before::{Kind, Lanes, Places, Semantics, Site, Space as Watched};
use ptx::Space;

/// What an instruction does to memory, the same for all its lanes.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// None: generic addresses.
    pub space: Option<Space>,
    pub kind: Kind,
    /// Bytes per lane.
    pub bytes: u32,
}

/// Where one lane's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Accessed {
    /// Outside every allocation: reads give zero, writes vanish.
    Nothing,
    Global {
        allocation: usize,
        offset: usize,
    },
    /// In the shared memory of a block of the cluster.
    Shared {
        block: usize,
        offset: usize,
    },
    Parameter {
        offset: usize,
    },
    /// In the memory of one thread.
    Local {
        warp: usize,
        lane: usize,
        offset: usize,
    },
}

impl Accessed {
    /// The place so many bytes further.
    pub fn behind(self, bytes: usize) -> Accessed {
        match self {
            Accessed::Nothing => Accessed::Nothing,
            Accessed::Global { allocation, offset } => Accessed::Global { allocation, offset: offset + bytes },
            Accessed::Shared { block, offset } => Accessed::Shared { block, offset: offset + bytes },
            Accessed::Parameter { offset } => Accessed::Parameter { offset: offset + bytes },
            Accessed::Local { warp, lane, offset } => Accessed::Local { warp, lane, offset: offset + bytes },
        }
    }
}

/// The detector's address of a byte of shared memory.
pub fn watched_shared(block: usize, offset: usize) -> u64 {
    (block as u64) << 32 | offset as u64
}

/// The block and the offset of a detector's address in shared memory.
pub fn shared_byte(watched: u64) -> (usize, u64) {
    ((watched >> 32) as usize, watched & 0xffff_ffff)
}

impl Cluster<'_, '_> {
    /// Finds the bytes of every lane, and lets the checks see the access.
    pub fn access(&mut self, at: At, access: &Access, addresses: &Values) -> [Accessed; 32] {
        self.ordered_access(at, access, Semantics::default(), addresses)
    }

    /// The same for an access that may acquire or release.
    pub fn ordered_access(
        &mut self,
        at: At,
        access: &Access,
        semantics: Semantics,
        addresses: &Values,
    ) -> [Accessed; 32] {
        let mut accessed = [Accessed::Nothing; 32];
        for lane in lanes(at.mask) {
            accessed[lane] = self.locate((at.warp, lane), access, addresses[lane]);
        }
        self.watch(at, access, addresses, &accessed);
        self.order(at, access, semantics, &accessed);
        if access.kind.writes() {
            lanes(at.mask).for_each(|lane| self.mark_written(accessed[lane], access.bytes as usize));
        }
        accessed
    }

    /// `thread`: the warp and the lane that access.
    pub fn locate(&self, thread: (usize, usize), access: &Access, address: u64) -> Accessed {
        let bytes = u64::from(access.bytes);
        let (space, address) = match access.space {
            None => self.resolve(address),
            Some(space) => (space, address),
        };
        match space {
            Space::Shared => self.locate_shared(thread.0, address, bytes),
            Space::Parameter => {
                let inside = address.checked_add(bytes).is_some_and(|end| end <= self.shape.parameters.len() as u64);
                if inside { Accessed::Parameter { offset: address as usize } } else { Accessed::Nothing }
            }
            Space::Local => {
                let (warp, lane) = thread;
                let found = self.warps[warp].local[lane].find(address, bytes);
                found.map_or(Accessed::Nothing, |offset| Accessed::Local { warp, lane, offset })
            }
            _ => match self.global.find(address, bytes) {
                Ok((allocation, offset)) => Accessed::Global { allocation, offset },
                Err(_) => Accessed::Nothing,
            },
        }
    }

    /// The space of a generic address, and the address there.
    pub fn resolve(&self, address: u64) -> (Space, u64) {
        let shared = SharedMemory::of_generic(address).map(|offset| (Space::Shared, offset));
        let local = || in_window(LOCAL_WINDOW, address).map(|offset| (Space::Local, offset));
        let parameter = || in_window(PARAMETER_WINDOW, address).map(|offset| (Space::Parameter, offset));
        shared.or_else(local).or_else(parameter).unwrap_or((Space::Global, address))
    }

    /// The space that `isspacep` sees in a generic address.
    pub fn space_of(&self, address: u64) -> Space {
        match self.resolve(address).0 {
            Space::Global if self.global.is_constant(address) => Space::Constant,
            other => other,
        }
    }

    fn locate_shared(&self, warp: usize, address: u64, bytes: u64) -> Accessed {
        let (block, address) = self.cluster_place(warp, address);
        let found = self.blocks.get(block).and_then(|home| home.shared.find(address, bytes));
        found.map_or(Accessed::Nothing, |offset| Accessed::Shared { block, offset })
    }

    /// Does a generic address of shared memory lie in the warp's own block?
    pub fn is_own(&self, warp: usize, address: u64) -> bool {
        let offset = SharedMemory::of_generic(address);
        offset.is_some_and(|offset| self.cluster_place(warp, offset).0 == self.rank(warp))
    }

    /// The block that an address of shared memory means to a warp, and the offset there.
    pub fn cluster_place(&self, warp: usize, address: u64) -> (usize, u64) {
        let (rank, offset) = SharedMemory::split(address);
        (rank.unwrap_or(self.rank(warp)), offset)
    }

    fn watch(&mut self, at: At, access: &Access, addresses: &Values, accessed: &[Accessed; 32]) {
        let outside =
            lanes(at.mask).filter(|lane| accessed[*lane] == Accessed::Nothing).fold(0, |m, lane| m | 1 << lane);
        if outside != 0 {
            checks::wrong_space::report_outside(self, at, access, addresses, outside);
        }
        checks::misaligned::watch(self, at.among(!outside), access, addresses);
        if self.checks && matches!(access.kind, Kind::Read | Kind::StrongRead | Kind::Atomic) {
            checks::uninitialised_memory::watch(self, at, access, accessed);
        }
        if self.lints.is_some() {
            checks::lint_access(self, at, access, accessed);
        }
    }

    /// Tells the race detector, once per space.
    fn order(&mut self, at: At, access: &Access, semantics: Semantics, accessed: &[Accessed; 32]) {
        let relaxed = Semantics { release: false, acquire: false, ..semantics };
        let semantics = if self.orders(at) { semantics } else { relaxed };
        for space in [Watched::Shared, Watched::Global] {
            let mut places = [0; 32];
            let mut mask = 0;
            for lane in lanes(at.mask) {
                if let Some(place) = self.watched_place(space, accessed[lane]) {
                    places[lane] = place;
                    mask |= 1 << lane;
                }
            }
            if mask != 0 {
                let who = Lanes { warp: at.warp as u32, mask };
                let what = (access.kind, semantics);
                self.detector.ordered_access(who, Site(at.statement), what, space, Places::Each(&places), access.bytes);
            }
        }
    }

    /// The detector's address of an access, if it lies in this space.
    pub fn watched_place(&self, space: Watched, accessed: Accessed) -> Option<u64> {
        match (space, accessed) {
            (Watched::Shared, Accessed::Shared { block, offset }) => Some(watched_shared(block, offset)),
            (Watched::Global, Accessed::Global { allocation, offset }) => Some(self.global.address(allocation, offset)),
            _ => None,
        }
    }

    /// Up to eight bytes.
    pub fn fetch(&self, accessed: Accessed, skip: usize, bytes: usize) -> u64 {
        self.note(Column::Read, accessed, skip, bytes);
        match accessed {
            Accessed::Nothing => 0,
            Accessed::Global { allocation, offset } => self.global.pages(allocation).read(offset + skip, bytes),
            Accessed::Shared { block, offset } => self.blocks[block].shared.bytes.read(offset + skip, bytes),
            Accessed::Local { warp, lane, offset } => self.warps[warp].local[lane].bytes.read(offset + skip, bytes),
            Accessed::Parameter { offset } => {
                let all = &self.shape.parameters[offset + skip..offset + skip + bytes];
                all.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
            }
        }
    }

    /// Any number of bytes.
    pub fn fetch_all(&self, accessed: Accessed, skip: usize, into: &mut [u8]) {
        let bytes = into.len();
        self.note(Column::Read, accessed, skip, bytes);
        let from = |data: &[u8], offset: usize, into: &mut [u8]| into.copy_from_slice(&data[offset..offset + bytes]);
        match accessed {
            Accessed::Nothing => into.fill(0),
            Accessed::Global { allocation, offset } => self.global.pages(allocation).copy_to(offset + skip, into),
            Accessed::Shared { block, offset } => from(self.blocks[block].shared.bytes.data(), offset + skip, into),
            Accessed::Local { warp, lane, offset } => {
                from(self.warps[warp].local[lane].bytes.data(), offset + skip, into);
            }
            Accessed::Parameter { offset } => from(&self.shape.parameters, offset + skip, into),
        }
    }

    pub fn put_all(&mut self, accessed: Accessed, skip: usize, bytes: &[u8]) {
        match accessed {
            Accessed::Nothing | Accessed::Parameter { .. } => {}
            Accessed::Global { allocation, offset } => self.global.pages_mut(allocation).write(offset + skip, bytes),
            Accessed::Shared { block, offset } => self.blocks[block].shared.bytes.write_all(offset + skip, bytes),
            Accessed::Local { warp, lane, offset } => {
                self.warps[warp].local[lane].bytes.write_all(offset + skip, bytes)
            }
        }
        self.note_put(accessed, skip, bytes.len());
    }

    pub fn put(&mut self, accessed: Accessed, skip: usize, bytes: usize, value: u64) {
        match accessed {
            Accessed::Nothing | Accessed::Parameter { .. } => {}
            Accessed::Global { allocation, offset } => {
                self.global.pages_mut(allocation).write(offset + skip, &value.to_le_bytes()[..bytes])
            }
            Accessed::Shared { block, offset } => self.blocks[block].shared.bytes.write(offset + skip, bytes, value),
            Accessed::Local { warp, lane, offset } => {
                self.warps[warp].local[lane].bytes.write(offset + skip, bytes, value)
            }
        }
        self.note_put(accessed, skip, bytes);
    }

    pub fn mark_written(&mut self, accessed: Accessed, bytes: usize) {
        match accessed {
            Accessed::Nothing | Accessed::Parameter { .. } => {}
            Accessed::Global { allocation, offset } => self.global.pages_mut(allocation).mark_written(offset, bytes),
            Accessed::Shared { block, offset } => self.blocks[block].shared.bytes.mark_written(offset, bytes),
            Accessed::Local { warp, lane, offset } => self.warps[warp].local[lane].bytes.mark_written(offset, bytes),
        }
    }

    /// The first bytes of an access that nobody wrote, and how many.
    pub fn first_unwritten(&self, accessed: Accessed, bytes: usize) -> Option<(Accessed, usize)> {
        self.note(Column::Asked, accessed, 0, bytes);
        self.unwritten(accessed, bytes)
    }

    /// The same, when it is no check that asks.
    pub fn unwritten(&self, accessed: Accessed, bytes: usize) -> Option<(Accessed, usize)> {
        match accessed {
            Accessed::Nothing | Accessed::Parameter { .. } => None,
            Accessed::Global { allocation, offset } => {
                let range = self.global.pages(allocation).first_unwritten(offset, bytes)?;
                Some((Accessed::Global { allocation, offset: range.start }, range.len()))
            }
            Accessed::Shared { block, offset } => {
                let range = self.blocks[block].shared.bytes.first_unwritten(offset, bytes)?;
                Some((Accessed::Shared { block, offset: range.start }, range.len()))
            }
            Accessed::Local { warp, lane, offset } => {
                let range = self.warps[warp].local[lane].bytes.first_unwritten(offset, bytes)?;
                Some((Accessed::Local { warp, lane, offset: range.start }, range.len()))
            }
        }
    }
}
