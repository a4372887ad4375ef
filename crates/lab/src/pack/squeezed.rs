//! Files of a pack that few read and that are large: as gzip.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

/// The ending of such a file.
pub const ENDING: &str = ".gz";

/// One result for one input, on every machine: no name and no time.
pub fn squeeze(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    // Writing into memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// At most so many bytes come out of a file: a pack is no place for bombs.
const MOST: u64 = 64 << 20;

/// Nothing if it is no gzip, or of something huge.
pub fn unsqueeze(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes).take(MOST + 1).read_to_end(&mut text);
    (read.is_ok() && text.len() as u64 <= MOST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_nothing_else_does() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(|word| (word / 7).to_le_bytes()).collect();
        let squeezed = squeeze(&bytes);
        assert!(squeezed.len() < bytes.len() / 4);
        assert_eq!(unsqueeze(&squeezed), Some(bytes.clone()));
        assert_eq!(squeeze(&bytes), squeezed);
        assert_eq!(unsqueeze(b"plain text"), None);
        assert_eq!(unsqueeze(&squeezed[..squeezed.len() / 2]), None);
    }
}
