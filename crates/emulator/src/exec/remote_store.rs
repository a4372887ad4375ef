//! `st.async`: a lane's store into shared memory of the cluster, of which an mbarrier there tells. Its bytes move when
//! the adversary says so.

use super::access::{Access, Accessed, watched_shared};
use super::{Action, At, Next};
use crate::async_engines::{Operation, Transfer};
use crate::checks;
use crate::machine::{AddressSource, Cluster, Decoder, Source, Why, lanes};
use happens_before::{Kind, Site, Space as Watched};
use ptx::{Instruction, Space, Type};

pub struct RemoteStore {
    to: AddressSource,
    barrier: AddressSource,
    values: Vec<Source>,
    ty: Type,
}

pub fn decode(instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let [to, values, barrier] = [0, 1, 2].map(|index| &instruction.operands[index]);
    let ty = instruction.ty().ok_or("a store without a type")?;
    Ok(Action::RemoteStore(Box::new(RemoteStore {
        to: decoder.address(to)?,
        barrier: decoder.address(barrier)?,
        values: decoder.sources(values, ty)?,
        ty,
    })))
}

pub fn execute(cluster: &mut Cluster, at: At, store: &RemoteStore) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    let size = store.ty.bytes() as usize;
    let bytes = size * store.values.len();
    let access = Access { space: Some(Space::Shared), kind: Kind::Write, bytes: bytes as u32 };
    let [to, barriers] = [&store.to, &store.barrier].map(|address| cluster.addresses(at.warp, address));
    let values: Vec<_> = store.values.iter().map(|source| cluster.read(at.warp, *source)).collect();
    checks::misaligned::watch(cluster, at, &access, &to);
    for lane in lanes(at.mask) {
        let Accessed::Shared { block, offset } = cluster.locate((at.warp, lane), &access, to[lane]) else {
            checks::wrong_space::report_outside(cluster, at, &access, &to, 1 << lane);
            continue;
        };
        let (place, start) = (Accessed::Shared { block, offset }, watched_shared(block, offset));
        let (rank, barrier) = cluster.cluster_place(at.warp, barriers[lane]);
        let spot = (rank, barrier as usize);
        let written = (Watched::Shared, start..start + bytes as u64);
        let told = watched_shared(spot.0, spot.1);
        cluster.detector.remote_store(at.lane(lane).lanes(), Site(at.statement), told, written);
        cluster.mark_written(place, bytes);
        let data = values.iter().flat_map(|value| value[lane].to_le_bytes().into_iter().take(size)).collect();
        let transfer =
            Transfer { fills: vec![(place, data)], signals: vec![(spot, bytes as u32)], ..Transfer::default() };
        cluster.depart(at.lane(lane), Operation::Transfer(Box::new(transfer)));
    }
    Next::Following
}
