//! What a detector is told, one value for each call.

use std::ops::Range;

use crate::proxy::DESCRIPTOR;
use crate::{Kind, Lanes, ProxyFence, Semantics, Space, Stretch};

/// Barriers of a block. PTX ISA, "bar, barrier".
const BARRIERS: u32 = 16;

#[derive(Clone, Debug)]
pub enum Event {
    Access {
        at: Lanes,
        kind: Kind,
        semantics: Semantics,
        space: Space,
        addresses: Box<[u64; 32]>,
        bytes: u32,
    },
    Fence(Lanes, Semantics),
    ProxyFence(Lanes, ProxyFence),
    MapRelease(Lanes),
    MapAcquire {
        at: Lanes,
        map: u64,
    },
    Copy {
        at: Lanes,
        from: Box<[u64; 32]>,
        from_bytes: Box<[u32; 32]>,
        to: Box<[u64; 32]>,
        bytes: u32,
    },
    Commit(Lanes),
    Wait(Lanes, u32),
    WaitAll(Lanes),
    WarpSync(Lanes),
    /// `griddepcontrol.wait`.
    GridWait(Lanes),
    Arrive {
        at: Lanes,
        id: u32,
    },
    Complete {
        id: u32,
        waiters: Vec<Lanes>,
    },
    ClusterArrive(Lanes, Semantics),
    ClusterComplete {
        cluster: u32,
        waiters: Vec<Lanes>,
    },
    ClusterWait(Lanes),
    MbarrierInit {
        at: Lanes,
        barrier: u64,
    },
    /// `mbarrier.inval` and `fence.mbarrier_init` say who may use the object, and order no accesses.
    MbarrierInvalidate {
        barrier: u64,
    },
    InitFence(Lanes),
    MbarrierArrive {
        at: Lanes,
        barrier: u64,
        semantics: Semantics,
    },
    CopyArrive {
        at: Lanes,
        barrier: u64,
    },
    MbarrierComplete(u64),
    MbarrierWait {
        at: Lanes,
        barrier: u64,
        semantics: Semantics,
    },
    Load {
        at: Lanes,
        barrier: u64,
        reads: Vec<Stretch>,
        writes: Vec<Stretch>,
        map: Option<u64>,
    },
    RemoteStore {
        at: Lanes,
        barrier: u64,
        to: Stretch,
    },
    Store {
        at: Lanes,
        reads: Vec<Stretch>,
        writes: Vec<Stretch>,
        map: Option<u64>,
        element: Option<u32>,
    },
    BulkCommit(Lanes),
    BulkWait {
        at: Lanes,
        pending: u32,
        read: bool,
    },
    Wgmma {
        at: Lanes,
        reads: Vec<Stretch>,
    },
    WgmmaCommit(Lanes),
    WgmmaWait(Lanes, u32),
    Exit(Lanes),
}

/// The name of each kind. The match is exhaustive, so that none can be missing in the list.
macro_rules! kinds {
    ($($kind:ident)*) => {
        /// All kinds of events that a detector can be told.
        pub const KINDS: &[&str] = &[$(stringify!($kind)),*];

        impl Event {
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Event::$kind { .. } => stringify!($kind),)*
                }
            }
        }
    };
}

kinds! {
    Access Fence ProxyFence MapRelease MapAcquire Copy Commit Wait WaitAll WarpSync GridWait Arrive Complete
    ClusterArrive ClusterComplete ClusterWait MbarrierInit MbarrierInvalidate InitFence MbarrierArrive CopyArrive MbarrierComplete
    MbarrierWait Load RemoteStore Store BulkCommit BulkWait Wgmma WgmmaCommit WgmmaWait Exit
}

