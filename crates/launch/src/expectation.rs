//! What a buffer must hold after the last launch, and how close is close enough.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::buffer::split_call;
use crate::contents::Contents;
use crate::element::{Element, Value};
use crate::error::Error;
use crate::packed::Packed;
use crate::product::Product;
use crate::recipe::Number;
use crate::resolved::{self, Expected};
use crate::{files, hash};

/// `expect`, as written in a recipe.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// A raw or `.npy` file.
    File(String),
    /// A list of all elements.
    Values(Vec<Number>),
    /// `expect.hex = "3f800000 40000000"`: the bits of all elements.
    Words(Vec<u64>),
    /// `expect.packed = "H4sIAA…"`: the same, packed.
    Packed(Packed),
    /// `sha256:…`, the digits.
    Hash(String),
    /// `product(a, b)`, computed in float64.
    Product(Product),
}

impl Expect {
    /// How many elements are listed, where they are.
    pub(crate) fn listed(&self) -> Option<usize> {
        match self {
            Expect::Values(values) => Some(values.len()),
            Expect::Words(words) => Some(words.len()),
            Expect::File(_) | Expect::Packed(_) | Expect::Hash(_) | Expect::Product(_) => None,
        }
    }
}

/// `tolerance`. A NaN is never close to anything, another NaN included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Tolerance {
    /// `exact`: the same bits, after rounding the reference to the buffer's type.
    #[default]
    Exact,
    /// `2ulp`: at most so many representable values of the buffer's type apart.
    Ulp(u64),
    /// `rel_l2(1e-3)`: the norm of the difference over the norm of the reference.
    RelativeL2(f64),
    /// `abs(1e-5)`: the largest difference.
    Absolute(f64),
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Tolerance, String> {
        let bound = |text: &str| text.trim().parse().ok().filter(|bound: &f64| bound.is_finite() && *bound >= 0.0);
        let tolerance = match split_call(text) {
            ("exact", None) => Some(Tolerance::Exact),
            ("rel_l2", Some(number)) => bound(number).map(Tolerance::RelativeL2),
            ("abs", Some(number)) => bound(number).map(Tolerance::Absolute),
            (word, None) => word.strip_suffix("ulp").and_then(|count| count.parse().ok()).map(Tolerance::Ulp),
            _ => None,
        };
        tolerance.ok_or_else(|| format!("unknown tolerance `{text}`: expected exact, 2ulp, rel_l2(1e-3) or abs(1e-5)"))
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Exact => formatter.write_str("exact"),
            Tolerance::Ulp(count) => write!(formatter, "{count}ulp"),
            Tolerance::RelativeL2(bound) => write!(formatter, "rel_l2({bound:?})"),
            Tolerance::Absolute(bound) => write!(formatter, "abs({bound:?})"),
        }
    }
}

/// Compares what a buffer holds with what the recipe expects; a buffer without expectation always passes.
pub fn compare(buffer: &resolved::Buffer, found: &Contents, folder: &Path) -> Result<(), Error> {
    let Some(expectation) = &buffer.expectation else { return Ok(()) };
    let fail = |message: String| Error::Expectation { buffer: buffer.name.clone(), message };
    if found.len() as u64 != buffer.bytes {
        return Err(fail(format!("has {} bytes: expected {}", found.len(), buffer.bytes)));
    }
    let reference = match &expectation.expected {
        Expected::Hash(digits) => return compare_hash(digits, found).map_err(fail),
        Expected::Values(values) => values.clone(),
        Expected::Bytes(bytes) => expectation.element.read_all(bytes),
        Expected::File(path) => {
            let bytes = files::elements(&folder.join(path), expectation.element, &buffer.shape)?;
            expectation.element.read_all(&bytes)
        }
        Expected::Product(factors) => factors.multiply(folder)?.into_iter().map(f64::to_bits).collect(),
    };
    let comparison = Comparison { buffer, expectation, reference: &reference, found: &found.to_vec() };
    comparison.judge().map_err(fail)
}

/// Whether the file is there that a buffer is compared with, if there is one.
pub(crate) fn check_file(buffer: &resolved::Buffer, folder: &Path) -> Result<(), Error> {
    match &buffer.expectation {
        Some(resolved::Expectation { expected: Expected::File(path), element, .. }) => {
            files::elements(&folder.join(path), *element, &buffer.shape).map(drop)
        }
        _ => Ok(()),
    }
}

fn compare_hash(digits: &str, found: &Contents) -> Result<(), String> {
    let actual = hash::of(found);
    if actual == digits { Ok(()) } else { Err(format!("expected sha256:{digits}, found sha256:{actual}")) }
}

