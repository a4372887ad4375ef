//! # wrong-space
//!
//! An instruction that names a space, with an address of another one: a generic address in `ld.shared`, an address of
//! shared memory in `st.global`. Hardware reads elsewhere, or stops the kernel.
//!
//! ```ptx
//! cvta.shared.u64 %generic, %tile;
//! ld.shared.f32 %value, [%generic];        // an offset in shared memory is expected, and this is none
//! ```
//!
//! Fix: convert with `cvta.to.shared` (or `.global`, `.local`), or leave the space out: `ld.f32` takes generic addresses.
//! PTX ISA, "cvta"; "Generic Addressing".

use super::{Check, out_of_bounds, words};
use crate::exec::{Access, Accessed, At};
use crate::finding::Report;
use crate::machine::{Cluster, Values, lanes};
use ptx::Space;

pub const CHECK: Check = Check::error("wrong-space", include_str!("wrong_space.rs"));

/// `outside`: the lanes whose bytes are not where the instruction looks for them.
pub fn report_outside(cluster: &mut Cluster, at: At, access: &Access, addresses: &Values, outside: u32) {
    let elsewhere = |lane: &usize| meant(cluster, (at.warp, *lane), access, addresses[*lane]) != Accessed::Nothing;
    let strays = lanes(outside).filter(elsewhere).fold(0, |mask, lane| mask | 1 << lane);
    if strays != 0 {
        report(cluster, at.among(strays), access, addresses);
    }
    if outside & !strays != 0 {
        out_of_bounds::report(cluster, at, access, addresses, outside & !strays);
    }
}

/// Where the bytes are if the address is taken as a generic one.
fn meant(cluster: &Cluster, thread: (usize, usize), access: &Access, address: u64) -> Accessed {
    match access.space {
        Some(_) => cluster.locate(thread, &Access { space: None, ..*access }, address),
        None => Accessed::Nothing,
    }
}

fn report(cluster: &mut Cluster, at: At, access: &Access, addresses: &Values) {
    let lane = at.mask.trailing_zeros() as usize;
    let address = addresses[lane];
    let place = cluster.place(meant(cluster, (at.warp, lane), access, address));
    let named = access.space.map_or("", name);
    let message = format!("an access to {named} memory with {address:#x}, the generic address of {place}");
    let who = words::who(cluster, at.warp, 1 << lane);
    let second = cluster.actor(at, &format!("{who} looks for it in {named} memory"));
    let help = match cluster.resolve(address).0 {
        actual if Some(actual) == access.space => {
            format!("convert the address with `cvta.to.{named}`, or leave `.{named}` out of the instruction")
        }
        actual => format!("leave `.{named}` out of the instruction, or make it `.{}`", name(actual)),
    };
    cluster.findings.add(Report::new(&CHECK, message, second).help(help).count(at.mask.count_ones().into()));
}

fn name(space: Space) -> &'static str {
    match space {
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Parameter => "param",
        Space::Constant => "const",
        _ => "global",
    }
}
