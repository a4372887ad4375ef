//! Forms of sm_90 and sm_90a: barriers that count bytes, copies of whole tiles, products of warpgroups.

use super::{GlobalPointer, Pointer, SharedPointer, number, special, together, vector};
use crate::builder::{Reach, define, define_pure, emit, with};
use crate::control::again_until;
use crate::values::{Accumulator, Element, Packed, Pred, U32, U64, Value, Var};
use ptx::{Operand, ParameterId, Symbol};

/// The threads of a warpgroup.
pub const WARPGROUP: u32 = 128;

// Barriers of a block's named kind.

/// `bar.sync`: waits until `threads` of the block have come to barrier `name`.
#[track_caller]
pub fn bar_sync(name: impl Into<U32>, threads: u32) {
    together("bar.sync", Reach::Warp);
    emit("bar.sync", vec![name.into().operand(), number(threads)]);
}

/// `bar.arrive`: comes to barrier `name` and does not wait.
#[track_caller]
pub fn bar_arrive(name: impl Into<U32>, threads: u32) {
    together("bar.arrive", Reach::Warp);
    emit("bar.arrive", vec![name.into().operand(), number(threads)]);
}

// Barriers in shared memory.

#[track_caller]
pub fn mbarrier_init(at: SharedPointer, arrivals: u32) {
    emit("mbarrier.init.shared::cta.b64", vec![at.operand(), number(arrivals)]);
}

/// What copies see of barriers that were made before it.
#[track_caller]
pub fn fence_mbarrier_init() {
    emit("fence.mbarrier_init.release.cluster", vec![]);
}

#[track_caller]
pub fn mbarrier_arrive(at: SharedPointer) {
    emit("mbarrier.arrive.shared::cta.b64", vec![Operand::Sink, at.operand()]);
}

/// The same at the barrier of any block of the cluster. What this thread has read or written before, who waits there for has happened.
#[track_caller]
pub fn mbarrier_arrive_in_cluster(at: SharedPointer) {
    emit("mbarrier.arrive.release.cluster.shared::cluster.b64", vec![Operand::Sink, at.operand()]);
}

/// Arrives, and asks the phase to wait for so many bytes of copies.
#[track_caller]
pub fn mbarrier_arrive_expect_tx(at: SharedPointer, bytes: u32) {
    emit("mbarrier.arrive.expect_tx.shared::cta.b64", vec![Operand::Sink, at.operand(), number(bytes)]);
}

/// Until the phase of this parity is complete.
#[track_caller]
pub fn mbarrier_wait_parity(at: SharedPointer, parity: U32) {
    again_until(|| define::<bool>("mbarrier.try_wait.parity.shared::cta.b64", vec![at.operand(), parity.operand()]));
}

/// The same where threads of all blocks of the cluster arrive.
#[track_caller]
pub fn mbarrier_wait_parity_of_cluster(at: SharedPointer, parity: U32) {
    let mnemonic = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64";
    again_until(|| define::<bool>(mnemonic, vec![at.operand(), parity.operand()]));
}

/// Plain accesses to shared memory before it are seen by copies and products behind it.
#[track_caller]
pub fn fence_proxy_async_shared() {
    emit("fence.proxy.async.shared::cta", vec![]);
}

// Copies of tiles by tensor map.

/// The generic address of a parameter that is passed by value.
#[track_caller]
pub(crate) fn parameter_address(parameter: ParameterId) -> U64 {
    let place: U64 = define_pure("mov.b64", vec![Operand::Symbol(Symbol::Parameter(parameter))]);
    define_pure("cvta.param.u64", vec![place.operand()])
}

#[track_caller]
fn tensor_address(map: U64, coordinates: [U32; 4]) -> Operand {
    let Operand::Address(address) = Pointer::new(map).operand() else { unreachable!("a pointer is an address") };
    let mut operands = vec![];
    for coordinate in coordinates {
        operands.push(coordinate.operand());
    }
    Operand::TensorAddress(address, operands)
}

#[track_caller]
pub fn prefetch_tensormap(map: U64) {
    emit("prefetch.tensormap", vec![Pointer::new(map).operand()]);
}

/// The box at `coordinates`, the fastest first, into shared memory; its bytes count at `barrier`.
#[track_caller]
pub fn cp_async_bulk_tensor_4d_load(to: SharedPointer, map: U64, coordinates: [U32; 4], barrier: SharedPointer) {
    let mnemonic = "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes";
    emit(mnemonic, vec![to.operand(), tensor_address(map, coordinates), barrier.operand()]);
}

/// The same into the memory of every block of the cluster whose bit is set, at the same place, and counted at the same place.
#[track_caller]
pub fn cp_async_bulk_tensor_4d_multicast(
    to: SharedPointer,
    map: U64,
    coordinates: [U32; 4],
    barrier: SharedPointer,
    blocks: u16,
) {
    let mnemonic = "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    let operands = vec![to.operand(), tensor_address(map, coordinates), barrier.operand(), number(blocks.into())];
    emit(mnemonic, operands);
}

/// The box at `coordinates` out of shared memory.
#[track_caller]
pub fn cp_async_bulk_tensor_4d_store(map: U64, coordinates: [U32; 4], from: SharedPointer) {
    let mnemonic = "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group";
    emit(mnemonic, vec![tensor_address(map, coordinates), from.operand()]);
}

#[track_caller]
pub fn cp_async_bulk_commit_group() {
    emit("cp.async.bulk.commit_group", vec![]);
}

