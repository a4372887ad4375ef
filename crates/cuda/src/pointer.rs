//! Memory of the caller's own on a GPU: allocated elsewhere, freed elsewhere.

use std::marker::PhantomData;

/// Bytes on a GPU that kernels read.
#[derive(Debug, Clone, Copy)]
pub struct DeviceSlice<'a> {
    address: u64,
    bytes: usize,
    device: u32,
    memory: PhantomData<&'a [u8]>,
}

/// Bytes on a GPU that kernels write.
#[derive(Debug)]
pub struct DeviceSliceMut<'a> {
    address: u64,
    bytes: usize,
    device: u32,
    memory: PhantomData<&'a mut [u8]>,
}

macro_rules! slice {
    ($slice:ident, $does:literal) => {
        impl<'a> $slice<'a> {
            pub(crate) fn of(address: u64, bytes: usize, device: u32) -> $slice<'a> {
                $slice { address, bytes, device, memory: PhantomData }
            }

            /// Memory of the caller's: a `CUdeviceptr` or what `cudaMalloc` gave, and the GPU's number.
            ///
            /// # Safety
            /// The bytes are allocated on that GPU, stay so for `'a` and until every stream that a kernel was put into is
            /// done with them, and meanwhile nobody
            #[doc = $does]
            pub unsafe fn from_raw(address: u64, bytes: usize, device: u32) -> $slice<'a> {
                $slice::of(address, bytes, device)
            }

            /// Its first byte.
            pub fn address(&self) -> u64 {
                self.address
            }

            /// How many bytes there are.
            pub fn bytes(&self) -> usize {
                self.bytes
            }

            /// The GPU that it lies on, as CUDA_VISIBLE_DEVICES counts.
            pub fn device(&self) -> u32 {
                self.device
            }
        }
    };
}

slice!(DeviceSlice, "writes them.");
slice!(DeviceSliceMut, "else reads or writes them.");
