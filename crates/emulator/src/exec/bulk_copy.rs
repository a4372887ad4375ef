//! Copies and reductions of whole tiles by the copy engine. Each active lane starts one; its bytes move when the
//! adversary says so, and an mbarrier or the lane's bulk groups tell of it.

use super::access::{Access, Accessed, watched_shared};
use super::mbarrier::BYTES as MBARRIER_BYTES;
use super::{Action, At, Next, remote_store};
use crate::async_engines::reduce::Reduction;
use crate::async_engines::tensor::Plan;
use crate::async_engines::tensor_map::{BYTES as MAP_BYTES, Fault, TensorMap};
use crate::async_engines::{Operation, Piece, Spot, Transfer};
use crate::checks;
use crate::machine::{AddressSource, Cluster, Decoder, Source, Why, lanes};
use crate::numerics::update::Operation as Change;
use happens_before::{Bulk as Touched, Kind, Site, Space as Watched, Stretch};
use ptx::forms::BulkCopy as Op;
use ptx::{Immediate, Instruction, Operand, Space, Type};

pub enum Bulk {
    Start(Box<Start>),
    Commit,
    Wait {
        pending: u32,
        /// Only until the sources have been read.
        reads: bool,
    },
}

/// A copy that begins.
pub struct Start {
    route: Route,
    /// In shared memory; of the two sides of a copy within the cluster, the target.
    shared: AddressSource,
    far: Far,
    barrier: Option<AddressSource>,
    /// Ranks of the blocks that a load fills.
    multicast: Option<Source>,
    change: Option<Change>,
    ty: Option<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// From global to shared memory.
    Load,
    /// From shared to global memory.
    Store,
    /// From shared memory to that of a block of the cluster.
    Share,
}

/// The side that is not the target in shared memory.
enum Far {
    /// So many bytes at an address.
    Line { address: AddressSource, bytes: Source },
    /// A box of a tensor.
    Box { map: AddressSource, coordinates: Vec<Source> },
}

pub fn decode(op: Op, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let operands = &instruction.operands;
    let bulk = match op {
        Op::Commit => Bulk::Commit,
        Op::WaitGroup => Bulk::Wait { pending: number(&operands[0])?, reads: instruction.has("read") },
        // There is no cache to fill.
        Op::Prefetch | Op::TensorPrefetch => return Ok(Action::Nothing),
        Op::LoadLocal | Op::Load | Op::TensorLoadLocal | Op::TensorLoad => {
            Bulk::Start(Box::new(decode_load(instruction, decoder)?))
        }
        Op::Share | Op::ReduceShared | Op::ReduceSharedLong | Op::ReduceSharedCount | Op::ReduceSharedBits => {
            Bulk::Start(Box::new(decode_share(instruction, decoder)?))
        }
        Op::Store | Op::Reduce | Op::ReduceHalf | Op::ReduceMinimumMaximum | Op::ReduceCount | Op::ReduceBits => {
            Bulk::Start(Box::new(decode_store(instruction, decoder)?))
        }
        Op::TensorStore | Op::TensorReduce => Bulk::Start(Box::new(decode_store(instruction, decoder)?)),
        Op::RemoteStore => return remote_store::decode(instruction, decoder),
        Op::TensorLoadColumnsLocal
        | Op::TensorLoadColumns
        | Op::TensorStoreColumns
        | Op::TensorReduceColumns
        | Op::TensorPrefetchColumns => return Err("`.im2col`".into()),
    };
    Ok(Action::Bulk(bulk))
}

fn number(operand: &Operand) -> Result<u32, Why> {
    match operand {
        Operand::Immediate(Immediate::Integer(value)) => u32::try_from(*value).map_err(|_| "a negative count".into()),
        _ => Err("a count that is not a constant".into()),
    }
}

fn decode_load(instruction: &Instruction, decoder: &Decoder) -> Result<Start, Why> {
    let operands = &instruction.operands;
    let far = decode_far(&operands[1], operands.get(2), decoder)?;
    let barrier = if matches!(far, Far::Box { .. }) { 2 } else { 3 };
    let multicast = instruction.has("multicast::cluster").then(|| decoder.source(&operands[barrier + 1], Type::U16));
    Ok(Start {
        route: Route::Load,
        shared: decoder.address(&operands[0])?,
        far,
        barrier: Some(decoder.address(&operands[barrier])?),
        multicast: multicast.transpose()?,
        change: None,
        ty: None,
    })
}

fn decode_share(instruction: &Instruction, decoder: &Decoder) -> Result<Start, Why> {
    let operands = &instruction.operands;
    Ok(Start {
        route: Route::Share,
        shared: decoder.address(&operands[0])?,
        far: decode_far(&operands[1], operands.get(2), decoder)?,
        barrier: Some(decoder.address(&operands[3])?),
        multicast: None,
        change: change(instruction),
        ty: instruction.ty(),
    })
}

