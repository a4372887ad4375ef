//! Contents that no call has seen before: signs of whole columns of V are changed before each sample. The same columns of the output
//! then change theirs, to the bit, and changed back they are what the first run left. Who answers from memory is found out.

use cuda::{DeviceBuffer, Stream};

use super::buffers::{BufferKernels, Buffers};

/// So many samples have signs of their own; the first are the signs that were drawn.
const PATTERNS: usize = 256;
/// The sign of each of four numbers.
const SIGNS: [u64; 4] = [1 << 15, 1 << 31, 1 << 47, 1 << 63];

/// Which columns of a row change their signs, pattern by pattern.
pub struct Signs {
    masks: DeviceBuffer,
    words: usize,
}

impl Signs {
    /// For rows of so many columns, a multiple of four.
    pub fn new(kernels: &BufferKernels, stream: &Stream, columns: usize) -> Result<Signs, cuda::Error> {
        let words = columns / SIGNS.len();
        let bytes: Vec<u8> = masks(words).iter().flat_map(|mask| mask.to_le_bytes()).collect();
        let mut masks = DeviceBuffer::new(kernels.context(), bytes.len())?;
        masks.write(stream, &bytes)?;
        Ok(Signs { masks, words })
    }

    /// Changes signs by the pattern of a sample, and does not wait; twice, and they are as before. With `fold`, zeros lose theirs.
    pub fn flip(
        &self,
        kernels: &BufferKernels,
        stream: &Stream,
        buffers: &Buffers,
        (sample, fold): (usize, bool),
    ) -> Result<(), cuda::Error> {
        let pattern = self.masks.address() + (sample % PATTERNS * self.words * 8) as u64;
        kernels.flip(stream, buffers, [pattern, self.words as u64, fold.into()])
    }
}

/// The first pattern changes nothing, the others about half of the columns.
fn masks(words: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(0);
    let mut word = |pattern: usize| {
        let chosen = SIGNS.iter().filter(|_| random.bool()).sum::<u64>();
        if pattern == 0 { 0 } else { chosen }
    };
    (0..PATTERNS * words).map(|index| word(index / words.max(1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_its_own_and_the_first_changes_nothing() {
        let all = masks(16);
        let patterns: Vec<&[u64]> = all.chunks(16).collect();
        assert!(patterns.len() == PATTERNS && patterns[0].iter().all(|mask| *mask == 0));
        let distinct: std::collections::BTreeSet<&[u64]> = patterns.iter().copied().collect();
        assert_eq!(distinct.len(), PATTERNS);
        assert!(all.iter().all(|mask| mask & !SIGNS.iter().sum::<u64>() == 0));
    }
}
