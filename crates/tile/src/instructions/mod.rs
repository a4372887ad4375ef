//! Layer 1: one function per PTX form, named like the form. Only this module and the operators spell PTX.

mod hopper;

pub use hopper::*;

use crate::builder::{Reach, SHARED_BASE, define, define_pure, emit, fresh, with};
use crate::values::{Element, F32, Half, Packed, Type, U32, U64, Value, Var};
use ptx::{Address, AddressBase, GlobalId, Immediate, Operand, ParameterId, Symbol};
use std::panic::Location;

/// An address with a constant offset: `[register+offset]`.
#[derive(Clone, Copy, Debug)]
pub struct Pointer<T> {
    pub base: Value<T>,
    pub offset: i64,
}
/// `.shared` addresses are 32 bits wide, `.global` ones 64.
pub type SharedPointer = Pointer<u32>;
pub type GlobalPointer = Pointer<u64>;

impl<T: Type> Pointer<T> {
    pub fn new(base: Value<T>) -> Pointer<T> {
        Pointer { base, offset: 0 }
    }

    pub fn plus(self, bytes: u32) -> Pointer<T> {
        Pointer { offset: self.offset + i64::from(bytes), ..self }
    }

    #[track_caller]
    fn operand(self) -> Operand {
        let (base, constant) = match self.base.operand() {
            Operand::Register(id) => (AddressBase::Register(id), 0),
            Operand::Immediate(Immediate::Integer(value)) => (AddressBase::Absolute, value as i64),
            other => unreachable!("an address is a number, not {other:?}"),
        };
        Operand::Address(Address { base, offset: constant + self.offset })
    }
}

fn number(x: u32) -> Operand {
    Operand::Immediate(Immediate::Integer(x.into()))
}

#[track_caller]
fn vector<T: Type>(values: &[Value<T>]) -> Operand {
    let mut operands = vec![];
    for value in values {
        operands.push(value.operand());
    }
    Operand::Vector(operands)
}

/// Refuses `mnemonic` where a branch may have split the threads it needs.
#[track_caller]
fn together(mnemonic: &str, needs: Reach) {
    let at = Location::caller();
    with(|b| b.check_converged(&format!("`{mnemonic}`"), needs, at));
}

// Forms that this layer lacks. Whoever uses them names the manual's section beside it.

/// Any form of the table with a result: `raw::<u32>("popc.b32", &[mask.operand()])`. Operands are checked as everywhere; that
/// lanes agree on the result is for the author to say.
#[track_caller]
pub fn raw<T: Type>(mnemonic: &str, operands: &[Operand]) -> Value<T> {
    define::<T>(mnemonic, operands.to_vec()).reaching(Reach::Lane)
}

/// Any form of the table without a result.
#[track_caller]
pub fn raw_effect(mnemonic: &str, operands: &[Operand]) {
    emit(mnemonic, operands.to_vec());
}

// Special registers.

#[track_caller]
fn special(name: &'static str, source: Operand, reach: Reach) -> U32 {
    let at = Location::caller();
    Value::from_register(with(|b| b.special(name, source, reach, at)))
}

/// `%tid.x`
#[track_caller]
pub fn thread_index() -> U32 {
    special("thread", Operand::Special("%tid.x"), Reach::Lane)
}

/// `%laneid`
#[track_caller]
pub fn lane_index() -> U32 {
    special("lane", Operand::Special("%laneid"), Reach::Lane)
}

/// The warp's number in the block. The shuffle tells ptxas that all lanes agree.
#[track_caller]
pub fn warp_index() -> U32 {
    shfl_sync_idx_b32(thread_index() / 32, 0).reaching(Reach::Warp).named("warp")
}

/// `%ctaid`, by axis 0, 1, 2.
#[track_caller]
pub fn block_index(axis: usize) -> U32 {
    let (name, source) = [("block_x", "%ctaid.x"), ("block_y", "%ctaid.y"), ("block_z", "%ctaid.z")][axis];
    special(name, Operand::Special(source), Reach::Block)
}

/// `%nctaid`: how many blocks there are along an axis.
#[track_caller]
pub fn grid_size(axis: usize) -> U32 {
    let (name, source) = [("grid_x", "%nctaid.x"), ("grid_y", "%nctaid.y"), ("grid_z", "%nctaid.z")][axis];
    special(name, Operand::Special(source), Reach::Block)
}

// Moves, parameters, global and shared memory.

#[track_caller]
pub(crate) fn mov<T: Type>(value: Value<T>) -> Value<T> {
    define(&format!("mov.{}", T::NAME), vec![value.operand()])
}

