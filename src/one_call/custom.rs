//! Masks and scores that the user wrote.

use super::kernels;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A mask or a score of the user's own, for [`Options::mask_with`](super::Options::mask_with) and
/// [`Options::score_with`](super::Options::score_with). Make it once and keep it: the kernel that is built with it is found
/// again by this very value. No other value finds it, so that two masks never share a kernel by mistake, whatever their types
/// and fields are. One that is made anew for every call is right, too, but has the kernel's text generated every time.
///
/// The mask is asked while a kernel is built and not again: what it answers must not change meanwhile, so only shared access
/// to it is given.
///
/// ```
/// use std::ops::Range;
/// use veriflash::attention::kernels::parts::Lengths;
/// use veriflash::half::f16;
/// use veriflash::tile::prelude::*;
/// use veriflash::{Custom, HostTensor, Mask, Options, attention};
///
/// /// Every query sees the first keys, and no other.
/// struct Prefix {
///     keys: u32,
/// }
///
/// impl Mask for Prefix {
///     fn seen_by_some(&self, _: Range<U32>, of: Lengths) -> Range<U32> {
///         0.into()..of.keys.min(self.keys)
///     }
///
///     fn seen_by_all(&self, queries: Range<U32>, of: Lengths) -> Range<U32> {
///         self.seen_by_some(queries, of)
///     }
///
///     fn sees(&self, _: Coordinate, key: Coordinate, _: Lengths) -> Pred {
///         key.lt(self.keys.into())
///     }
/// }
///
/// let prefix = Custom::new(Prefix { keys: 3 });
/// let zeros = vec![f16::ZERO; 8 * 16];
/// let tensor = HostTensor::new(&zeros, [1, 1, 8, 16]);
/// let output = attention(&tensor, &tensor, &tensor, &Options::new().mask_with(&prefix).emulator())?;
/// assert!(output.lse.iter().all(|lse| (lse - 3f32.ln()).abs() < 1e-6), "three keys, each with score 0");
/// # Ok::<(), veriflash::Error>(())
/// ```
pub struct Custom<T: ?Sized> {
    id: u64,
    value: T,
}

impl<T> Custom<T> {
    /// Takes the mask or the score; nobody can change it from now on.
    pub fn new(value: T) -> Custom<T> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Custom { id: NEXT.fetch_add(1, Relaxed), value }
    }
}

impl<T: ?Sized> Custom<T> {
    /// Differs from that of every other value in the process, earlier ones too.
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl<T: ?Sized> Deref for Custom<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> Drop for Custom<T> {
    fn drop(&mut self) {
        kernels::forget(self.id);
    }
}

impl<T: ?Sized> fmt::Debug for Custom<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Custom({})", self.id)
    }
}
