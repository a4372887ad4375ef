//! What a buffer holds before the first launch.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::contents::{Contents, PAGE_BYTES};
use crate::element::{Element, Value};
use crate::error::{Error, Fault};
use crate::expr::{Expr, Names};
use crate::packed::Packed;
use crate::random::Random;
use crate::recipe::{Buffer, Number};
use crate::source::Spot;
use crate::{files, resolved};

/// How a buffer is filled, as written in a recipe.
///
/// ```
/// use launch::buffer::Init;
///
/// assert_eq!(Init::parse("normal(0.5)").unwrap().to_string(), "normal(0.5)");
/// assert!(Init::parse("random").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Init {
    /// `normal(sigma)` or `normal(sigma, seed)`: random, the seed else taken from the buffer's name and `--data-seed`.
    Normal {
        /// The standard deviation.
        sigma: Float,
        /// The seed, where it does not depend on the run.
        seed: Option<Expr>,
    },
    /// `zeros`.
    Zeros,
    /// `ramp`: element `i` holds `i`, starting again where the type stops holding every integer (f16 at 2048).
    Ramp,
    /// `steps(n)`: element `i` holds `i / n`, rounded down: n equal ones, and then the next.
    Steps(Expr),
    /// `const(v)`.
    Const(Number),
    /// `poison`: [`Element::poison`] everywhere, and the bytes count as never written. The default.
    #[default]
    Poison,
    /// `init = [1, 2]`: every element.
    Values(Vec<Number>),
    /// `init.hex = "3f800000 40000000"`: the bits of every element.
    Words(Vec<u64>),
    /// `init.packed = "H4sIAA…"`: the same, packed.
    Packed(Packed),
    /// `file = "x.bin"` (raw little-endian) or `"x.npy"`.
    File(String),
}

/// A float that compares by bits, so that recipes with a NaN can be equal.
#[derive(Debug, Clone, Copy)]
pub struct Float(pub f64);

impl PartialEq for Float {
    fn eq(&self, other: &Float) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl fmt::Display for Float {
    /// As TOML writes it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            value if value.is_nan() => formatter.write_str(if value.is_sign_negative() { "-nan" } else { "nan" }),
            value => write!(formatter, "{value:?}"),
        }
    }
}

impl Init {
    /// Reads the value of `init`.
    pub fn parse(text: &str) -> Result<Init, Fault> {
        Init::parse_at(text, Spot::at(0))
    }

    pub(crate) fn parse_at(text: &str, spot: Spot) -> Result<Init, Fault> {
        let (name, arguments) = split_call(text);
        match (name, arguments) {
            ("zeros", None) => Ok(Init::Zeros),
            ("ramp", None) => Ok(Init::Ramp),
            ("poison", None) => Ok(Init::Poison),
            ("const", Some(value)) => Ok(Init::Const(Number::parse_at(value, within(spot, text, value))?)),
            ("steps", Some(count)) => Ok(Init::Steps(Expr::parse_at(count, within(spot, text, count))?)),
            ("normal", Some(arguments)) => normal(text, arguments, spot),
            _ => {
                let expected = "normal(sigma), normal(sigma, seed), zeros, ramp, steps(n), const(v) or poison";
                Err(Fault::new(spot, format!("unknown init `{text}`: expected {expected}")))
            }
        }
    }

    /// How many elements are listed, where they are.
    pub(crate) fn listed(&self) -> Option<usize> {
        match self {
            Init::Values(values) => Some(values.len()),
            Init::Words(words) => Some(words.len()),
            _ => None,
        }
    }

