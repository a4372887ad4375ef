//! Which key a query sees: the seam between the oracle and the masks.
//!
//! The oracle asks nothing but [`Visibility::sees`], one query and one key at a time; it knows no mask by name. A mask
//! that is compiled into kernels answers here by evaluating the same definition on constants.

use std::ops::Range;

/// How many queries and keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    pub queries: u32,
    pub keys: u32,
}

/// Says which key a query sees. Any closure of the same shape is one.
pub trait Visibility: Sync {
    fn sees(&self, query: u32, key: u32, of: Lengths) -> bool;
}

impl<F: Fn(u32, u32, Lengths) -> bool + Sync> Visibility for F {
    fn sees(&self, query: u32, key: u32, of: Lengths) -> bool {
        self(query, key, of)
    }
}

/// The built-in kinds, as a problem names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MaskKind {
    /// Every query sees every key.
    #[default]
    None,
    /// The last query sees the last key, and each earlier one a key less (as FlashAttention has it).
    CausalBottomRight,
    /// The first query sees the first key, and each later one a key more (as torch has it).
    CausalTopLeft,
    /// Each query sees the key at its own place, so many before it and so many behind it; the last query stands at the last
    /// key (as FlashAttention has it).
    Window { left: u32, right: u32 },
}

impl Visibility for MaskKind {
    fn sees(&self, query: u32, key: u32, of: Lengths) -> bool {
        // In 64 bits the sums cannot wrap.
        let [query, key, queries, keys] = [query, key, of.queries, of.keys].map(u64::from);
        match self {
            MaskKind::None => true,
            MaskKind::CausalBottomRight => key + queries <= query + keys,
            MaskKind::CausalTopLeft => key <= query,
            MaskKind::Window { left, right } => {
                let place = query + keys;
                place <= key + queries + u64::from(*left) && key + queries <= place + u64::from(*right)
            }
        }
    }
}

impl MaskKind {
    /// The keys that a query sees: the built-in kinds leave no gaps.
    pub fn interval(self, query: u32, of: Lengths) -> Range<u32> {
        // In 64 bits the sums cannot wrap.
        let [query, queries, keys] = [query, of.queries, of.keys].map(i64::from);
        let place = query + keys - queries;
        let (first, end) = match self {
            MaskKind::None => (0, keys),
            MaskKind::CausalBottomRight => (0, place + 1),
            MaskKind::CausalTopLeft => (0, query + 1),
            MaskKind::Window { left, right } => (place - i64::from(left), place + i64::from(right) + 1),
        };
        first.clamp(0, keys) as u32..end.clamp(0, keys) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(mask: MaskKind, queries: u32, keys: u32) -> Vec<String> {
        let of = Lengths { queries, keys };
        let row = |query| (0..keys).map(|key| if mask.sees(query, key, of) { 'x' } else { '.' }).collect();
        (0..queries).map(row).collect()
    }

    #[test]
    fn bottom_right_ends_in_the_last_corner() {
        assert_eq!(picture(MaskKind::CausalBottomRight, 2, 4), ["xxx.", "xxxx"]);
        assert_eq!(picture(MaskKind::CausalBottomRight, 4, 2), ["..", "..", "x.", "xx"]);
    }

    #[test]
    fn top_left_begins_in_the_first_corner() {
        assert_eq!(picture(MaskKind::CausalTopLeft, 2, 4), ["x...", "xx.."]);
        assert_eq!(picture(MaskKind::CausalTopLeft, 4, 2), ["x.", "xx", "xx", "xx"]);
    }

    #[test]
    fn a_window_follows_the_diagonal_of_the_last_corner() {
        let window = MaskKind::Window { left: 1, right: 0 };
        assert_eq!(picture(window, 3, 4), ["xx..", ".xx.", "..xx"]);
        assert_eq!(picture(window, 4, 2), ["..", "..", "x.", "xx"]);
        assert_eq!(picture(MaskKind::Window { left: 0, right: 1 }, 3, 2), ["x.", "xx", ".x"]);
    }

    #[test]
    fn no_mask_hides_nothing() {
        assert_eq!(picture(MaskKind::None, 1, 3), ["xxx"]);
    }
}
