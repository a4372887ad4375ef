//! What the detector reports: two unordered accesses, and everything that was learnt about why.

use super::actor::Gap;
use super::{Site, Space};

/// The check that a fault belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Lanes of one warp.
    RaceWarp,
    /// Threads of different warps of the CTA, whatever the memory space.
    RaceShared,
    /// A copy in flight, read by a thread that knows of its start.
    MissingWait,
    /// A copy in flight whose source or destination was overwritten by a thread that knows of its start.
    EarlyRelease,
    /// Ordered, but an asynchronous unit follows a thread's access without a proxy fence on the way.
    Proxy,
    /// Synchronised by operations whose scope or relaxed semantics does not reach the other thread.
    Reach,
}

/// How the other party stands to a copy, and how far the issuing lane had brought it when the second access ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batch {
    /// The other party does not even know of its start: a barrier is missing, not a wait.
    Unseen,
    /// No commit after it.
    Open,
    /// Committed, not waited for. `wait_group` with up to this count by the issuing lane would have covered it.
    Committed { wait_group: u32 },
    /// The phase of this mbarrier (by its address) tells of it; the other party did not wait for that.
    Told { barrier: u64, phase: u32 },
    /// The lane waited for it at this site (`None`: too long ago to be remembered) without knowing of the other access,
    /// and nothing told the other thread of the wait. Whether the wait ran before that access is luck.
    Waited { site: Option<Site> },
}

/// Who made an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agent {
    Thread,
    /// A `cp.async` issued by the lane.
    Copy(Batch),
    /// A bulk store issued by the lane: what it reads, or what it writes.
    Store(Batch),
    /// A bulk copy issued by the lane, of which an mbarrier tells (by its address, in this phase since its
    /// initialisation).
    Load {
        barrier: u64,
        phase: u32,
        /// The other party does not know of its start, and does not just forget to wait: it writes, or it has waited
        /// for an earlier phase. Perhaps nothing kept the copy from starting too early.
        rushed: bool,
    },
    /// The operands of a `wgmma`; the warp named is the first of its warpgroup if the group is the first party.
    Product(Batch),
}

impl Agent {
    /// Something that has not been waited for, and whose start the other party knows or need not know.
    fn is_awaited(self) -> bool {
        match self {
            Agent::Thread => false,
            Agent::Load { rushed, .. } => !rushed,
            Agent::Copy(batch) | Agent::Store(batch) | Agent::Product(batch) => {
                matches!(batch, Batch::Open | Batch::Committed { .. } | Batch::Told { .. })
            }
        }
    }
}

/// One of the two accesses of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Party {
    pub warp: u32,
    pub lane: u8,
    pub site: Site,
    pub write: bool,
    pub agent: Agent,
}

/// The synchronisation that a release is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    Barrier {
        id: u32,
    },
    WarpSync {
        mask: u32,
    },
    /// A fence, or an access that releases: it tells those who read what is written after it.
    Fence,
    /// `barrier.cluster`.
    Cluster,
    /// An arrival at the mbarrier with this address, in this phase since its initialisation.
    Mbarrier {
        barrier: u64,
        phase: u32,
    },
}

/// How the second party stands to the release that should have told it of the first access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It did not join that barrier generation or warp synchronisation before its access.
    NotJoined,
    /// It arrived at the barrier without waiting.
    ArrivedOnly,
    /// It joined, but the lane of the first access did not.
    FirstAbsent,
    /// The release came after the second access ran.
    TooLate,
    /// It heard of the release, which is relaxed or of too narrow a scope.
    Loose,
}

/// The first release, by the lane of the first access, at or after that access; for a copy that was waited for, at or
/// after the wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    pub site: Site,
    pub means: Means,
    pub reach: Reach,
}

/// Whether the first access was ever released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Published {
    /// Nothing after it releases it (until the faults were taken).
    Never,
    By(Release),
    /// Too long ago to be remembered.
    Forgotten,
    /// A copy in flight: there is nothing to release before it has been waited for.
    InFlight,
    /// Products whose start the second party knows, by a release here that came before anybody waited for them.
    TooEarly(Site),
}

/// Two conflicting accesses that nothing orders: the first example, and how often the same two sites clashed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub class: Class,
    pub space: Space,
    /// First byte that both touched.
    pub address: u64,
    /// How many bytes from there on both lanes touched.
    pub bytes: u32,
    pub first: Party,
    pub second: Party,
    pub published: Published,
    pub count: u64,
}

impl Fault {
    /// The class, given the parties and what lies between them. Of two accesses that nothing orders either may have run
    /// first; the class is the same.
    pub(super) fn classify(first: &Party, second: &Party, gap: Gap) -> Class {
        match gap {
            Gap::Fence => Class::Proxy,
            Gap::Reach => Class::Reach,
            Gap::Order if first.agent.is_awaited() && second.write => Class::EarlyRelease,
            Gap::Order if first.agent.is_awaited() => Class::MissingWait,
            Gap::Order if first.warp == second.warp => Class::RaceWarp,
            Gap::Order => Class::RaceShared,
        }
    }
}