    /// The value with every expression evaluated, for the elements of a buffer.
    pub(crate) fn resolve(&self, buffer: &Buffer, count: u64, names: &Names) -> Result<resolved::Init, Fault> {
        let (element, spot) = (buffer.element, buffer.spot);
        Ok(match self {
            Init::Packed(packed) => {
                resolved::Init::Bytes(packed.unpack(&format!("`init` of buffer `{}`", buffer.name), element, count)?)
            }
            Init::Words(words) => resolved::Init::Values(words.clone()),
            Init::Values(values) => {
                let encode = |number: &Number| element.encode(number.evaluate(names)?).map_err(|m| Fault::new(spot, m));
                resolved::Init::Values(values.iter().map(encode).collect::<Result<_, Fault>>()?)
            }
            Init::Zeros => resolved::Init::Constant(0),
            Init::Ramp => resolved::Init::Ramp,
            Init::Steps(count) => match u64::try_from(count.evaluate(names)?) {
                Ok(count) if count > 0 => resolved::Init::Steps(count),
                _ => return Err(Fault::new(count.spot(), format!("`{count}` equal elements: expected at least 1"))),
            },
            Init::Poison => resolved::Init::Poison,
            Init::File(path) => resolved::Init::File(path.into()),
            Init::Const(number) => {
                let bits = element.encode(number.evaluate(names)?).map_err(|message| Fault::new(spot, message))?;
                resolved::Init::Constant(bits)
            }
            Init::Normal { sigma, seed } => {
                let seed = seed.as_ref().map(|seed| seed_value(seed, names)).transpose()?;
                resolved::Init::Normal { sigma: sigma.0, seed }
            }
        })
    }
}

fn normal(text: &str, arguments: &str, spot: Spot) -> Result<Init, Fault> {
    let (sigma, seed) = arguments.split_once(',').map_or((arguments, None), |(sigma, seed)| (sigma, Some(seed)));
    let deviation: Option<f64> = sigma.trim().parse().ok().filter(|sigma: &f64| sigma.is_finite() && *sigma >= 0.0);
    let Some(deviation) = deviation else {
        let message = format!("sigma is `{}` in `{text}`: expected a number that is not negative", sigma.trim());
        return Err(Fault::new(spot, message));
    };
    let seed = seed.map(|seed| Expr::parse_at(seed, within(spot, text, seed))).transpose()?;
    Ok(Init::Normal { sigma: Float(deviation), seed })
}

fn seed_value(seed: &Expr, names: &Names) -> Result<u64, Fault> {
    let value = seed.evaluate(names)?;
    u64::try_from(value).map_err(|_| Fault::new(seed.spot(), format!("seed is {value}: expected 0 to 2^64-1")))
}

/// Splits `name(arguments)`; a text without parentheses is all name.
pub(crate) fn split_call(text: &str) -> (&str, Option<&str>) {
    let text = text.trim();
    match text.strip_suffix(')').and_then(|inner| inner.split_once('(')) {
        Some((name, arguments)) => (name.trim_end(), Some(arguments)),
        None => (text, None),
    }
}

/// The spot of `part`, which must be a slice of `whole`.
pub(crate) fn within(spot: Spot, whole: &str, part: &str) -> Spot {
    Spot(spot.0.map(|offset| offset + (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)))
}

impl fmt::Display for Init {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Init::Normal { sigma, seed: Some(seed) } => write!(formatter, "normal({sigma}, {seed})"),
            Init::Normal { sigma, seed: None } => write!(formatter, "normal({sigma})"),
            Init::Zeros => formatter.write_str("zeros"),
            Init::Ramp => formatter.write_str("ramp"),
            Init::Steps(count) => write!(formatter, "steps({count})"),
            Init::Const(value) => write!(formatter, "const({value})"),
            Init::Poison => formatter.write_str("poison"),
            Init::Values(values) => write!(formatter, "{} values", values.len()),
            Init::Words(words) => write!(formatter, "{} words", words.len()),
            Init::Packed(_) => formatter.write_str("packed words"),
            Init::File(path) => write!(formatter, "file({path})"),
        }
    }
}