#[track_caller]
pub(crate) fn mov_into<T: Type>(to: Value<T>, value: Value<T>) {
    emit(&format!("mov.{}", T::NAME), vec![to.operand(), value.operand()]);
}

/// The two halves of a register, the low one first.
#[track_caller]
pub(crate) fn mov_halves<E: Element>(pair: Value<Packed<E>>) -> [Value<Half<E>>; 2] {
    let halves = [fresh(None), fresh(None)];
    emit("mov.b32", vec![vector(&halves), pair.operand()]);
    halves
}

/// `sum += a * b`, rounded once, without a register in between.
#[track_caller]
pub(crate) fn fma_rn_f32_into(sum: &mut Var<f32>, a: F32, b: F32) {
    let sum = sum.raw().operand();
    emit("fma.rn.f32", vec![sum.clone(), a.operand(), b.operand(), sum]);
}

#[track_caller]
pub(crate) fn ld_param<T: Type>(parameter: ParameterId) -> Value<T> {
    let base = AddressBase::Symbol(Symbol::Parameter(parameter));
    define(&format!("ld.param.{}", T::NAME), vec![Operand::Address(Address { base, offset: 0 })])
}

#[track_caller]
pub fn cvta_to_global_u64(generic: U64) -> U64 {
    define("cvta.to.global.u64", vec![generic.operand()])
}

#[track_caller]
pub fn ld_global<T: Type>(from: GlobalPointer) -> Value<T> {
    define::<T>(&format!("ld.global.{}", T::NAME), vec![from.operand()]).reaching(Reach::Lane)
}

/// Of memory that nobody writes while the kernel runs.
#[track_caller]
pub fn ld_global_nc<T: Type>(from: GlobalPointer) -> Value<T> {
    define_pure::<T>(&format!("ld.global.nc.{}", T::NAME), vec![from.operand()]).reaching(Reach::Lane)
}

#[track_caller]
pub fn st_global<T: Type>(to: GlobalPointer, value: Value<T>) {
    emit(&format!("st.global.{}", T::NAME), vec![to.operand(), value.operand()]);
}

/// A word that other threads and the host may read at any time: all of it is there, or nothing.
#[track_caller]
pub fn st_relaxed_sys_global<T: Type>(to: GlobalPointer, value: Value<T>) {
    emit(&format!("st.relaxed.sys.global.{}", T::NAME), vec![to.operand(), value.operand()]);
}

/// The same for threads of the same GPU.
#[track_caller]
pub fn st_relaxed_gpu_global<T: Type>(to: GlobalPointer, value: Value<T>) {
    emit(&format!("st.relaxed.gpu.global.{}", T::NAME), vec![to.operand(), value.operand()]);
}

/// Two neighbours at once, aligned to both.
#[track_caller]
pub fn ld_global_v2<T: Type>(from: GlobalPointer) -> [Value<T>; 2] {
    let pair = [fresh(None), fresh(None)];
    emit(&format!("ld.global.v2.{}", T::NAME), vec![vector(&pair), from.operand()]);
    pair
}

#[track_caller]
pub fn st_global_v2<T: Type>(to: GlobalPointer, pair: [Value<T>; 2]) {
    emit(&format!("st.global.v2.{}", T::NAME), vec![to.operand(), vector(&pair)]);
}

/// Four neighbours, the first at a multiple of 16 bytes.
#[track_caller]
pub fn st_global_v4<T: Type>(to: GlobalPointer, values: [Value<T>; 4]) {
    emit(&format!("st.global.v4.{}", T::NAME), vec![to.operand(), vector(&values)]);
}

#[track_caller]
pub fn ld_shared<T: Type>(from: SharedPointer) -> Value<T> {
    define::<T>(&format!("ld.shared.{}", T::NAME), vec![from.operand()]).reaching(Reach::Lane)
}

/// Four neighbours, the first at a multiple of 16 bytes.
#[track_caller]
pub fn ld_shared_v4<T: Type>(from: SharedPointer) -> [Value<T>; 4] {
    let registers = [fresh(None), fresh(None), fresh(None), fresh(None)];
    emit(&format!("ld.shared.v4.{}", T::NAME), vec![vector(&registers), from.operand()]);
    registers
}

#[track_caller]
pub fn st_shared<T: Type>(to: SharedPointer, value: Value<T>) {
    emit(&format!("st.shared.{}", T::NAME), vec![to.operand(), value.operand()]);
}

/// The address of the dynamic shared memory.
#[track_caller]
pub fn shared_base() -> U32 {
    special(SHARED_BASE, Operand::Symbol(Symbol::Global(GlobalId(0))), Reach::Block)
}

