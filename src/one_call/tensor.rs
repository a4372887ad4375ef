//! Q, K, V and O as the caller has them. A shape is always (batch, heads, rows, columns), whatever their order in memory.

use attention::problem::{DType, Layout, Shape};
use cuda::{DeviceSlice, DeviceSliceMut};
use half::slice::HalfFloatSliceExt;
use half::vec::HalfBitsVecExt;
use half::{bf16, f16};

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

/// The numbers of a host tensor: [`half::f16`] or [`half::bf16`].
pub trait Number: Copy {
    #[doc(hidden)]
    const DTYPE: DType;
    #[doc(hidden)]
    fn bits(values: &[Self]) -> &[u16];
    #[doc(hidden)]
    fn from_bits(bits: Vec<u16>) -> Vec<Self>;
}

macro_rules! number {
    ($number:ident, $dtype:expr) => {
        impl Number for $number {
            const DTYPE: DType = $dtype;

            fn bits(values: &[$number]) -> &[u16] {
                values.reinterpret_cast()
            }

            fn from_bits(bits: Vec<u16>) -> Vec<$number> {
                bits.reinterpret_into()
            }
        }
    };
}

number!(f16, DType::F16);
number!(bf16, DType::Bf16);

/// Q, K or V on the host.
#[derive(Clone, Copy, Debug)]
pub struct HostTensor<'a, N> {
    pub(super) values: &'a [N],
    pub(super) shape: [u32; 4],
    pub(super) layout: Layout,
}

impl<'a, N: Number> HostTensor<'a, N> {
    /// In the order (batch, heads, rows, columns), without gaps.
    pub fn new(values: &'a [N], shape: [u32; 4]) -> HostTensor<'a, N> {
        HostTensor { values, shape, layout: Layout::Bhsd }
    }

    /// Packed sequences ([`Options::packed`](super::Options::packed)): (rows, heads, columns), without gaps.
    pub fn packed(values: &'a [N], [rows, heads, columns]: [u32; 3]) -> HostTensor<'a, N> {
        HostTensor { values, shape: [1, heads, rows, columns], layout: Layout::Bshd }
    }

    /// In another order in memory; the shape stays (batch, heads, rows, columns).
    pub fn layout(mut self, layout: Layout) -> HostTensor<'a, N> {
        self.layout = layout;
        self
    }

    pub(super) fn view(&self) -> View {
        View::new(N::DTYPE, self.shape, self.layout)
    }
}