/// The bytes of a buffer before the first launch; `seed` is the run's, `folder` holds the files.
pub(crate) fn fill(buffer: &resolved::Buffer, seed: u64, folder: &Path) -> Result<Contents, Error> {
    let (element, size) = (buffer.element, usize::try_from(buffer.bytes).unwrap_or(usize::MAX));
    let repeated = |bits: u64| {
        let mut bytes = vec![];
        element.write(bits, &mut bytes);
        Ok(Contents::repeated(&bytes, size))
    };
    match buffer.init {
        resolved::Init::File(ref path) => {
            return files::elements(&folder.join(path), element, &buffer.shape).map(Contents::from);
        }
        resolved::Init::Constant(bits) => return repeated(bits),
        resolved::Init::Poison => return repeated(element.poison()),
        _ => {}
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| Error::Recipe {
        place: None,
        message: format!("buffer `{}` needs {size} bytes, more than this machine has", buffer.name),
    })?;
    if let resolved::Init::Normal { sigma, seed: own } = buffer.init {
        let random = own.map_or_else(|| Random::named(&buffer.name, seed), Random::new);
        return Ok(normal_numbers(element, size, sigma, &random));
    }
    let mut next = generator(buffer);
    for index in 0..size / element.bytes() {
        element.write(next(index), &mut bytes);
    }
    Ok(bytes.into())
}

/// Every page begins where the one before it ends, so that they can be drawn side by side.
fn normal_numbers(element: Element, size: usize, sigma: f64, random: &Random) -> Contents {
    let page = |number: usize| {
        let begin = number * PAGE_BYTES;
        let count = PAGE_BYTES.min(size - begin) / element.bytes();
        let mut random = random.after_normals((begin / element.bytes()) as u64);
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        (0..count).for_each(|_| element.write(draw(element, sigma * random.normal()), &mut bytes));
        Arc::from(bytes)
    };
    Contents::from_pages((0..size.div_ceil(PAGE_BYTES)).into_par_iter().map(page).collect())
}

/// The bits of element `i`, asked for in order.
fn generator(buffer: &resolved::Buffer) -> Box<dyn FnMut(usize) -> u64> {
    let element = buffer.element;
    match buffer.init {
        resolved::Init::Constant(bits) => Box::new(move |_| bits),
        resolved::Init::Values(ref values) => {
            let values = values.clone();
            Box::new(move |index| values[index])
        }
        resolved::Init::Bytes(ref bytes) => {
            let bytes = bytes.clone();
            Box::new(move |index| element.read(&bytes, index))
        }
        resolved::Init::Ramp => Box::new(move |index| counted(element, index as u64)),
        resolved::Init::Steps(count) => Box::new(move |index| counted(element, index as u64 / count)),
        resolved::Init::Poison | resolved::Init::File(_) | resolved::Init::Normal { .. } => {
            Box::new(move |_| element.poison())
        }
    }
}

/// A number of a sequence that starts again where the type stops holding every integer.
fn counted(element: Element, number: u64) -> u64 {
    match element.is_float() {
        true => {
            element.encode(Value::Integer((u128::from(number) % element.ramp_period()) as i128)).unwrap_or_default()
        }
        false => element.wrap(number.into()),
    }
}

