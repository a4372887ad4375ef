//! Loops over the lanes of chunks. Operands are loaded by value, half a warp at a time, so that a destination may be an
//! operand, too, and the compiler sees that.

use super::vector;
use crate::machine::Chunk;

pub type Half = [u32; 16];

/// On lines of the cache of their own: words that vectors are loaded from and stored to. Wherever else they would lie is
/// luck, and a vector on two lines costs twice.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Aligned<T>(pub T);

/// The register file as the kernels see it: places have been checked against its size.
pub struct File<'a> {
    chunks: &'a mut [Chunk],
    predicates: &'a mut [u32],
}

impl<'a> File<'a> {
    /// # Safety
    /// Every place that is passed to the methods must be inside.
    pub unsafe fn new(chunks: &'a mut [Chunk], predicates: &'a mut [u32]) -> File<'a> {
        File { chunks, predicates }
    }

    #[inline(always)]
    pub fn half(&self, place: u32, half: usize) -> Half {
        debug_assert!((place as usize) < self.chunks.len());
        // SAFETY: whoever made the file promised that places are inside; the halves of 32 words are at 0 and 16.
        unsafe { *self.chunks.as_ptr().add(place as usize).cast::<Half>().add(half) }
    }

    #[inline(always)]
    fn set_half(&mut self, place: u32, half: usize, words: Half) {
        debug_assert!((place as usize) < self.chunks.len());
        // SAFETY: as for `half`.
        unsafe { *self.chunks.as_mut_ptr().add(place as usize).cast::<Half>().add(half) = words }
    }

    #[inline(always)]
    pub fn predicate(&self, place: u32) -> u32 {
        debug_assert!((place as usize) < self.predicates.len());
        // SAFETY: as for `half`.
        unsafe { *self.predicates.get_unchecked(place as usize) }
    }

    #[inline(always)]
    pub fn set_predicate(&mut self, place: u32, mask: u32, bits: u32) {
        debug_assert!((place as usize) < self.predicates.len());
        // SAFETY: as for `half`.
        let predicate = unsafe { self.predicates.get_unchecked_mut(place as usize) };
        *predicate = *predicate & !mask | bits & mask;
    }

    #[inline(always)]
    pub fn words(&self, place: u32) -> &[u32; 32] {
        debug_assert!((place as usize) < self.chunks.len());
        // SAFETY: as for `half`.
        unsafe { &self.chunks.get_unchecked(place as usize).0 }
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub fn write(&mut self, place: u32, mask: u32, words: &[Half; 2]) {
        for half in 0..2 {
            self.write_half(place, half, mask, words[half]);
        }
    }

    #[inline(always)]
    pub fn write_half(&mut self, place: u32, half: usize, mask: u32, words: Half) {
        let words = if mask == u32::MAX { words } else { blend(mask >> (16 * half), words, self.half(place, half)) };
        self.set_half(place, half, words);
    }

    #[inline(always)]
    pub fn halves(&self, place: u32) -> [Half; 2] {
        [self.half(place, 0), self.half(place, 1)]
    }

    /// `destination = function(a, b, c)` in the lanes of `mask`.
    #[inline(always)]
    pub fn map(&mut self, [destination, a, b, c]: [u32; 4], mask: u32, function: impl Fn(u32, u32, u32) -> u32) {
        let mut results = [[0; 16]; 2];
        for half in 0..2 {
            let (x, y, z) = (self.half(a, half), self.half(b, half), self.half(c, half));
            for lane in 0..16 {
                results[half][lane] = function(x[lane], y[lane], z[lane]);
            }
        }
        self.write(destination, mask, &results);
    }

    /// The same for a function that may be in doubt: then nothing is written, and the answer is false.
    #[inline(always)]
    pub fn try_map(
        &mut self,
        [destination, a, b, c]: [u32; 4],
        mask: u32,
        function: impl Fn(u32, u32, u32) -> (u32, bool),
    ) -> bool {
        let mut results = [[0; 16]; 2];
        let mut doubts = [0u32; 16];
        for half in 0..2 {
            let (x, y, z) = (self.half(a, half), self.half(b, half), self.half(c, half));
            for lane in 0..16 {
                let (value, doubt) = function(x[lane], y[lane], z[lane]);
                results[half][lane] = value;
                doubts[lane] |= u32::from(doubt);
            }
        }
        let mut any = 0;
        for one in doubts {
            any |= one;
        }
        if any != 0 {
            return false;
        }
        self.write(destination, mask, &results);
        true
    }

    /// Wide operands and result.
    #[inline(always)]
    pub fn map_wide(&mut self, [destination, a, b, c]: [u32; 4], mask: u32, function: impl Fn(u64, u64, u64) -> u64) {
        for half in 0..2 {
            let load = |place: u32| (self.half(place, half), self.half(place + 1, half));
            let ((x, x_high), (y, y_high), (z, z_high)) = (load(a), load(b), load(c));
            let join = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
            let (mut low, mut high) = ([0; 16], [0; 16]);
            for lane in 0..16 {
                let operands = [join(x[lane], x_high[lane]), join(y[lane], y_high[lane]), join(z[lane], z_high[lane])];
                let value = function(operands[0], operands[1], operands[2]);
                (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
            }
            self.write_half(destination, half, mask, low);
            self.write_half(destination + 1, half, mask, high);
        }
    }

    /// The same in words, where that is shorter: low and high of each operand.
    #[inline(always)]
    pub fn map_pairs(
        &mut self,
        [destination, a, b, c]: [u32; 4],
        mask: u32,
        function: impl Fn([u32; 2], [u32; 2], [u32; 2]) -> [u32; 2],
    ) {
        for half in 0..2 {
            let (x, y, z) = (self.half(a, half), self.half(b, half), self.half(c, half));
            let (x_high, y_high, z_high) = (self.half(a + 1, half), self.half(b + 1, half), self.half(c + 1, half));
            let (mut low, mut high) = ([0; 16], [0; 16]);
            for lane in 0..16 {
                let pair = function([x[lane], x_high[lane]], [y[lane], y_high[lane]], [z[lane], z_high[lane]]);
                (low[lane], high[lane]) = (pair[0], pair[1]);
            }
            self.write_half(destination, half, mask, low);
            self.write_half(destination + 1, half, mask, high);
        }
    }

    /// The lanes where `holds` does.
    #[inline(always)]
    pub fn compare<const LEVEL: u8>(&self, a: u32, b: u32, holds: impl Fn(u32, u32) -> bool) -> u32 {
        let mut chosen = [[0u32; 16]; 2];
        for half in 0..2 {
            let (x, y) = (self.half(a, half), self.half(b, half));
            for lane in 0..16 {
                chosen[half][lane] = u32::from(holds(x[lane], y[lane])).wrapping_neg();
            }
        }
        vector::signs::<LEVEL>(&chosen)
    }

    #[inline(always)]
    pub fn compare_wide(&self, a: u32, b: u32, holds: impl Fn(u64, u64) -> bool) -> u32 {
        let mut bits = 0;
        let (a, a_high, b, b_high) = (self.words(a), self.words(a + 1), self.words(b), self.words(b + 1));
        for lane in 0..32 {
            let x = u64::from(a_high[lane]) << 32 | u64::from(a[lane]);
            let y = u64::from(b_high[lane]) << 32 | u64::from(b[lane]);
            bits |= u32::from(holds(x, y)) << lane;
        }
        bits
    }
}

/// `new` where the mask has a one, `old` elsewhere.
#[inline(always)]
pub fn blend(mask: u32, new: Half, old: Half) -> Half {
    let mut result = [0; 16];
    for lane in 0..16 {
        let chosen = u32::from(mask & (1 << lane) != 0).wrapping_neg();
        result[lane] = new[lane] & chosen | old[lane] & !chosen;
    }
    result
}