/// Until all but `younger` groups have read their sources.
#[track_caller]
pub fn cp_async_bulk_wait_group_read(younger: u32) {
    emit("cp.async.bulk.wait_group.read", vec![number(younger)]);
}

/// Until all but `younger` groups are complete.
#[track_caller]
pub fn cp_async_bulk_wait_group(younger: u32) {
    emit("cp.async.bulk.wait_group", vec![number(younger)]);
}

// Clusters of blocks.

/// `%cluster_ctarank`: the block's number in its cluster.
#[track_caller]
pub fn block_of_cluster() -> U32 {
    special("block_of_cluster", Operand::Special("%cluster_ctarank"), Reach::Block)
}

/// Where a place in the block's own shared memory is in another block's.
#[track_caller]
pub fn mapa(at: SharedPointer, block: U32) -> SharedPointer {
    let place = at.base + at.offset as u32;
    Pointer::new(
        define_pure::<u32>("mapa.shared::cluster.u32", vec![place.operand(), block.operand()]).reaching(Reach::Lane),
    )
}

/// All threads of the cluster wait for each other, and see what they have written.
#[track_caller]
pub fn barrier_cluster() {
    together("barrier.cluster", Reach::Warp);
    emit("barrier.cluster.arrive.release.aligned", vec![]);
    emit("barrier.cluster.wait.acquire.aligned", vec![]);
}

// Registers of a warpgroup.

#[track_caller]
pub fn setmaxnreg(grow: bool, registers: u32) {
    together("setmaxnreg", Reach::Warpgroup);
    let direction = if grow { "inc" } else { "dec" };
    emit(&format!("setmaxnreg.{direction}.sync.aligned.u32"), vec![number(registers)]);
}

// Products of a warpgroup.

/// PTX ISA, "wgmma.fence": before the first product, and whenever registers of one have changed.
#[track_caller]
pub fn wgmma_fence() {
    together("wgmma.fence", Reach::Warpgroup);
    emit("wgmma.fence.sync.aligned", vec![]);
}

#[track_caller]
pub fn wgmma_commit_group() {
    together("wgmma.commit_group", Reach::Warpgroup);
    emit("wgmma.commit_group.sync.aligned", vec![]);
    with(|b| b.products += 1);
}

#[track_caller]
pub fn wgmma_wait_group(younger: u32) {
    together("wgmma.wait_group", Reach::Warpgroup);
    emit("wgmma.wait_group.sync.aligned", vec![number(younger)]);
}

/// The left side of one 16-deep step: registers, or the descriptor of shared memory.
pub enum Sixteen<E> {
    Registers([Value<Packed<E>>; 4]),
    Shared(U64),
}

/// `d = a · b`, and `d += a · b` where `add` holds. `columns_first`: the elements of a column of `b` are not neighbours, those of a row
/// are.
#[track_caller]
pub fn wgmma_k16<E: Element>(d: &mut Accumulator, a: Sixteen<E>, b: U64, add: Pred, columns_first: bool) {
    together("wgmma.mma_async", Reach::Warpgroup);
    let columns = d.columns();
    let sums: Vec<_> = d.registers_of_warp().map(Var::raw).collect();
    let mut operands = vec![vector(&sums)];
    let is_shared = matches!(a, Sixteen::Shared(_));
    operands.push(match a {
        Sixteen::Registers(registers) => vector(&registers),
        Sixteen::Shared(descriptor) => descriptor.operand(),
    });
    operands.extend([b.operand(), predicate(add).operand(), number(1), number(1)]);
    operands.extend(is_shared.then(|| number(0)));
    operands.push(number(columns_first.into()));
    emit(&format!("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{0}.{0}", E::NAME), operands);
}

/// Where an instruction takes no constant.
#[track_caller]
fn predicate(value: Pred) -> Pred {
    match value.known() {
        Some(known) => {
            let order = if known { "setp.eq.u32" } else { "setp.ne.u32" };
            define_pure(order, vec![number(0), number(0)])
        }
        None => value,
    }
}

/// A 64-bit number of two halves.
#[track_caller]
pub fn mov_pair(low: U32, high: u32) -> U64 {
    let halves = Operand::Vector(vec![low.operand(), number(high)]);
    define_pure("mov.b64", vec![halves])
}

// Warp-wide.

/// Four 8×8 matrices; lane `8i + r` gives the address of row `r` of matrix `i`.
#[track_caller]
pub fn stmatrix_x4<E: Element>(to: SharedPointer, registers: [Value<Packed<E>>; 4]) {
    together("stmatrix", Reach::Warp);
    emit("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16", vec![to.operand(), vector(&registers)]);
}

/// Whether it holds for every lane of the warp.
#[track_caller]
pub fn vote_sync_all(holds: Pred) -> Pred {
    together("vote.sync", Reach::Warp);
    define::<bool>("vote.sync.all.pred", vec![holds.operand(), number(u32::MAX)]).reaching(Reach::Warp)
}

// Words that blocks share.

/// Adds, and returns what was there.
#[track_caller]
pub fn atom_global_add_u32(at: GlobalPointer, value: U32) -> U32 {
    define::<u32>("atom.global.add.u32", vec![at.operand(), value.operand()]).reaching(Reach::Lane)
}

/// Four neighbours at a multiple of 16 bytes.
#[track_caller]
pub fn st_shared_v4_u32(to: SharedPointer, values: [U32; 4]) {
    emit("st.shared.v4.u32", vec![to.operand(), vector(&values)]);
}
