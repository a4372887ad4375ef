//! SHA-256, the one hash: any auditor has `sha256sum`.

use sha2::{Digest, Sha256};

use crate::contents::Contents;
use crate::recipe::Recipe;

/// SHA-256 of bytes, in lower-case hexadecimal.
///
/// ```
/// assert!(launch::hash::hex(b"abc").starts_with("ba7816bf"));
/// ```
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same of a buffer.
pub fn of(contents: &Contents) -> String {
    let mut digest = Sha256::new();
    contents.pages().iter().for_each(|page| digest.update(page));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Recipe {
    /// The recipe's hash: of what it says, not of how or where it was written. File contents are not part of it.
    pub fn hash(&self) -> String {
        let without_place = Recipe { ptx: None, ..self.clone() };
        hex(without_place.to_toml().as_bytes())
    }
}