fn decode_store(instruction: &Instruction, decoder: &Decoder) -> Result<Start, Why> {
    let operands = &instruction.operands;
    // The map knows the type of a tensor's elements, and only when the copy starts.
    if decoder.algebra && change(instruction).is_some() && instruction.ty().is_none_or(Type::is_float) {
        return Err("with `--algebra`".into());
    }
    Ok(Start {
        route: Route::Store,
        shared: decoder.address(&operands[1])?,
        far: decode_far(&operands[0], operands.get(2), decoder)?,
        barrier: None,
        multicast: None,
        change: change(instruction),
        ty: instruction.ty(),
    })
}

fn decode_far(operand: &Operand, bytes: Option<&Operand>, decoder: &Decoder) -> Result<Far, Why> {
    match (operand, bytes) {
        (Operand::TensorAddress(map, coordinates), _) => Ok(Far::Box {
            map: decoder.address(&Operand::Address(map.clone()))?,
            coordinates: coordinates.iter().map(|one| decoder.source(one, Type::S32)).collect::<Result<_, _>>()?,
        }),
        (address, Some(bytes)) => {
            Ok(Far::Line { address: decoder.address(address)?, bytes: decoder.source(bytes, Type::U32)? })
        }
        _ => Err("a size that is not there".into()),
    }
}

/// What a reduction does.
fn change(instruction: &Instruction) -> Option<Change> {
    let mnemonic = instruction.mnemonic();
    let words = mnemonic.starts_with("cp.reduce").then(|| mnemonic.split('.'));
    words.into_iter().flatten().find_map(Change::named)
}

pub fn execute(cluster: &mut Cluster, at: At, bulk: &Bulk) -> Next {
    match bulk {
        _ if at.mask == 0 => {}
        // An H200 answers with an illegal instruction, even for a copy that stays in its block.
        Bulk::Start(start) if start.route == Route::Share && !cluster.shape.explicit_cluster => {
            let text = cluster.findings.text(at.statement);
            let message = format!("`{text}` is an illegal instruction in a launch without clusters");
            let help = "launch it with `cluster = [1, 1, 1]` or larger, or write `.reqnctapercluster 1` at the entry";
            return checks::trap::stop(cluster, at, message, help);
        }
        Bulk::Start(start) => start.execute(cluster, at),
        Bulk::Commit => {
            if cluster.orders(at) {
                cluster.detector.bulk_commit(at.lanes());
            }
            lanes(at.mask).for_each(|lane| cluster.flights.commit((at.warp, lane)));
        }
        Bulk::Wait { pending, reads } => {
            if cluster.orders(at) {
                cluster.detector.bulk_wait(at.lanes(), Site(at.statement), *pending, *reads);
            }
            for lane in lanes(at.mask) {
                let older = cluster.flights.older((at.warp, lane), *pending, !reads);
                older
                    .into_iter()
                    .for_each(|number| if *reads { cluster.read_early(number) } else { cluster.arrive(number) });
            }
        }
    }
    Next::Following
}

impl Start {
    fn execute(&self, cluster: &mut Cluster, at: At) {
        let lane_of = |mask: u32| At { mask, ..at };
        cluster.further_copies += u64::from(at.mask.count_ones() - 1);
        for lane in lanes(at.mask) {
            match self.transfers(cluster, at, lane) {
                Ok(transfers) => {
                    transfers.into_iter().for_each(|transfer| self.launch(cluster, lane_of(1 << lane), transfer))
                }
                Err(fault) => checks::tensor_map::report(cluster, lane_of(1 << lane), &fault),
            }
        }
    }

