//! Typed values: a value is a constant or a register, `Copy`, and never changes; a [`Var`] may.

mod accumulator;
mod chunks;
mod coordinate;
mod float;
mod fragment;
mod global;
mod number;
mod operand;
mod operators;
mod plain_product;
mod product;
mod rows;
mod share;
mod shared;
mod tensor_map;
mod var;
mod warp_rows;
mod warpgroup_product;

pub use accumulator::Accumulator;
pub use coordinate::{Cell, Coordinate};
pub use fragment::Fragment;
pub(crate) use global::declare;
pub use global::{Matrix, Slice, Tensor, parameter};
pub use number::{Number, Operation, Order};
pub use operand::RowOperand;
pub use plain_product::{dot, weigh_add};
pub use product::{Left, Right, mma, mma_add};
pub use rows::{RowVars, Rows};
pub use share::Share;
pub(crate) use shared::{CopyPlan, PANEL_COLUMNS, PANEL_ROW_BYTES, allocate, panels};
pub use shared::{SharedTile, SharedVector, Transposed, View};
pub use tensor_map::{TensorMap, TileAt};
pub use var::Var;
pub use warp_rows::{HandedRows, WarpRows};
pub use warpgroup_product::{InFlight, LeftOfGroup, RightOfGroup};

use crate::builder::{self, Named, Reach, RegisterId, check_name};
use ptx::{Immediate, Operand};
use std::marker::PhantomData;
use std::panic::Location;

pub type U32 = Value<u32>;
pub type I32 = Value<i32>;
pub type U64 = Value<u64>;
pub type F32 = Value<f32>;
pub type Pred = Value<bool>;

/// IEEE half precision, as a type.
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// bfloat16, as a type.
#[derive(Clone, Copy, Debug)]
pub struct BF16;

/// What tiles and matrix operands are made of.
pub trait Element: Copy + 'static {
    const NAME: &'static str;
    const BYTES: u32 = 2;
}
impl Element for F16 {
    const NAME: &'static str = "f16";
}
impl Element for BF16 {
    const NAME: &'static str = "bf16";
}

/// Two elements in one register, the first in the low half.
#[derive(Clone, Copy, Debug)]
pub struct Packed<E>(PhantomData<E>);

/// One element in a register of its own.
#[derive(Clone, Copy, Debug)]
pub struct Half<E>(PhantomData<E>);

/// What a register can hold.
pub trait Type: Copy + 'static {
    /// How the register is declared: bits of a width, `.f32` or `.pred`.
    const REGISTER: ptx::Type;
    /// How instructions spell it: `u32`, `f32`, `b32`.
    const NAME: &'static str;
    /// How `st` and `ld` move it; predicates have no memory.
    const BYTES: u32;

    /// A constant as an operand, from its bits.
    fn immediate(bits: u64) -> Immediate {
        Immediate::Integer(bits as i128)
    }
}

impl Type for bool {
    const REGISTER: ptx::Type = ptx::Type::Pred;
    const NAME: &'static str = "pred";
    const BYTES: u32 = 0;
}
impl Type for u32 {
    const REGISTER: ptx::Type = ptx::Type::B32;
    const NAME: &'static str = "u32";
    const BYTES: u32 = 4;
}
impl Type for i32 {
    const REGISTER: ptx::Type = ptx::Type::B32;
    const NAME: &'static str = "s32";
    const BYTES: u32 = 4;
    fn immediate(bits: u64) -> Immediate {
        Immediate::Integer((bits as u32).cast_signed().into())
    }
}
impl Type for u64 {
    const REGISTER: ptx::Type = ptx::Type::B64;
    const NAME: &'static str = "u64";
    const BYTES: u32 = 8;
}
impl Type for f32 {
    const REGISTER: ptx::Type = ptx::Type::F32;
    const NAME: &'static str = "f32";
    const BYTES: u32 = 4;
    fn immediate(bits: u64) -> Immediate {
        Immediate::Float(bits as u32)
    }
}
impl<E: Element> Type for Packed<E> {
    const REGISTER: ptx::Type = ptx::Type::B32;
    const NAME: &'static str = "b32";
    const BYTES: u32 = 4;
}

impl<E: Element> Type for Half<E> {
    const REGISTER: ptx::Type = ptx::Type::B16;
    const NAME: &'static str = "b16";
    const BYTES: u32 = 2;
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Repr {
    Constant(u64),
    Register(RegisterId),
}

/// A constant or a register of type `T`.
#[derive(Debug)]
pub struct Value<T> {
    repr: Repr,
    holds: PhantomData<T>,
}
impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Value<T> {}

impl<T: Type> Value<T> {
    fn constant(bits: u64) -> Value<T> {
        Value { repr: Repr::Constant(bits), holds: PhantomData }
    }

    pub(crate) fn from_register(id: RegisterId) -> Value<T> {
        Value { repr: Repr::Register(id), holds: PhantomData }
    }

    pub(crate) fn repr(self) -> Repr {
        self.repr
    }

    /// How an instruction reads it. A register must be in reach: made in a scope that is still open.
    #[track_caller]
    pub fn operand(self) -> Operand {
        let at = Location::caller();
        match self.repr {
            Repr::Constant(bits) => Operand::Immediate(T::immediate(bits)),
            Repr::Register(id) => builder::with(|b| b.read(id, at)),
        }
    }

    /// The name its register has in the PTX text.
    #[track_caller]
    pub fn named(self, name: &str) -> Value<T> {
        let at = Location::caller();
        if let Repr::Register(id) = self.repr {
            builder::with(|b| {
                check_name(Named::Register, name, b.author_place(at));
                b.name(id, name);
            });
        }
        self
    }

    /// The author's word that more threads agree on this value than its operands show.
    #[track_caller]
    pub fn reaching(self, reach: Reach) -> Value<T> {
        if let Repr::Register(id) = self.repr {
            builder::with(|b| b.set_reach(id, reach));
        }
        self
    }

    /// The value of the lane whose index differs in the bits of `mask`.
    #[track_caller]
    pub fn shuffle_xor(self, mask: u32) -> Value<T> {
        crate::instructions::shfl_sync_bfly_b32(self, mask)
    }

    /// The value of lane number `lane`, the same for all that ask.
    #[track_caller]
    pub fn of_lane(self, lane: impl Into<U32>) -> Value<T> {
        crate::instructions::shfl_sync_idx_b32(self, lane)
    }

    /// A copy in a register of its own.
    #[track_caller]
    pub(crate) fn copied(self) -> Value<T> {
        crate::instructions::mov(self)
    }
}
