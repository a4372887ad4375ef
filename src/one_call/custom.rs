//! Masks and scores that the user wrote.

use super::{Error, kernels};
use attention::Problem;
use attention::configs::Config;
use attention::kernels::parts::masks::Mask;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tile::prelude::U32;

/// A mask or a score of the user's own, for [`Options::mask_with`](super::Options::mask_with) and
/// [`Options::score_with`](super::Options::score_with). Make it once and keep it: the kernel that is built with it is found
/// again by this very value. No other value finds it, so that two masks never share a kernel by mistake, whatever their types
/// and fields are. One that is made anew for every call is right, too, but has the kernel's text generated every time.
///
/// For a kernel the mask is asked while it is built and not again. Plain cores ask it in every call, on several threads, about
/// numbers: it answers with numbers, so that it cannot use what only lanes of a kernel have (`shuffle_xor`, memory). What it answers
/// must not change, so only shared access to it is given.
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

/// Whether a mask keeps its promises: what it says of blocks of queries is what it says of single ones.
pub(super) fn check_promises(mask: &dyn Mask, problem: &Problem, config: &Config) -> Result<(), Error> {
    let broken = |found: String| Err(Error::Promise { found });
    let known = |range: Range<U32>| Some(range.start.known()?..range.end.known()?);
    for of in problem.sequence_lengths() {
        let group = config.heads.rows(1, problem);
        let rows = of.queries * group;
        for first in (0..rows).step_by(config.rows as usize) {
            let block = first / group..(first + config.rows).min(rows).div_ceil(group);
            let asked = || U32::from(block.start)..U32::from(block.end);
            let [some, all] = [mask.seen_by_some(asked(), of.into()), mask.seen_by_all(asked(), of.into())].map(known);
            let (Some(some), Some(all)) = (some, all) else {
                return broken(format!("does not answer constants for queries {block:?}"));
            };
            for (query, key) in block.clone().flat_map(|query| (0..of.keys).map(move |key| (query, key))) {
                let Some(sees) = mask.sees(query.into(), key.into(), of.into()).known() else {
                    return broken(format!("does not answer constants for query {query} and key {key}"));
                };
                if sees && !some.contains(&key) {
                    return broken(format!(
                        "shows key {key} to query {query}, and says that queries {block:?} see only keys {some:?} (`seen_by_some`)"
                    ));
                }
                if !sees && all.contains(&key) {
                    return broken(format!(
                        "hides key {key} from query {query}, and says that queries {block:?} all see keys {all:?} (`seen_by_all`)"
                    ));
                }
            }
            if all.end > of.keys && !all.is_empty() {
                return broken(format!("says that queries {block:?} all see keys {all:?} of {}", of.keys));
            }
        }
    }
    Ok(())
}

impl<T: ?Sized> fmt::Debug for Custom<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Custom({})", self.id)
    }
}
