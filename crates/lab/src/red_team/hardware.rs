//! Attacks that only a GPU can suffer: the same kernels as elsewhere, timed by the stage's own code on the driver's own clock.

use std::path::Path;

use crate::hardware::open_gpu;

use super::workshop::{at_start, case, honest};
use super::{Attack, Place, row};
use crate::bench::Bencher;
use crate::gpu::{Contract, Refusal, Workers};
use crate::guard::{Guard, Objection, Objections};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "idles-when-timed",       "the time of a kernel that works where nobody times it",     &[Guard::AfterTiming], idles_when_timed),
    row(HERE, "trap-while-timed",       "the time of launches that end with an error",               &[Guard::Status],      trap_while_timed),
];

const HERE: Place = Place::Gpu;

/// What a kernel has written or counted is undone before every sample. But it finds its output as samples poison it: there it passes the time,
/// since a call that ends at once is too short for the clocks.
const PASS_THE_TIME: &str = "    .reg .b64 %o, %until, %now;
    .reg .b32 %held;
    .reg .pred %timed, %early;
    ld.param.u64 %o, [o];
    ld.global.u32 %held, [%o];
    setp.eq.u32 %timed, %held, 0xa5a5a5a5;
    @!%timed bra work;
    mov.u64 %until, %globaltimer;
    add.u64 %until, %until, 8000;
pass:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %early, %now, %until;
    @%early bra pass;
    ret;
work:";

fn idles_when_timed(_: &[Guard]) -> Result<Objections, String> {
    timed(&at_start(&honest()?, PASS_THE_TIME)?)
}

fn trap_while_timed(_: &[Guard]) -> Result<Objections, String> {
    timed(&at_start(&honest()?, "    trap;")?)
}

/// Times a kernel without peers, on buffers of its own for each call: all else that a point says of such a run is left aside, since
/// nobody expects it to be decided. What the driver refuses is the status of a launch.
fn timed(text: &str) -> Result<Objections, String> {
    let cuda = open_gpu().map_err(|_| "needs a GPU")?;
    let nobody = Workers::unpack(Path::new("")).map_err(|error| error.to_string())?;
    let mut bencher = Bencher::new(cuda, &nobody, &[]);
    Ok(match bencher.point(&case(text)?, Contract::Graph, true) {
        Ok(point) => point.objections().without(&[Guard::Peers]),
        Err(Refusal::Wrong(error)) => {
            Objections::of([Objection::fail(error.guard(), Refusal::Wrong(error).to_string())])
        }
        Err(Refusal::Died(why)) => Objections::of([Objection::fail(Guard::Status, why)]),
    })
}
