//! The bytes of a buffer in pages that many may share: a copy costs nothing until somebody writes, and a large buffer of
//! one repeated value is one page.

use std::sync::Arc;

/// Bytes of a page; the last of a buffer may be shorter. A multiple of every element's size.
pub const PAGE_BYTES: usize = 1 << 16;

/// The bytes of a buffer.
///
/// ```
/// use launch::Contents;
///
/// let zeros = Contents::repeated(&[0], 1 << 30);
/// assert_eq!(zeros.len(), 1 << 30);
/// assert_eq!(Contents::from(vec![1, 2, 3]).to_vec(), [1, 2, 3]);
/// ```
#[derive(Clone, Default)]
pub struct Contents {
    length: usize,
    pages: Vec<Arc<[u8]>>,
}

impl Contents {
    /// One element's bytes, again and again.
    pub fn repeated(element: &[u8], length: usize) -> Contents {
        let cycle = |bytes: usize| element.iter().copied().cycle().take(bytes).collect::<Arc<[u8]>>();
        let mut pages = vec![cycle(PAGE_BYTES.min(length)); length / PAGE_BYTES];
        if !length.is_multiple_of(PAGE_BYTES) {
            pages.push(cycle(length % PAGE_BYTES));
        }
        Contents { length, pages }
    }

    /// Of pages that are all full but the last.
    pub fn from_pages(pages: Vec<Arc<[u8]>>) -> Contents {
        Contents { length: pages.iter().map(|page| page.len()).sum(), pages }
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// No bytes at all?
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pages, all full but the last.
    pub fn pages(&self) -> &[Arc<[u8]>] {
        &self.pages
    }

    /// All bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length);
        self.pages.iter().for_each(|page| bytes.extend_from_slice(page));
        bytes
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Contents {
        Contents { length: bytes.len(), pages: bytes.chunks(PAGE_BYTES).map(Arc::from).collect() }
    }
}

impl PartialEq for Contents {
    fn eq(&self, other: &Contents) -> bool {
        let same = |(a, b): (&Arc<[u8]>, &Arc<[u8]>)| Arc::ptr_eq(a, b) || a == b;
        self.length == other.length && self.pages.iter().zip(&other.pages).all(same)
    }
}

impl Eq for Contents {}

impl std::fmt::Debug for Contents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_value_is_one_page_and_a_tail() {
        let contents = Contents::repeated(&[1, 2], 3 * PAGE_BYTES + 4);
        assert_eq!(contents.pages().len(), 4);
        assert!(Arc::ptr_eq(&contents.pages()[0], &contents.pages()[2]));
        assert_eq!(contents.pages()[3].as_ref(), [1, 2, 1, 2]);
        assert_eq!(contents, Contents::from([1, 2].repeat(3 * PAGE_BYTES / 2 + 2)));
    }

    #[test]
    fn one_byte_makes_the_difference() {
        let mut bytes = vec![0; PAGE_BYTES + 1];
        let zeros = Contents::from(bytes.clone());
        bytes[PAGE_BYTES] = 1;
        assert_ne!(Contents::from(bytes), zeros);
        assert_ne!(Contents::repeated(&[0], 3), Contents::repeated(&[0], 4));
    }
}