impl Event {
    /// Who accesses memory, if the event does.
    pub fn accessing(&self) -> Option<Lanes> {
        match self {
            Event::Access { at, .. } | Event::Copy { at, .. } | Event::Load { at, .. } => Some(*at),
            Event::RemoteStore { at, .. } | Event::Store { at, .. } | Event::Wgmma { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// All that it touches, lane by lane, and whether it writes there.
    pub fn touched(&self) -> Vec<(Stretch, bool)> {
        let piece = |space, start: u64, bytes: u32| (space, start..start + u64::from(bytes));
        let read = |stretch: &Stretch| (stretch.clone(), false);
        let written = |stretch: &Stretch| (stretch.clone(), true);
        match self {
            Event::Access { at, kind, space, addresses, bytes, .. } => {
                let of_lane = |lane: &u8| (piece(*space, addresses[*lane as usize], *bytes), kind.writes());
                lanes_of(at.mask).iter().map(of_lane).collect()
            }
            Event::Copy { at, from, from_bytes, to, bytes } => {
                let of_lane = |lane: &u8| {
                    let lane = *lane as usize;
                    let from = piece(Space::Global, from[lane], from_bytes[lane]);
                    [(from, false), (piece(Space::Shared, to[lane], *bytes), true)]
                };
                lanes_of(at.mask).iter().flat_map(of_lane).collect()
            }
            Event::Load { reads, writes, map, .. } => {
                let described = map.iter().map(|map| read(&descriptor(*map)));
                reads.iter().map(read).chain(writes.iter().map(written)).chain(described).collect()
            }
            Event::Store { reads, writes, map, element, .. } => {
                let described = map.iter().map(|map| read(&descriptor(*map)));
                let writes = writes.iter().flat_map(|stretch| elements(stretch, *element));
                reads.iter().map(read).chain(writes.map(|stretch| written(&stretch))).chain(described).collect()
            }
            Event::RemoteStore { to, .. } => vec![written(to)],
            Event::Wgmma { reads, .. } => reads.iter().map(read).collect(),
            _ => vec![],
        }
    }
}

/// Where a cluster's warps and blocks begin if those of all clusters are numbered through.
#[derive(Clone, Copy)]
pub struct Shift {
    pub cluster: u32,
    pub warps: u32,
    pub blocks: u32,
}

impl Shift {
    /// The address of shared memory in the same count.
    pub fn shared(&self, address: u64) -> u64 {
        address + (u64::from(self.blocks) << 32)
    }

    fn stretch(&self, (space, range): &mut Stretch) {
        if *space == Space::Shared {
            *range = self.shared(range.start)..self.shared(range.end);
        }
    }
}

impl Event {
    /// The same in a grid whose warps, blocks and barriers are numbered through.
    pub fn shifted(&self, by: Shift) -> Event {
        let mut event = self.clone();
        event.shift(by);
        event
    }

    fn shift(&mut self, by: Shift) {
        match self {
            Event::Access { at, space, addresses, .. } => {
                at.warp += by.warps;
                if *space == Space::Shared {
                    addresses.iter_mut().for_each(|address| *address = by.shared(*address));
                }
            }
            Event::Copy { at, to, .. } => {
                at.warp += by.warps;
                to.iter_mut().for_each(|address| *address = by.shared(*address));
            }
            Event::Load { at, barrier, reads, writes, .. } => {
                (at.warp, *barrier) = (at.warp + by.warps, by.shared(*barrier));
                reads.iter_mut().chain(writes).for_each(|stretch| by.stretch(stretch));
            }
            Event::Store { at, reads, writes, .. } => {
                at.warp += by.warps;
                reads.iter_mut().chain(writes).for_each(|stretch| by.stretch(stretch));
            }
            Event::RemoteStore { at, barrier, to } => {
                (at.warp, *barrier) = (at.warp + by.warps, by.shared(*barrier));
                by.stretch(to);
            }
            Event::Wgmma { at, reads } => {
                at.warp += by.warps;
                reads.iter_mut().for_each(|stretch| by.stretch(stretch));
            }
            event => event.shift_meeting(by),
        }
    }

    fn shift_meeting(&mut self, by: Shift) {
        match self {
            Event::Fence(at, _) | Event::ProxyFence(at, _) | Event::InitFence(at) => at.warp += by.warps,
            Event::MapRelease(at) | Event::MapAcquire { at, .. } => at.warp += by.warps,
            Event::Commit(at) | Event::Wait(at, _) | Event::WaitAll(at) | Event::WarpSync(at) => at.warp += by.warps,
            Event::ClusterArrive(at, _) | Event::ClusterWait(at) | Event::Exit(at) => at.warp += by.warps,
            Event::GridWait(at) => at.warp += by.warps,
            Event::BulkCommit(at) | Event::BulkWait { at, .. } => at.warp += by.warps,
            Event::WgmmaCommit(at) | Event::WgmmaWait(at, _) => at.warp += by.warps,
            Event::Arrive { at, id } => (at.warp, *id) = (at.warp + by.warps, *id + by.blocks * BARRIERS),
            Event::Complete { id, waiters } => {
                *id += by.blocks * BARRIERS;
                waiters.iter_mut().for_each(|at| at.warp += by.warps);
            }
            Event::ClusterComplete { cluster, waiters } => {
                *cluster = by.cluster;
                waiters.iter_mut().for_each(|at| at.warp += by.warps);
            }
            Event::MbarrierInit { at, barrier }
            | Event::MbarrierArrive { at, barrier, .. }
            | Event::CopyArrive { at, barrier }
            | Event::MbarrierWait { at, barrier, .. } => {
                (at.warp, *barrier) = (at.warp + by.warps, by.shared(*barrier));
            }
            Event::MbarrierInvalidate { barrier } | Event::MbarrierComplete(barrier) => *barrier = by.shared(*barrier),
            event => unreachable!("{event:?}"),
        }
    }
}

/// The bytes of a tensor map.
pub fn descriptor(map: u64) -> Stretch {
    (Space::Global, map..map + DESCRIPTOR)
}

/// The parts of a stretch that are accesses of their own.
pub fn elements((space, range): &Stretch, element: Option<u32>) -> Vec<Stretch> {
    let Range { start, end } = *range;
    let bytes = element.map_or(end - start, u64::from).max(1);
    (start..end).step_by(bytes as usize).map(|start| (*space, start..start + bytes)).collect()
}

pub fn lanes_of(mask: u32) -> Vec<u8> {
    (0..32).filter(|lane| mask >> lane & 1 == 1).collect()
}
