//! Recorded files are packed; a test reads each once, and keeps it.

use std::io::Read;

pub fn bytes(packed: &[u8]) -> &'static [u8] {
    let mut bytes = vec![];
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).expect("what gzip wrote");
    bytes.leak()
}

#[allow(dead_code)] // Not every test has text.
pub fn text(packed: &[u8]) -> &'static str {
    std::str::from_utf8(bytes(packed)).expect("hexadecimal digits")
}
