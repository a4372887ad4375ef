//! Global memory: parameters, slices, tensors with strides and bounds.
//!
//! Offsets are computed in 64 bits: a tensor may have more than 2³² elements.

use super::{Cell, Coordinate, Element, Packed, Pred, Type, U32, U64, Value};
use crate::builder::{Named, Reach, check_name, with};
use crate::error::BuildError;
use crate::instructions::{
    GlobalPointer, Pointer, atom_global_add_u32, cvta_to_global_u64, ld_global, ld_global_nc, ld_global_v2, ld_param,
    st_global, st_global_v2, st_relaxed_gpu_global,
};
use std::marker::PhantomData;
use std::panic::Location;

/// `cp.async` moves 16 bytes at a time: what tensors are aligned to, and their strides.
const TENSOR_ALIGN: u32 = 16;

/// A scalar that the launch passes.
#[track_caller]
pub fn parameter<T: Type>(name: &str) -> Value<T> {
    declared(name, None)
}

/// A pointer that the launch passes, as a `.global` address.
#[track_caller]
fn pointer(name: &str, align: u32) -> U64 {
    cvta_to_global_u64(declared(name, Some((Some(ptx::Space::Global), align))))
}

#[track_caller]
fn declared<T: Type>(name: &str, pointer: Option<(Option<ptx::Space>, u32)>) -> Value<T> {
    ld_param::<T>(declare::<T>(name, pointer)).named(name).reaching(Reach::Block)
}

/// A parameter that nobody has read yet; `pointer` is what it points to, and aligned to how many bytes.
#[track_caller]
pub(crate) fn declare<T: Type>(name: &str, pointer: Option<(Option<ptx::Space>, u32)>) -> ptx::ParameterId {
    let at = Location::caller();
    with(|b| {
        check_name(Named::Parameter, name, b.author_place(at));
        if b.parameters.iter().any(|known| known.name == name) {
            BuildError::new(format!("parameter `{name}` is declared twice"), at).raise()
        }
        let Ok(ty) = T::NAME.parse::<ptx::Type>() else {
            BuildError::new(format!("parameter `{name}` cannot be of type {}", T::NAME), at).raise()
        };
        b.parameters.push(ptx::Parameter { name: name.into(), ty, align: ty.bytes(), count: None, pointer });
        ptx::ParameterId(b.parameters.len() as u32 - 1)
    })
}

/// A parameter of so many bytes, passed by value.
#[track_caller]
pub(super) fn declare_bytes(name: &str, count: u32, align: u32) -> ptx::ParameterId {
    let id = declare::<u32>(name, None);
    with(|b| {
        let parameter = &mut b.parameters[id.0 as usize];
        *parameter = ptx::Parameter { ty: ptx::Type::B8, align, count: Some(count), ..parameter.clone() };
    });
    id
}

/// A one-dimensional array of `T`.
#[derive(Clone, Copy)]
pub struct Slice<T> {
    base: U64,
    of: PhantomData<T>,
}

impl<T: Type> Slice<T> {
    #[track_caller]
    pub fn parameter(name: &str) -> Slice<T> {
        Slice { base: pointer(name, T::BYTES), of: PhantomData }
    }

    /// Without its first elements.
    #[track_caller]
    pub fn skip(&self, elements: U64) -> Slice<T> {
        Slice { base: self.base + elements * u64::from(T::BYTES), of: PhantomData }
    }

    #[track_caller]
    fn at(&self, index: impl Into<U32>) -> GlobalPointer {
        Pointer::new(self.base + index.into().widening_mul(T::BYTES))
    }

    #[track_caller]
    pub fn load(&self, index: impl Into<U32>) -> Value<T> {
        ld_global(self.at(index))
    }

    /// Of memory that nobody writes while the kernel runs: an equal one in reach is used again.
    #[track_caller]
    pub fn fetch(&self, index: impl Into<U32>) -> Value<T> {
        ld_global_nc(self.at(index))
    }

    #[track_caller]
    pub fn store(&self, index: impl Into<U32>, value: Value<T>) {
        st_global(self.at(index), value);
    }

    /// An element at an even place, and the one behind it.
    #[track_caller]
    pub fn load_pair(&self, index: impl Into<U32>) -> [Value<T>; 2] {
        ld_global_v2(self.at(index))
    }

    /// The same way round. The constant part of `index` becomes the instruction's offset.
    #[track_caller]
    pub fn store_pair(&self, index: Coordinate, pair: [Value<T>; 2]) {
        st_global_v2(self.at(index.base).plus(index.constant * T::BYTES), pair);
    }
}