/// A random number in an element; integers take the nearest whole number and wrap.
fn draw(element: Element, value: f64) -> u64 {
    let bits = element.encode(Value::Float(value));
    bits.unwrap_or_else(|_| element.wrap(value.round_ties_even() as i128))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(element: Element, count: u64, init: resolved::Init) -> Vec<u8> {
        let bytes = count * element.bytes() as u64;
        let buffer = resolved::Buffer { name: "x".into(), element, shape: vec![count], bytes, init, expectation: None };
        fill(&buffer, 0, Path::new("")).unwrap().to_vec()
    }

    #[test]
    fn the_same_bits_on_every_machine() {
        let init = resolved::Init::Normal { sigma: 1.0, seed: None };
        let first: Vec<u8> = bytes(Element::F32, 64, init.clone());
        insta::assert_snapshot!(crate::hash::hex(&first), @"e878e9cb9315c606c43da0770c488a340d47c8867d23121128c9738b7a457af8");
        assert_eq!(bytes(Element::F32, 64, init), first);
    }

    #[test]
    fn pages_that_are_drawn_side_by_side_are_those_drawn_in_order() {
        let count = (2 * PAGE_BYTES / 2 + 7) as u64;
        let mut random = Random::new(5);
        let in_order: Vec<u8> =
            (0..count).flat_map(|_| (draw(Element::F16, 0.5 * random.normal()) as u16).to_le_bytes()).collect();
        assert_eq!(bytes(Element::F16, count, resolved::Init::Normal { sigma: 0.5, seed: Some(5) }), in_order);
    }

    #[test]
    fn lists_fill_in_order() {
        let listed = bytes(Element::U16, 3, resolved::Init::Values(vec![7, 0xFFFF, 0x0102]));
        assert_eq!(listed, [7, 0, 0xFF, 0xFF, 2, 1]);
    }

    #[test]
    fn values_take_the_type_and_words_are_bits() {
        let buffer = Buffer::new("x", Element::F32, vec![]);
        let resolve = |init: Init| init.resolve(&buffer, 3, &Names::default()).unwrap();
        let ones = resolved::Init::Values(vec![0x3F80_0000; 3]);
        assert_eq!(resolve(Init::Values(vec![Number::Float(Float(1.0)); 3])), ones);
        assert_eq!(resolve(Init::Words(vec![0x3F80_0000; 3])), ones);
        let packed = Packed::new(&1f32.to_le_bytes().repeat(3));
        assert_eq!(resolve(Init::Packed(packed)), resolved::Init::Bytes(1f32.to_le_bytes().repeat(3)));
    }

    #[test]
    fn ramps_start_again() {
        let ramp = bytes(Element::Bf16, 258, resolved::Init::Ramp);
        assert_eq!(Element::Bf16.decode(Element::Bf16.read(&ramp, 255)), 255.0);
        assert_eq!(Element::Bf16.decode(Element::Bf16.read(&ramp, 257)), 1.0);
        let ramp = bytes(Element::S8, 300, resolved::Init::Ramp);
        assert_eq!(Element::S8.decode(Element::S8.read(&ramp, 128)), -128.0);
    }

    #[test]
    fn steps_repeat_each_number() {
        assert_eq!(bytes(Element::U8, 7, resolved::Init::Steps(3)), [0, 0, 0, 1, 1, 1, 2]);
        let buffer = Buffer::new("x", Element::U8, vec![]);
        let none = Init::Steps(Expr::from(0u32)).resolve(&buffer, 7, &Names::default());
        assert_eq!(none.unwrap_err().message, "`0` equal elements: expected at least 1");
    }

    #[test]
    fn integers_draw_whole_numbers() {
        let drawn = bytes(Element::S32, 100, resolved::Init::Normal { sigma: 100.0, seed: Some(3) });
        let values: Vec<f64> = (0..100).map(|index| Element::S32.decode(Element::S32.read(&drawn, index))).collect();
        assert!(values.iter().any(|value| *value < -20.0) && values.iter().any(|value| *value > 20.0));
    }

    #[test]
    fn texts_read_back() {
        for text in [
            "normal(1.0)",
            "normal(0.5, n+1)",
            "zeros",
            "ramp",
            "steps(n*3)",
            "const(3)",
            "const(-0.5)",
            "const(n*2)",
            "poison",
        ] {
            let init = Init::parse(text).unwrap();
            assert_eq!(init.to_string(), text);
        }
    }

    #[test]
    fn failures_say_what_is_expected() {
        let failure = |text: &str| Init::parse(text).unwrap_err().message;
        insta::assert_snapshot!(failure("uniform(1)"), @"unknown init `uniform(1)`: expected normal(sigma), normal(sigma, seed), zeros, ramp, steps(n), const(v) or poison");
        insta::assert_snapshot!(failure("normal(-1.0)"), @"sigma is `-1.0` in `normal(-1.0)`: expected a number that is not negative");
        insta::assert_snapshot!(failure("normal(1.0, 2 +)"), @"expected a number, a name or `(`, found the end of the expression");
    }
}
