//! Bits that nobody reads word by word: `init.packed` is the base64 of their gzip.
//!
//! Every shell writes and reads it: `gzip -9n < x.bin | base64`, and `base64 -d | gunzip | xxd` back.

use std::fmt;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::buffer::within;
use crate::element::Element;
use crate::error::Fault;
use crate::source::Spot;
use crate::toml_table::Item;
use crate::words::without_comments;

/// The columns that a line of base64 fills.
const COLUMNS: usize = 112;

const REMEDY: &str = "expected what `gzip -9n < x.bin | base64` prints";

/// The little-endian bytes of every element, packed.
///
/// ```
/// use launch::{Buffer, Element, Expr, Limits, Recipe, buffer::Init, packed::Packed};
///
/// let mut buffer = Buffer::new("x", Element::U16, vec![Expr::from(500u32)]);
/// buffer.init = Init::Packed(Packed::new(&[1, 0].repeat(500)));
/// let recipe = Recipe { buffers: vec![buffer], ..Recipe::default() };
/// assert!(recipe.to_toml().len() < 200);
/// assert!(recipe.resolve(&Limits::default()).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    gzip: Vec<u8>,
    spot: Spot,
}

impl Packed {
    /// Packs bytes.
    pub fn new(bytes: &[u8]) -> Packed {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
        // Writing to a vector cannot fail.
        let _ = encoder.write_all(bytes);
        Packed { gzip: encoder.finish().unwrap_or_default(), spot: Spot::default() }
    }

    /// Reads base64; `what` is named in errors. It is unpacked only where its size is known.
    pub(crate) fn read(item: Item, what: &str) -> Result<Packed, Fault> {
        let (text, spot) = (item.string()?, item.content_spot());
        let digit = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        let mut digits = String::new();
        for word in without_comments(text) {
            if let Some((at, wrong)) = word.char_indices().find(|(_, c)| !digit(*c)) {
                let message = format!("{what}: `{wrong}` is no digit of base64");
                return Err(Fault::new(within(spot, text, &word[at..]), message));
            }
            digits.push_str(word);
        }
        let gzip = STANDARD.decode(digits);
        let gzip = gzip.map_err(|error| Fault::new(spot, format!("{what} is no base64 ({error}): {REMEDY}")))?;
        Ok(Packed { gzip, spot })
    }

    /// The bytes, which must be those of `count` elements: a few packed bytes may stand for more than memory holds.
    pub(crate) fn unpack(&self, what: &str, element: Element, count: u64) -> Result<Vec<u8>, Fault> {
        let fault = |message: String| Fault::new(self.spot, format!("{what} {message}"));
        let needed = count * element.bytes() as u64;
        let mut bytes = Vec::new();
        let read = MultiGzDecoder::new(&self.gzip[..]).take(needed + 1).read_to_end(&mut bytes);
        read.map_err(|error| fault(format!("does not unpack ({error}): {REMEDY}")))?;
        if bytes.len() as u64 == needed {
            return Ok(bytes);
        }
        let found = if bytes.len() as u64 > needed { format!("more than {needed}") } else { bytes.len().to_string() };
        let wanted = format!("expected {needed}, {count} elements of {element}");
        Err(fault(format!("unpacks to {found} bytes: {wanted}; pack exactly those or change `shape`")))
    }
}

impl fmt::Display for Packed {
    /// A TOML string of several lines that reads back to the same.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = STANDARD.encode(&self.gzip);
        formatter.write_str("\"\"\"\n")?;
        let mut rest = &digits[..];
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(COLUMNS));
            writeln!(formatter, "{line}")?;
            rest = after;
        }
        formatter.write_str("\"\"\"")
    }
}
