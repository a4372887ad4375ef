//! Q, K, V and O as the caller has them. A shape is always (batch, heads, rows, columns), whatever their order in memory.

use attention::problem::{DType, Layout, Shape};
use cuda::{DeviceSlice, DeviceSliceMut};
use half::slice::HalfBitsSliceExt;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::borrow::Cow;

/// Sizes of (batch, heads, rows, columns), and elements from one to the next of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub dtype: DType,
    pub shape: [u32; 4],
    pub strides: [u64; 4],
}

impl View {
    pub fn new(dtype: DType, shape: [u32; 4], layout: Layout) -> View {
        let [batch, heads, rows, columns] = shape;
        let [batch, head, row] = Shape { batch, heads, rows, columns, layout }.strides().map(|stride| stride as u64);
        View { dtype, shape, strides: [batch, head, row, 1] }
    }

    /// The order of its dimensions, as far as it has one.
    pub fn layout(&self) -> Layout {
        let [_, head, row, _] = self.strides;
        if head < row { Layout::Bshd } else { Layout::Bhsd }
    }
}

/// Q, K or V on a GPU.
///
/// ```no_run
/// use veriflash::attention::problem::{DType, Layout};
/// use veriflash::cuda::{Context, DeviceBuffer};
///
/// let context = Context::here()?;
/// let memory = DeviceBuffer::new(&context, 2 * 8 * 512 * 64 * 2)?;
/// let q = veriflash::DeviceTensor::new(memory.slice(), DType::F16, [2, 8, 512, 64], Layout::Bhsd);
/// # Ok::<(), veriflash::cuda::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceTensor<'a> {
    pub(super) memory: DeviceSlice<'a>,
    pub(super) view: View,
}

/// O on a GPU.
#[derive(Debug)]
pub struct DeviceTensorMut<'a> {
    pub(super) memory: DeviceSliceMut<'a>,
    pub(super) view: View,
}

macro_rules! device_tensor {
    ($tensor:ident, $slice:ident) => {
        impl<'a> $tensor<'a> {
            /// Without gaps, the dimensions of (batch, heads, rows, columns) in the order of the layout.
            pub fn new(memory: $slice<'a>, dtype: DType, shape: [u32; 4], layout: Layout) -> $tensor<'a> {
                $tensor { memory, view: View::new(dtype, shape, layout) }
            }

            /// Packed sequences ([`Options::packed`](super::Options::packed)): (rows, heads, columns), without gaps.
            pub fn packed(memory: $slice<'a>, dtype: DType, [rows, heads, columns]: [u32; 3]) -> $tensor<'a> {
                $tensor::new(memory, dtype, [1, heads, rows, columns], Layout::Bshd)
            }

            /// With other distances: elements from one to the next batch entry, head, row and column.
            pub fn strides(mut self, strides: [u64; 4]) -> $tensor<'a> {
                self.view.strides = strides;
                self
            }

            /// The sizes of (batch, heads, rows, columns).
            pub fn shape(&self) -> [u32; 4] {
                self.view.shape
            }
        }
    };
}

device_tensor!(DeviceTensor, DeviceSlice);
device_tensor!(DeviceTensorMut, DeviceSliceMut);

/// The numbers of a host tensor: [`half::f16`], [`half::bf16`], or f32 on plain cores.
pub trait Number: attention::cpu::Number {
    #[doc(hidden)]
    const DTYPE: DType;
    #[doc(hidden)]
    fn bits(values: &[Self]) -> &[u16];
    #[doc(hidden)]
    fn copy_bits(bits: &[u16], to: &mut [Self]);
}

macro_rules! number {
    ($number:ident, $dtype:expr) => {
        impl Number for $number {
            const DTYPE: DType = $dtype;

            fn bits(values: &[$number]) -> &[u16] {
                values.reinterpret_cast()
            }

            fn copy_bits(bits: &[u16], to: &mut [$number]) {
                to.copy_from_slice(bits.reinterpret_cast());
            }
        }
    };
}

number!(f16, DType::F16);
number!(bf16, DType::Bf16);

/// Kernels, which take bits, refuse f32 before they ask.
impl Number for f32 {
    const DTYPE: DType = DType::F32;

    fn bits(_: &[f32]) -> &[u16] {
        &[]
    }

    fn copy_bits(_: &[u16], _: &mut [f32]) {}
}

/// Q, K or V on the host.
#[derive(Clone, Copy, Debug)]
pub struct HostTensor<'a, N> {
    pub(super) values: &'a [N],
    pub(super) shape: [u32; 4],
    pub(super) layout: Layout,
    /// Instead of those of the layout.
    pub(super) strides: Option<[u64; 4]>,
    /// Whether it was made of packed sequences.
    pub(super) packed: bool,
}