    /// What lane `lane` asks for: one transfer, or one for each block that a multicast fills.
    fn transfers(&self, cluster: &mut Cluster, at: At, lane: usize) -> Result<Vec<Transfer>, Fault> {
        let shared = cluster.addresses(at.warp, &self.shared)[lane];
        let (home, offset) = cluster.cluster_place(at.warp, shared);
        let barrier =
            self.barrier.map(|address| cluster.cluster_place(at.warp, cluster.addresses(at.warp, &address)[lane]));
        let ranks = match self.multicast {
            Some(mask) => {
                let mask = cluster.read(at.warp, mask)[lane];
                (0..cluster.blocks.len()).filter(|rank| mask >> rank & 1 == 1).collect()
            }
            None => vec![home],
        };
        let map = self.map_place(cluster, at, lane);
        if let Some(place) = map.filter(|_| cluster.checks) {
            checks::uninitialised_memory::watch_piece(cluster, at, lane, place, MAP_BYTES);
        }
        let map = map.and_then(|place| cluster.watched_place(Watched::Global, place));
        let cut = self.cut(cluster, at, lane, offset as u32).inspect_err(|_| {
            // A map that is being rewritten is often refused: that it is unordered with the copy is the reason.
            map.iter().for_each(|map| cluster.detector.refuse_bulk(at.lane(lane).lanes(), Site(at.statement), *map));
        })?;
        if let Far::Line { .. } = self.far {
            let [(far, near, bytes)] = cut.runs[..] else { return Ok(vec![]) };
            checks::misaligned::watch_line(cluster, at.lane(lane), [far, near.into(), bytes.into()]);
        }
        let spot = |rank: usize| {
            let (own, offset) = barrier?;
            Some((if self.multicast.is_some() { rank } else { own }, offset as usize))
        };
        for (rank, offset) in ranks.iter().filter_map(|rank| spot(*rank)) {
            cluster.bulk_place(at, lane, Some(rank), offset as u64, MBARRIER_BYTES);
        }
        let transfers = ranks.into_iter().map(|rank| {
            let transfer = cut.transfer(cluster, at, lane, rank, spot(rank));
            cluster.watch_transfer(at.lane(lane), &transfer, map);
            transfer
        });
        Ok(transfers.collect())
    }

    /// Where the tensor map lies, if there is one.
    fn map_place(&self, cluster: &Cluster, at: At, lane: usize) -> Option<Accessed> {
        let Far::Box { map, .. } = &self.far else { return None };
        let access = Access { space: None, kind: Kind::Read, bytes: MAP_BYTES as u32 };
        Some(cluster.locate((at.warp, lane), &access, cluster.addresses(at.warp, map)[lane]))
    }

    /// Cuts the copy into runs that are consecutive on both sides.
    fn cut(&self, cluster: &Cluster, at: At, lane: usize, shared: u32) -> Result<Cut, Fault> {
        match &self.far {
            Far::Line { address, bytes } => {
                let (address, bytes) =
                    (cluster.addresses(at.warp, address)[lane], cluster.read(at.warp, *bytes)[lane] as u32);
                let reduction = match (self.change, self.ty) {
                    (Some(change), Some(ty)) if self.route == Route::Share => Some(Reduction::shared(change, ty)?),
                    (Some(change), Some(ty)) => Some(Reduction::global(change, ty)?),
                    _ => None,
                };
                Ok(Cut { route: self.route, runs: vec![(address, shared, bytes)], fills: vec![], bytes, reduction })
            }
            Far::Box { map, coordinates } => {
                let map = cluster.tensor_map(at.warp, lane, cluster.addresses(at.warp, map)[lane])?;
                let coordinates: Vec<i32> =
                    coordinates.iter().map(|source| cluster.read(at.warp, *source)[lane] as i32).collect();
                let plan = match self.route {
                    Route::Store => Plan::of_store(&map, &coordinates, shared)?,
                    Route::Load | Route::Share => Plan::new(&map, &coordinates, shared)?,
                };
                let fills = plan.fills.iter().map(|range| (range.start, plan.fill(range.len()))).collect();
                let reduction = self.change.map(|change| Reduction::tensor(change, map.element)).transpose()?;
                let runs = plan.moves.iter().map(|one| (one.global, one.shared, one.bytes)).collect();
                Ok(Cut { route: self.route, runs, fills, bytes: plan.bytes, reduction })
            }
        }
    }

    fn launch(&self, cluster: &mut Cluster, at: At, transfer: Transfer) {
        let lane = at.mask.trailing_zeros() as usize;
        let grouped = self.route == Route::Store;
        let number = cluster.depart(at, Operation::Transfer(Box::new(transfer)));
        if grouped {
            cluster.flights.join_group((at.warp, lane), number);
        }
    }
}

/// A copy in runs: where each lies on the far side and in shared memory, and how long it is.
struct Cut {
    route: Route,
    runs: Vec<(u64, u32, u32)>,
    /// What of shared memory is filled, and with what.
    fills: Vec<(u32, Vec<u8>)>,
    /// What the barrier is told.
    bytes: u32,
    reduction: Option<Reduction>,
}

