//! Bits as hexadecimal words: `init.hex = """3f800000 bf800000  # one and minus one"""`.
//!
//! A word has two digits per byte of its element, so that a digit too many or too few is an error and not another number.

use std::fmt::Write;

use crate::buffer::within;
use crate::element::Element;
use crate::error::Fault;
use crate::source::Spot;
use crate::toml_table::Item;

/// The columns that [`print`] fills.
const COLUMNS: usize = 112;

/// The words of a string; `what` is named in errors.
pub(crate) fn read(item: Item, what: &str, element: Element) -> Result<Vec<u64>, Fault> {
    let reader = Reader { text: item.string()?, spot: item.content_spot(), what, element };
    without_comments(reader.text).zip(1..).map(|(word, number)| reader.bits(word, number)).collect()
}

/// What stands between white space, without what follows a `#`.
pub(crate) fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    let before_comment = |line| str::split(line, '#').next().unwrap_or_default();
    text.lines().flat_map(move |line| before_comment(line).split_whitespace())
}

struct Reader<'a> {
    text: &'a str,
    spot: Spot,
    what: &'a str,
    element: Element,
}

impl Reader<'_> {
    fn bits(&self, word: &str, number: usize) -> Result<u64, Fault> {
        let fault = |what: String| {
            let message = format!("{}: word {number} is `{word}`: {what}", self.what);
            Err(Fault::new(within(self.spot, self.text, word), message))
        };
        if let Some(wrong) = word.chars().find(|c| !c.is_ascii_hexdigit()) {
            return fault(format!("`{wrong}` is no hexadecimal digit"));
        }
        let digits = 2 * self.element.bytes();
        match u64::from_str_radix(word, 16) {
            Ok(bits) if word.len() == digits => Ok(bits),
            _ => fault(format!("expected {digits} digits for {}, found {}", self.element, word.len())),
        }
    }
}

/// A TOML string of several lines that reads back to the words.
pub(crate) fn print(words: &[u64], element: Element) -> String {
    let digits = 2 * element.bytes();
    let mut text = String::from("\"\"\"\n");
    for row in words.chunks(COLUMNS / (digits + 1)) {
        for (index, word) in row.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{space}{word:0digits$x}");
        }
        text.push('\n');
    }
    text + "\"\"\""
}