impl<'a, N: Number> HostTensor<'a, N> {
    /// In the order (batch, heads, rows, columns), without gaps.
    pub fn new(values: &'a [N], shape: [u32; 4]) -> HostTensor<'a, N> {
        HostTensor { values, shape, layout: Layout::Bhsd, strides: None, packed: false }
    }

    /// Packed sequences ([`Options::packed`](super::Options::packed)): (rows, heads, columns), without gaps.
    pub fn packed(values: &'a [N], [rows, heads, columns]: [u32; 3]) -> HostTensor<'a, N> {
        let shape = [1, heads, rows, columns];
        HostTensor { layout: Layout::Bshd, packed: true, ..HostTensor::new(values, shape) }
    }

    /// In another order in memory, without gaps, whatever strides were said before; the shape stays (batch, heads, rows, columns).
    pub fn layout(self, layout: Layout) -> HostTensor<'a, N> {
        HostTensor { layout, strides: None, ..self }
    }

    /// With other distances: elements from one to the next batch entry, head, row and column, which are contiguous. O is in the
    /// order that the strides of `q` have, without gaps.
    ///
    /// ```
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// // Q, K and V of each row lie side by side: (rows, three, columns).
    /// let qkv: Vec<f32> = (0..5 * 3 * 16).map(|index| (index % 7) as f32).collect();
    /// let [q, k, v] = [0, 16, 32].map(|from| HostTensor::new(&qkv[from..], [1, 1, 5, 16]).strides([0, 0, 48, 1]));
    /// assert_eq!(attention(&q, &k, &v, &Options::new())?.o.len(), 5 * 16);
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn strides(mut self, strides: [u64; 4]) -> HostTensor<'a, N> {
        self.strides = Some(strides);
        self
    }

    /// The sizes of (batch, heads, rows, columns).
    pub fn shape(&self) -> [u32; 4] {
        self.shape
    }

    pub(super) fn view(&self) -> View {
        let view = View::new(N::DTYPE, self.shape, self.layout);
        View { strides: self.strides.unwrap_or(view.strides), ..view }
    }

    /// Without gaps and in this order, for kernels, whose recipes know two.
    pub(super) fn dense(&self, layout: Layout) -> Cow<'a, [N]> {
        if self.strides.is_none() && self.layout == layout {
            return Cow::Borrowed(self.values);
        }
        let [batch_stride, head_stride, row_stride, _] = self.view().strides.map(|stride| stride as usize);
        let [batch, heads, rows, columns] = self.shape.map(|extent| extent as usize);
        let mut values = Vec::with_capacity(batch * heads * rows * columns);
        let (outer, inner) = if layout == Layout::Bhsd { (heads, rows) } else { (rows, heads) };
        for (batch, first, second) in
            (0..batch).flat_map(|b| (0..outer * inner).map(move |i| (b, i / inner, i % inner)))
        {
            let (head, row) = if layout == Layout::Bhsd { (first, second) } else { (second, first) };
            values.extend_from_slice(
                &self.values[batch * batch_stride + head * head_stride + row * row_stride..][..columns],
            );
        }
        Cow::Owned(values)
    }
}