impl Cut {
    /// The copy with block `rank` as the side in shared memory; what lies outside of memory is reported and left out.
    fn transfer(&self, cluster: &mut Cluster, at: At, lane: usize, rank: usize, spot: Option<Spot>) -> Transfer {
        let mut transfer = Transfer { reduction: self.reduction, ..Transfer::default() };
        transfer.signals.extend(spot.map(|spot| (spot, self.bytes)));
        for (far, shared, bytes) in &self.runs {
            let near = cluster.bulk_place(at, lane, Some(rank), u64::from(*shared), *bytes);
            let far = match self.route {
                Route::Share => {
                    let (home, offset) = cluster.cluster_place(at.warp, *far);
                    cluster.bulk_place(at, lane, Some(home), offset, *bytes)
                }
                _ => cluster.bulk_place(at, lane, None, *far, *bytes),
            };
            let (from, to) = if self.route == Route::Store { (near, far) } else { (far, near) };
            if from != Accessed::Nothing && to != Accessed::Nothing {
                checks::uninitialised_memory::watch_piece(cluster, at, lane, from, *bytes as usize);
                if self.reduction.is_some() {
                    checks::uninitialised_memory::watch_piece(cluster, at, lane, to, *bytes as usize);
                }
                cluster.mark_written(to, *bytes as usize);
                transfer.pieces.push(Piece { from, to, bytes: *bytes as usize });
            }
        }
        if self.route == Route::Load {
            for (shared, bytes) in &self.fills {
                let place = cluster.bulk_place(at, lane, Some(rank), u64::from(*shared), bytes.len() as u32);
                cluster.mark_written(place, bytes.len());
                transfer.fills.push((place, bytes.clone()));
            }
        }
        transfer
    }
}

impl Cluster<'_, '_> {
    /// Tells the race detector of a copy that one lane starts.
    fn watch_transfer(&mut self, at: At, transfer: &Transfer, map: Option<u64>) {
        let side = |place: Accessed, bytes: usize| {
            let space = if matches!(place, Accessed::Shared { .. }) { Watched::Shared } else { Watched::Global };
            self.watched_place(space, place).map(|start| (space, start..start + bytes as u64))
        };
        let reads = merged(transfer.pieces.iter().filter_map(|piece| side(piece.from, piece.bytes)).collect());
        let writes = transfer.pieces.iter().filter_map(|piece| side(piece.to, piece.bytes));
        let fills = transfer.fills.iter().filter_map(|(place, bytes)| side(*place, bytes.len()));
        let writes = merged(writes.chain(fills).collect());
        let element = transfer.reduction.map(|reduction| reduction.bytes() as u32);
        let touched = Touched { reads: &reads, writes: &writes, map, element };
        let rank = self.rank(at.warp);
        // The unit uses the mbarrier as a thread does, and knows what its issuer knows. Other blocks are asked whether they
        // have started.
        for (spot, _) in transfer.signals.iter().filter(|(spot, _)| spot.0 == rank) {
            checks::mbarrier::watch_use(self, at, &[Some(*spot); 32]);
        }
        match transfer.signals.first() {
            Some(((rank, offset), _)) => {
                self.detector.bulk_load(at.lanes(), Site(at.statement), watched_shared(*rank, *offset), &touched);
            }
            None => self.detector.bulk_store(at.lanes(), Site(at.statement), &touched),
        }
        self.detector.heal_missed_fence(at.lanes());
    }

    /// Where bytes are: at an offset in a block's shared memory, or at a global address.
    fn bulk_place(&mut self, at: At, lane: usize, rank: Option<usize>, address: u64, bytes: u32) -> Accessed {
        let space = if rank.is_some() { Space::Shared } else { Space::Global };
        let found = match rank {
            Some(rank) => {
                let home = self.blocks.get(rank).and_then(|home| home.shared.find(address, bytes.into()));
                home.map(|offset| Accessed::Shared { block: rank, offset })
            }
            None => {
                let found = self.global.find(address, bytes.into()).ok();
                found.map(|(allocation, offset)| Accessed::Global { allocation, offset })
            }
        };
        found.unwrap_or_else(|| {
            let access = Access { space: Some(space), kind: Kind::Read, bytes };
            match rank {
                Some(rank) => checks::out_of_bounds::report_shared(self, at.lane(lane), &access, rank, address),
                None => checks::out_of_bounds::report(self, at, &access, &[address; 32], 1 << lane),
            }
            Accessed::Nothing
        })
    }

    /// The tensor map at a generic address.
    fn tensor_map(&self, warp: usize, lane: usize, address: u64) -> Result<TensorMap, Fault> {
        let access = Access { space: None, kind: Kind::Read, bytes: MAP_BYTES as u32 };
        let place = self.locate((warp, lane), &access, address);
        let object = std::array::from_fn(|byte| self.fetch(place, byte, 1) as u8);
        TensorMap::decode(&object)
    }
}

/// Stretches that touch each other, as one.
pub fn merged(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by_key(|(space, range)| (*space, range.start));
    let mut joined: Vec<Stretch> = vec![];
    for (space, range) in stretches {
        match joined.last_mut() {
            Some((same, last)) if *same == space && range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push((space, range)),
        }
    }
    joined
}
