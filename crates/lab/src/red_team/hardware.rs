//! Attacks that only a GPU can suffer: the same kernels as elsewhere, timed by the stage's own code on the driver's own clock.

use std::path::Path;

use cuda::Cuda;

use super::workshop::{at_start, case, honest, with_calls};
use super::{Attack, Place, row};
use crate::bench::Bencher;
use crate::gpu::{Contract, Workers};
use crate::guard::{Guard, Objection, Objections};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "timed-after-it-stopped", "the time of a kernel that works in its first calls",       &[Guard::AfterTiming], timed_after_it_stopped),
    row(HERE, "trap-while-timed",       "the time of launches that end with an error",               &[Guard::Status],      trap_while_timed),
];

const HERE: Place = Place::Gpu;

/// Instead of working, later calls pass the time: a call that ends at once is too short for the clocks.
const PASS_THE_TIME: &str = "    @!%late bra work;
    .reg .b64 %until, %now;
    .reg .pred %early;
    mov.u64 %until, %globaltimer;
    add.u64 %until, %until, 8000;
pass:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %early, %now, %until;
    @%early bra pass;
    ret;
work:";

fn timed_after_it_stopped(_: &[Guard]) -> Result<Objections, String> {
    timed(&with_calls(&honest()?, PASS_THE_TIME)?)
}

fn trap_while_timed(_: &[Guard]) -> Result<Objections, String> {
    timed(&at_start(&honest()?, "    trap;")?)
}

/// Times a kernel without peers, on buffers of its own for each call: all else that a point says of such a run is left aside, since
/// nobody expects it to be decided. What the driver refuses is the status of a launch.
fn timed(text: &str) -> Result<Objections, String> {
    let cuda = Cuda::open(0).map_err(|_| "needs a GPU")?;
    let nobody = Workers::unpack(Path::new("")).map_err(|error| error.to_string())?;
    let mut bencher = Bencher::new(cuda, &nobody, &[]);
    Ok(match bencher.point(&case(text)?, Contract::Graph, true) {
        Ok(point) => point.objections().without(&[Guard::Peers]),
        Err(why) if why.starts_with("clocks disagree") => Objections::of([Objection::fail(Guard::Clocks, why)]),
        Err(why) => Objections::of([Objection::fail(Guard::Status, why)]),
    })
}
