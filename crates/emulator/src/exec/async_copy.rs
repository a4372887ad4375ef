//! Copies that complete later: their bytes land when the adversary says so, or when their thread waits.

use super::access::{Access, Accessed};
use super::{At, Next};
use crate::async_engines::Flight;
use crate::checks;
use crate::machine::{AddressSource, Cluster, Decoder, Source, Why, lanes};
use happens_before::{Kind, Lanes, Site};
use ptx::forms::AsyncCopy;
use ptx::{Immediate, Instruction, Operand, Space, Type};

pub enum Copying {
    Start { to: AddressSource, from: AddressSource, bytes: u32, source_bytes: Option<Source> },
    Commit,
    WaitGroup(u32),
    WaitAll,
}

pub fn decode(op: AsyncCopy, instruction: &Instruction, decoder: &Decoder) -> Result<Copying, Why> {
    match op {
        AsyncCopy::Copy | AsyncCopy::CopyThroughL2 => {
            let operands = &instruction.operands;
            let source_bytes = instruction.specified().find(|(spec, _)| spec.name == "m");
            let source_bytes = source_bytes.map(|(_, one)| decoder.source(one, Type::U32)).transpose()?;
            let [to, from] = [0, 1].map(|index| decoder.address(&operands[index]));
            Ok(Copying::Start { to: to?, from: from?, bytes: number(&operands[2])?, source_bytes })
        }
        AsyncCopy::Commit => Ok(Copying::Commit),
        AsyncCopy::WaitGroup => Ok(Copying::WaitGroup(number(&instruction.operands[0])?)),
        AsyncCopy::WaitAll => Ok(Copying::WaitAll),
    }
}

fn number(operand: &Operand) -> Result<u32, Why> {
    match operand {
        Operand::Immediate(Immediate::Integer(value)) => u32::try_from(*value).map_err(|_| "a negative count".into()),
        _ => Err("a count that is not a constant".into()),
    }
}

pub fn execute(cluster: &mut Cluster, at: At, copying: &Copying) -> Next {
    let who = Lanes { warp: at.warp as u32, mask: at.mask };
    let site = Site(at.statement);
    match copying {
        _ if at.mask == 0 => {}
        Copying::Start { to, from, bytes, source_bytes } => start(cluster, at, [to, from], *bytes, *source_bytes),
        Copying::Commit => {
            if cluster.orders(at) {
                cluster.detector.commit(who);
            }
            lanes(at.mask).for_each(|lane| cluster.copies.commit(at.warp, lane));
        }
        Copying::WaitGroup(pending) => {
            if cluster.orders(at) {
                cluster.detector.wait(who, site, *pending);
            }
            wait(cluster, at, *pending);
        }
        Copying::WaitAll => {
            if cluster.orders(at) {
                cluster.detector.wait_all(who, site);
            }
            lanes(at.mask).for_each(|lane| cluster.copies.commit(at.warp, lane));
            wait(cluster, at, 0);
        }
    }
    Next::Following
}

/// `[to, from]`. With a source size, the rest of the destination is filled with zeros.
fn start(cluster: &mut Cluster, at: At, addresses: [&AddressSource; 2], bytes: u32, source_bytes: Option<Source>) {
    let [to, from] = addresses.map(|address| cluster.addresses(at.warp, address));
    let sizes = source_bytes.map_or([u64::from(bytes); 32], |source| cluster.read(at.warp, source));
    let sizes: [u32; 32] = sizes.map(|size| (size as u32).min(bytes));
    let targets = cluster.copy_places(at, Space::Shared, &to, &[bytes; 32], Kind::Write);
    let sources = cluster.copy_places(at, Space::Global, &from, &sizes, Kind::Read);
    let target = Access { space: Some(Space::Shared), kind: Kind::Write, bytes };
    checks::misaligned::watch(cluster, at, &target, &to);
    let source = Access { space: Some(Space::Global), kind: Kind::Read, bytes };
    let reads = lanes(at.mask).filter(|lane| sizes[*lane] > 0).fold(0, |mask, lane| mask | 1 << lane);
    checks::misaligned::watch(cluster, at.among(reads), &source, &from);
    if cluster.checks {
        checks::uninitialised_memory::watch_copy(cluster, at, &sources, &sizes);
        cluster.order_copy(at, &targets, &sources, bytes, &sizes);
    }
    if cluster.lints.is_some() {
        checks::lint_access(cluster, at, &source, &sources);
        checks::lint_access(cluster, at, &target, &targets);
    }
    let batch = cluster.trace_copies(at, &targets, bytes);
    // What would go nowhere was reported, and does not move.
    for lane in lanes(at.mask).filter(|lane| targets[*lane] != Accessed::Nothing) {
        cluster.mark_written(targets[lane], bytes as usize);
        let (to, from, ticket) = (targets[lane], sources[lane], cluster.audit_start());
        let flight = Flight { to, from, bytes, source_bytes: sizes[lane], batch, ticket };
        cluster.copies.start(at.warp, lane, flight);
    }
    cluster.adversary.see_producer(at.warp);
    cluster.land_some();
}

impl Cluster<'_, '_> {
    /// Where a copy's bytes are, with the bounds checked for each lane's own size; size zero touches nothing.
    fn copy_places(
        &mut self,
        at: At,
        space: Space,
        addresses: &[u64; 32],
        sizes: &[u32; 32],
        kind: Kind,
    ) -> [Accessed; 32] {
        let mut places = [Accessed::Nothing; 32];
        for lane in lanes(at.mask).filter(|lane| sizes[*lane] > 0) {
            let access = Access { space: Some(space), kind, bytes: sizes[lane] };
            places[lane] = self.locate((at.warp, lane), &access, addresses[lane]);
            if places[lane] == Accessed::Nothing {
                checks::wrong_space::report_outside(self, at, &access, addresses, 1 << lane);
            }
        }
        places
    }

    fn order_copy(
        &mut self,
        at: At,
        targets: &[Accessed; 32],
        sources: &[Accessed; 32],
        bytes: u32,
        sizes: &[u32; 32],
    ) {
        use happens_before::Space as Watched;
        let (mut from, mut to, mut mask, mut read) = ([0; 32], [0; 32], 0, *sizes);
        for lane in lanes(at.mask) {
            let Some(place) = self.watched_place(Watched::Shared, targets[lane]) else { continue };
            to[lane] = place;
            mask |= 1 << lane;
            match self.watched_place(Watched::Global, sources[lane]) {
                Some(place) => from[lane] = place,
                None => read[lane] = 0,
            }
        }
        let who = Lanes { warp: at.warp as u32, mask };
        self.detector.copy(who, Site(at.statement), &from, &read, &to, bytes);
    }
}

fn wait(cluster: &mut Cluster, at: At, pending: u32) {
    let mut landing = vec![];
    lanes(at.mask).for_each(|lane| landing.extend(cluster.copies.complete(at.warp, lane, pending)));
    landing.into_iter().for_each(|flight| cluster.land(flight));
}