struct Comparison<'a> {
    buffer: &'a resolved::Buffer,
    expectation: &'a resolved::Expectation,
    reference: &'a [u64],
    found: &'a [u8],
}

impl Comparison<'_> {
    fn judge(&self) -> Result<(), String> {
        match self.expectation.tolerance {
            Tolerance::RelativeL2(bound) => {
                let error = self.relative_l2();
                // Written so that a NaN fails.
                if error <= bound { Ok(()) } else { Err(self.relative_message(error, bound)) }
            }
            tolerance => self.each(tolerance),
        }
    }

    fn each(&self, tolerance: Tolerance) -> Result<(), String> {
        let differing = self.differing(|index| self.close(index, tolerance));
        if differing.0 == 0 { Ok(()) } else { Err(self.message(differing, tolerance)) }
    }

    /// How many elements fail, and the first of them.
    fn differing(&self, close: impl Fn(usize) -> bool) -> (usize, usize) {
        let mut failing = (0..self.reference.len()).filter(|index| !close(*index));
        let first = failing.next();
        first.map_or((0, 0), |first| (1 + failing.count(), first))
    }

    fn close(&self, index: usize, tolerance: Tolerance) -> bool {
        let (wide, found) = (self.expected(index), self.found(index));
        let element = self.buffer.element;
        if wide.is_nan() || found.is_nan() {
            return false;
        }
        let bits = element.read(self.found, index);
        match tolerance {
            Tolerance::Absolute(bound) => wide == found || (wide - found).abs() <= bound,
            Tolerance::Ulp(count) if wide.is_finite() && found.is_finite() => self
                .rounded(index)
                .is_some_and(|expected| element.order(expected).abs_diff(element.order(bits)) <= u128::from(count)),
            Tolerance::Ulp(_) => wide == found,
            Tolerance::Exact | Tolerance::RelativeL2(_) => self.rounded(index) == Some(bits),
        }
    }

    /// The reference in the buffer's type, unless that type cannot hold it.
    fn rounded(&self, index: usize) -> Option<u64> {
        let (from, to, bits) = (self.expectation.element, self.buffer.element, self.reference[index]);
        if from == to {
            return Some(bits);
        }
        let value = if from.is_float() { Value::Float(from.decode(bits)) } else { Value::Integer(from.order(bits)) };
        to.encode(value).ok()
    }

    fn expected(&self, index: usize) -> f64 {
        self.expectation.element.decode(self.reference[index])
    }

    fn found(&self, index: usize) -> f64 {
        self.buffer.element.decode(self.buffer.element.read(self.found, index))
    }

    fn relative_l2(&self) -> f64 {
        // Squares of large numbers have no room in float64.
        let magnitudes = (0..self.reference.len()).map(|index| self.expected(index).abs());
        let largest = magnitudes.filter(|magnitude| magnitude.is_finite()).fold(0.0, f64::max);
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let (mut difference, mut norm) = (0.0, 0.0);
        for index in 0..self.reference.len() {
            let (expected, found) = (self.expected(index), self.found(index));
            // The logarithm of an empty sum is -inf on both sides, and that is right.
            if expected.is_infinite() && expected == found {
                continue;
            }
            difference += ((expected - found) / scale).powi(2);
            norm += (expected / scale).powi(2);
        }
        // A reference of zeros has no scale: only zeros are right.
        if difference == 0.0 { 0.0 } else { (difference / norm).sqrt() }
    }

    fn relative_message(&self, error: f64, bound: f64) -> String {
        let (count, first) = self.differing(|index| self.close(index, Tolerance::Exact));
        let (total, place) = (self.reference.len(), self.place(first));
        format!("rel_l2 is {error:.3e}: expected at most {bound:?}; {count} of {total} elements differ, first {place}")
    }

    fn message(&self, (count, first): (usize, usize), tolerance: Tolerance) -> String {
        format!("{count} of {} elements differ ({tolerance}), first {}", self.reference.len(), self.place(first))
    }

    fn place(&self, index: usize) -> String {
        let expected = show(self.expectation.element, self.reference[index]);
        let found = show(self.buffer.element, self.buffer.element.read(self.found, index));
        format!("at {}: expected {expected}, found {found}", self.coordinates(index))
    }

    fn coordinates(&self, mut index: usize) -> String {
        let mut coordinates = Vec::new();
        for length in self.buffer.shape.iter().rev() {
            coordinates.push((index % *length as usize).to_string());
            index /= *length as usize;
        }
        coordinates.reverse();
        format!("[{}]", coordinates.join(", "))
    }
}

fn show(element: Element, bits: u64) -> String {
    if !element.is_float() {
        return element.order(bits).to_string();
    }
    let digits = 2 * element.bytes();
    format!("{:?} (0x{bits:0digits$x})", element.decode(bits))
}
