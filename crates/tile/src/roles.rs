//! Warpgroups with tasks of their own: one starts copies, the others multiply what they bring.
//!
//! Each end of a ring belongs to one role: both closures are alive at once, so the borrow checker keeps what one of them changes from the other.

use crate::builder::{Reach, here, with};
use crate::control::{either, when};
use crate::error::{BuildError, Place};
use crate::instructions::{
    Pointer, WARPGROUP, bar_arrive, bar_sync, barrier, barrier_cluster, fence_mbarrier_init, mbarrier_init, setmaxnreg,
    shfl_sync_idx_b32, thread_index, warp_index,
};
use crate::values::U32;

/// 32-bit registers of a processor. CUDA C++ Programming Guide, "Compute Capabilities".
const PROCESSOR_REGISTERS: u32 = 65536;
/// `bar.sync 0` is the block's own; PTX ISA, "bar": there are 16.
const FIRST_NAME: u32 = 1;
const LAST_NAME: u32 = 15;

/// The first warpgroup. One of its threads runs the body.
pub struct Producer<'a, F> {
    registers: u32,
    body: F,
    /// What its other warps do.
    helpers: Vec<Box<dyn FnOnce() + 'a>>,
}

/// With so many registers for each thread.
pub fn producer<'a, F: FnOnce()>(registers: u32, body: F) -> Producer<'a, F> {
    Producer { registers, body, helpers: vec![] }
}

impl<'a, F> Producer<'a, F> {
    /// With another task for its next warp, which is idle otherwise.
    #[track_caller]
    pub fn helped_by(mut self, task: impl FnOnce() + 'a) -> Producer<'a, F> {
        self.helpers.push(Box::new(task));
        if self.helpers.len() as u32 >= WARPGROUP / 32 {
            BuildError::new("a warpgroup has three warps beside the one that copies", here()).raise()
        }
        self
    }
}

/// The warpgroups behind it.
pub struct Consumers<F> {
    count: u32,
    registers: u32,
    body: F,
}

pub fn consumers<F: FnOnce(&Warpgroup)>(count: u32, registers: u32, body: F) -> Consumers<F> {
    Consumers { count, registers, body }
}

/// Four warps that multiply together.
pub struct Warpgroup {
    /// Among those that do the same.
    pub number: U32,
    pub count: u32,
}

/// Initialises the barriers of all rings, and parts the block. The blocks of a cluster begin together, and end together.
#[track_caller]
pub fn roles<P: FnOnce(), C: FnOnce(&Warpgroup)>(producer: Producer<'_, P>, consumers: Consumers<C>) {
    let at = here();
    check_registers(producer.registers, &consumers, at);
    initialise_barriers();
    let number = shfl_sync_idx_b32(thread_index() / WARPGROUP, 0).reaching(Reach::Warpgroup).named("warpgroup");
    either(
        number.eq(0),
        || {
            setmaxnreg(false, producer.registers);
            when(thread_index().eq(0), producer.body);
            for (warp, task) in (1..).zip(producer.helpers) {
                when(warp_index().eq(warp), task);
            }
        },
        || {
            setmaxnreg(true, consumers.registers);
            (consumers.body)(&Warpgroup { number: number - 1, count: consumers.count });
        },
    );
    // Nobody leaves while others may still write to its memory, or arrive at its barriers.
    if with(|b| b.options.cluster) > 1 {
        barrier_cluster();
    }
}

/// A thread of a warp that is idle then: the first one computes meanwhile what its copies begin with.
const INITIALISES: u32 = 32;

fn initialise_barriers() {
    let barriers = with(|b| std::mem::take(&mut b.barriers));
    when(thread_index().eq(INITIALISES), || {
        for (address, arrivals) in barriers {
            mbarrier_init(Pointer::new(address), arrivals);
        }
        fence_mbarrier_init();
    });
    if with(|b| b.options.cluster) > 1 { barrier_cluster() } else { barrier() }
}

/// A warpgroup that asks for more than the others have left waits for ever.
fn check_registers<C>(producer: u32, consumers: &Consumers<C>, at: Place) {
    let threads = with(|b| b.options.threads);
    if threads != WARPGROUP * (consumers.count + 1) {
        let message = format!("a block of {threads} threads has not one producer and {} consumers", consumers.count);
        BuildError::new(message, at).help("expected 128 threads for each").raise()
    }
    let launched = PROCESSOR_REGISTERS / threads / 8 * 8 * threads;
    let asked = WARPGROUP * (producer + consumers.count * consumers.registers);
    if asked > launched {
        let message = format!("roles ask for {asked} registers, and the block is launched with {launched}");
        BuildError::new(message, at).raise()
    }
}

/// Names of barriers that nobody else has.
#[track_caller]
fn names(count: u32) -> u32 {
    let at = here();
    let first = with(|b| {
        let first = FIRST_NAME + b.barrier_names;
        b.barrier_names += count;
        first
    });
    if first + count > LAST_NAME + 1 {
        BuildError::new(format!("a block has {LAST_NAME} barriers beside its own: these are more"), at).raise()
    }
    first
}

/// Barriers at which the warps of each warpgroup meet. Made before the roles.
pub struct Meeting {
    first: u32,
}

impl Meeting {
    #[track_caller]
    pub fn new(warpgroups: u32) -> Meeting {
        Meeting { first: names(warpgroups) }
    }

    /// The warps of the warpgroup wait for each other.
    #[track_caller]
    pub fn meet(&self, warpgroup: &Warpgroup) {
        bar_sync(warpgroup.number + self.first, WARPGROUP);
    }
}

/// Warpgroups take turns at the tensor cores, so that one multiplies while another takes exponentials. Made before the roles.
pub struct Turns {
    /// None: everybody may multiply at any time.
    first: Option<u32>,
}

impl Turns {
    /// Of so many warpgroups; a single one needs none.
    #[track_caller]
    pub fn new(warpgroups: u32) -> Turns {
        Turns { first: (warpgroups > 1).then(|| names(warpgroups)) }
    }

    /// Gives the first turn to the first warpgroup: called once by all.
    #[track_caller]
    pub fn begin(&self, warpgroup: &Warpgroup) {
        let Some(first) = self.first else { return };
        when(warpgroup.number.eq(warpgroup.count - 1), || bar_arrive(first, 2 * WARPGROUP));
    }

    #[track_caller]
    pub fn wait(&self, warpgroup: &Warpgroup) {
        let Some(first) = self.first else { return };
        bar_sync(warpgroup.number + first, 2 * WARPGROUP);
    }

    /// The next warpgroup's turn.
    #[track_caller]
    pub fn pass(&self, warpgroup: &Warpgroup) {
        let Some(first) = self.first else { return };
        let next = warpgroup.number + 1;
        let next = crate::control::select(next.eq(warpgroup.count), 0, next);
        bar_arrive(next + first, 2 * WARPGROUP);
    }

    /// Takes the turn that nobody needs any more: called once by all.
    #[track_caller]
    pub fn end(&self, warpgroup: &Warpgroup) {
        let Some(first) = self.first else { return };
        when(warpgroup.number.eq(0), || bar_sync(first, 2 * WARPGROUP));
    }
}