// Asynchronous copies of Ampere.

/// `size` of the 16 bytes come from memory, the rest is zero.
#[track_caller]
pub fn cp_async_cg_shared_global_16(to: SharedPointer, from: GlobalPointer, size: U32) {
    emit("cp.async.cg.shared.global", vec![to.operand(), from.operand(), number(16), size.operand()]);
}

#[track_caller]
pub fn cp_async_commit_group() {
    emit("cp.async.commit_group", vec![]);
    with(|b| b.copies += 1);
}

#[track_caller]
pub fn cp_async_wait_group(younger: u32) {
    emit("cp.async.wait_group", vec![number(younger)]);
}

// Warp-wide.

/// Every lane of the warp.
const ALL_LANES: u32 = u32::MAX;
/// The last lane of a segment of `shfl`: segments are whole warps.
const LAST_LANE: u32 = 31;

#[track_caller]
pub fn shfl_sync_bfly_b32<T: Type>(value: Value<T>, mask: u32) -> Value<T> {
    together("shfl.sync", Reach::Warp);
    let operands = vec![value.operand(), number(mask), number(LAST_LANE), number(ALL_LANES)];
    define::<T>("shfl.sync.bfly.b32", operands).reaching(Reach::Lane)
}

#[track_caller]
pub fn shfl_sync_idx_b32<T: Type>(value: Value<T>, lane: impl Into<U32>) -> Value<T> {
    together("shfl.sync", Reach::Warp);
    let operands = vec![value.operand(), lane.into().operand(), number(LAST_LANE), number(ALL_LANES)];
    define("shfl.sync.idx.b32", operands)
}

/// What lanes have written before it, all lanes see behind it.
#[track_caller]
pub fn bar_warp_sync() {
    together("bar.warp.sync", Reach::Warp);
    emit("bar.warp.sync", vec![number(ALL_LANES)]);
}

/// Four 8×8 matrices; lane `8i + r` gives the address of row `r` of matrix `i`.
#[track_caller]
pub fn ldmatrix_x4<E: Element>(from: SharedPointer, transposed: bool) -> [Value<Packed<E>>; 4] {
    together("ldmatrix", Reach::Warp);
    let registers = [fresh(None), fresh(None), fresh(None), fresh(None)];
    let trans = if transposed { ".trans" } else { "" };
    emit(&format!("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16"), vec![vector(&registers), from.operand()]);
    registers
}

/// `d += a · b`, 16×8 += 16×16 · 16×8.
#[track_caller]
pub fn mma_m16n8k16<E: Element>(d: &mut [Var<f32>], a: &[Value<Packed<E>>; 4], b: [Value<Packed<E>>; 2]) {
    together("mma.sync", Reach::Warp);
    let d: Vec<_> = d.iter().map(Var::raw).collect();
    let mnemonic = format!("mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32", E::NAME);
    emit(&mnemonic, vec![vector(&d), vector(a), vector(&b), vector(&d)]);
}

// Block-wide.

/// `bar.sync 0`
#[track_caller]
pub fn barrier() {
    together("bar.sync", Reach::Block);
    emit("bar.sync", vec![number(0)]);
    with(|b| b.pass_barrier());
}

// The end.

/// The host sees what this thread stored before it.
#[track_caller]
pub fn fence_sc_sys() {
    emit("fence.sc.sys", vec![]);
}

/// Ends the grid with an error.
#[track_caller]
pub fn trap() {
    emit("trap", vec![]);
}

#[track_caller]
pub(crate) fn ret() {
    emit("ret", vec![]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, build};

    fn message(body: impl FnOnce()) -> String {
        let options =
            Options { target: ptx::Target::SM_80, threads: 32, cluster: 1, blocks_per_processor: None, checks: false };
        build("wrong", options, body).err().map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn the_form_table_decides_what_exists() {
        assert_eq!(message(|| emit("ret.twice", vec![])), "`ret.twice` is not in the form table");
        let few = message(|| emit("cp.async.wait_group", vec![]));
        assert_eq!(few, "`cp.async.wait_group` takes the operands `n:imm(0..)`");
    }

    #[test]
    fn an_instruction_of_a_later_target_is_refused() {
        let address = || Operand::Address(Address { base: AddressBase::Absolute, offset: 0 });
        let wait = || {
            define::<bool>("mbarrier.try_wait.parity.shared::cta.b64", vec![address(), number(0)]);
        };
        let expected = "`mbarrier.try_wait.parity.shared::cta.b64` needs sm_90, and this kernel is for sm_80";
        assert_eq!(message(wait), expected);
    }
}
