//! # uninitialised-register
//!
//! A register that lanes have not written decides something: an address, a branch, what is stored. Its value is whatever
//! the hardware register held before: zero in a debugger, something else in production. To compute with it is fine as long
//! as nobody uses the result.
//!
//! ```ptx
//! @%inside ld.global.f32 %value, [%address];
//! st.global.f32 [%out], %value;              // lanes outside have no %value
//! ```
//!
//! Fix: write the register on every way that leads to the read, most often by `mov` before the guarded instruction.
//! PTX ISA, "Register State Space": registers have no initial value.

use super::{Check, words};
use crate::exec::{Action, At, Request};
use crate::finding::Report;
use crate::machine::{Cluster, Step, Watched};
use ptx::RegisterId;

pub const CHECK: Check = Check::error("uninitialised-register", include_str!("uninitialised_register.rs"));

/// Before a step that reads or writes watched registers. `all`: the lanes that evaluate the guard.
pub fn watch(cluster: &mut Cluster, at: At, all: u32, step: &Step, watched: &Watched) {
    let guard = step.guard.filter(|_| watched.guard).map(|guard| (guard.register, all));
    let accumulators = match &step.action {
        Action::Wgmma(Request::Multiply(multiply)) if multiply.accumulates(cluster, at) => &watched.accumulators[..],
        _ => &[],
    };
    let uses = watched.uses.iter().chain(accumulators).map(|register| (*register, at.mask));
    for (register, lanes) in guard.into_iter().chain(uses) {
        let unwritten = lanes & !cluster.warps[at.warp].definedness.lanes(register);
        if unwritten != 0 {
            report(cluster, At { mask: unwritten, ..at }, register);
        }
    }
    let origins = match &step.action {
        Action::Warp(exchange) => exchange.origins(cluster, at),
        _ => None,
    };
    cluster.warps[at.warp].definedness.pass_on(at, watched, origins.as_ref());
}

fn report(cluster: &mut Cluster, at: At, register: RegisterId) {
    let name = cluster.findings.register(register);
    let message = format!("`{name}` is used and has no value yet");
    let label = format!("used by {}", words::who(cluster, at.warp, at.mask));
    let second = cluster.actor(at, &label);
    let origin = cluster.warps[at.warp].definedness.origin(register);
    let (first, culprit) = match origin {
        Some((register, statement)) => {
            let culprit = cluster.findings.register(register);
            let label = format!("computed from `{culprit}`, which these lanes never wrote");
            (Some(cluster.actor(At { statement, ..at }, &label)), culprit)
        }
        None => (None, name),
    };
    let help = format!("write `{culprit}` on every way that leads here, for example before a guarded instruction");
    let count = at.mask.count_ones().into();
    cluster.findings.add(Report::new(&CHECK, message, second).first(first).help(help).count(count));
}