impl Slice<u32> {
    /// Adds one to a word that blocks share, and returns what was there.
    #[track_caller]
    pub fn count(&self, index: impl Into<U32>) -> U32 {
        atom_global_add_u32(self.at(index), 1.into())
    }

    /// Sets a word that blocks share.
    #[track_caller]
    pub fn publish(&self, index: impl Into<U32>, value: U32) {
        st_relaxed_gpu_global(self.at(index), value);
    }
}

/// (batch, head, row, column) of `E` in any order, columns contiguous.
#[derive(Clone, Copy)]
pub struct Tensor<E> {
    base: U64,
    /// In elements.
    batch_stride: U64,
    head_stride: U64,
    /// Below 2³¹, so that its bytes are 32 bits and the address of a row is one wide multiplication.
    row_stride: U32,
    of: PhantomData<E>,
}

impl<E: Element> Tensor<E> {
    /// Parameters `name`, and `name_batch_stride`, `name_head_stride` (u64) and `name_row_stride` (u32) in elements.
    #[track_caller]
    pub fn parameter(name: &str) -> Tensor<E> {
        Tensor {
            base: pointer(name, TENSOR_ALIGN),
            batch_stride: parameter(&format!("{name}_batch_stride")),
            head_stride: parameter(&format!("{name}_head_stride")),
            row_stride: parameter(&format!("{name}_row_stride")),
            of: PhantomData,
        }
    }

    /// One without batch entries: parameters `name`, `name_head_stride` and `name_row_stride`.
    #[track_caller]
    pub fn unbatched(name: &str) -> Tensor<E> {
        Tensor {
            base: pointer(name, TENSOR_ALIGN),
            batch_stride: 0.into(),
            head_stride: parameter(&format!("{name}_head_stride")),
            row_stride: parameter(&format!("{name}_row_stride")),
            of: PhantomData,
        }
    }

    /// The `rows` × `columns` matrix of one batch entry and head.
    #[track_caller]
    pub fn matrix(&self, batch: U32, head: U32, rows: U32, columns: u32) -> Matrix<E> {
        let element = batch.to_u64() * self.batch_stride + head.to_u64() * self.head_stride;
        let base = self.base + element * u64::from(E::BYTES);
        Matrix { base, rows, columns, row_bytes: self.row_stride * E::BYTES, heads: None, of: PhantomData }
    }

    /// Of each row of a head's matrix that of this head, then that of the next, `heads` in all, before the next row.
    #[track_caller]
    pub fn rows_of_heads(&self, first: Matrix<E>, heads: U32) -> Matrix<E> {
        let next = self.head_stride * u64::from(E::BYTES);
        Matrix { rows: first.rows * heads, heads: Some((heads, next)), ..first }
    }
}

/// Rows of `E` in global memory; rows at and after `rows` do not exist.
#[derive(Clone, Copy)]
pub struct Matrix<E> {
    base: U64,
    pub rows: U32,
    pub columns: u32,
    row_bytes: U32,
    /// Of how many heads each row is, and how many bytes they are apart.
    heads: Option<(U32, U64)>,
    of: PhantomData<E>,
}

impl<E: Element> Matrix<E> {
    /// As many rows, from another first one on.
    #[track_caller]
    pub fn from_row(&self, first: U32) -> Matrix<E> {
        Matrix { base: self.base + first.widening_mul(self.row_bytes), ..*self }
    }

    #[track_caller]
    pub fn at(&self, row: U32, column: U32) -> GlobalPointer {
        let first_row = self.base + (column * E::BYTES).to_u64();
        let Some((heads, next)) = self.heads else {
            return Pointer::new(first_row + row.widening_mul(self.row_bytes));
        };
        let of_head = row / heads;
        let head = row - of_head * heads;
        Pointer::new(first_row + of_head.widening_mul(self.row_bytes) + head.to_u64() * next)
    }

    /// Whether it has the column of `cell`: known while generating, unless lanes differ.
    #[track_caller]
    pub fn has_column_of(&self, cell: Cell) -> Pred {
        cell.is_before(self.columns)
    }

    /// Stores two neighbours of one row. The constant part of `column` becomes the instruction's offset.
    #[track_caller]
    pub fn store_pair(&self, row: U32, column: Coordinate, pair: Value<Packed<E>>) {
        st_global(self.at(row, column.base).plus(column.constant * E::BYTES), pair);
    }
}
