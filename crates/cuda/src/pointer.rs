//! Memory of the caller's own on a GPU: allocated elsewhere, freed elsewhere.

use std::marker::PhantomData;

use crate::context::Context;

/// Bytes on a GPU that kernels read.
#[derive(Debug, Clone, Copy)]
pub struct DeviceSlice<'a> {
    address: u64,
    bytes: usize,
    device: u32,
    context: Option<u64>,
    memory: PhantomData<&'a [u8]>,
}

/// Bytes on a GPU that kernels write.
#[derive(Debug)]
pub struct DeviceSliceMut<'a> {
    address: u64,
    bytes: usize,
    device: u32,
    context: Option<u64>,
    memory: PhantomData<&'a mut [u8]>,
}

macro_rules! slice {
    ($slice:ident, $does:literal) => {
        impl<'a> $slice<'a> {
            pub(crate) fn of(address: u64, bytes: usize, context: &Context) -> $slice<'a> {
                let (device, context) = (context.ordinal(), Some(context.id()));
                $slice { address, bytes, device, context, memory: PhantomData }
            }

            /// Memory of the caller's: a `CUdeviceptr` or what `cudaMalloc` gave, and the GPU's number.
            ///
            /// # Safety
            /// The bytes are allocated on that GPU, stay so for `'a` and until every stream that a kernel was put into is
            /// done with them and every graph that recorded one is dropped; they can be reached from the context of the
            /// streams that they are used in; and meanwhile nobody
            #[doc = $does]
            pub unsafe fn from_raw(address: u64, bytes: usize, device: u32) -> $slice<'a> {
                $slice { address, bytes, device, context: None, memory: PhantomData }
            }

            /// Its first byte.
            pub fn address(&self) -> u64 {
                self.address
            }

            /// How many bytes there are.
            pub fn bytes(&self) -> usize {
                self.bytes
            }

            /// The id of the context that it was allocated in, where that is known: other contexts cannot reach it, on
            /// the same GPU neither.
            pub fn context(&self) -> Option<u64> {
                self.context
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

impl<'a> From<DeviceSliceMut<'a>> for DeviceSlice<'a> {
    fn from(DeviceSliceMut { address, bytes, device, context, .. }: DeviceSliceMut<'a>) -> DeviceSlice<'a> {
        DeviceSlice { address, bytes, device, context, memory: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_memory_is_of_its_gpu_and_of_no_known_context() {
        // SAFETY: nothing reads or writes there.
        let (read, write) = unsafe { (DeviceSlice::from_raw(0x1000, 64, 1), DeviceSliceMut::from_raw(0x2000, 32, 0)) };
        assert_eq!((read.address(), read.bytes(), read.device(), read.context()), (0x1000, 64, 1, None));
        assert_eq!((write.address(), write.bytes(), write.device(), write.context()), (0x2000, 32, 0, None));
        let read = DeviceSlice::from(write);
        assert_eq!((read.address(), read.bytes(), read.device(), read.context()), (0x2000, 32, 0, None));
    }
}
