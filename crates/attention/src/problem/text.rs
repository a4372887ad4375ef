//! A problem as one line: `f16 B2 H8/2 Sq97 Sk161 D64 causal`. What it prints, it reads.

use std::fmt;
use std::str::FromStr;

use super::packed::lengths;
use super::{DType, Layout, Problem, ProblemBuilder, default_scale};
use crate::Error;
use crate::scoring::ScoreKind;
use crate::visibility::MaskKind;

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
        })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Layout::Bhsd => "bhsd",
            Layout::Bshd => "bshd",
        })
    }
}

impl fmt::Display for MaskKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MaskKind::None => f.write_str("full"),
            MaskKind::CausalBottomRight => f.write_str("causal"),
            MaskKind::CausalTopLeft => f.write_str("causal-top-left"),
            MaskKind::Window { left, right } => write!(f, "window{left}/{right}"),
        }
    }
}

impl fmt::Display for ScoreKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ScoreKind::Plain => f.write_str("plain"),
            ScoreKind::SoftCap { cap } => write!(f, "softcap{cap}"),
            ScoreKind::Alibi => f.write_str("alibi"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} B{} H{}", self.dtype, self.batch, self.heads)?;
        if self.kv_heads != self.heads {
            write!(f, "/{}", self.kv_heads)?;
        }
        let listed = |places: &[u32]| lengths(places).map(|length| length.to_string()).collect::<Vec<_>>().join(",");
        let [queries, keys] = match &self.packed {
            Some(packed) => [packed.queries(), packed.keys()].map(listed),
            None => [self.queries(), self.keys()].map(|length| length.to_string()),
        };
        if queries == keys {
            write!(f, " S{queries}")?;
        } else {
            write!(f, " Sq{queries} Sk{keys}")?;
        }
        write!(f, " D{}", self.dims.head)?;
        if self.dims.value != self.dims.head {
            write!(f, "/{}", self.dims.value)?;
        }
        write!(f, " {}", self.mask)?;
        if self.score != ScoreKind::default() {
            write!(f, " {}", self.score)?;
        }
        if self.sinks {
            f.write_str(" sinks")?;
        }
        if self.documents {
            f.write_str(" documents")?;
        }
        if self.scale != default_scale(self.dims.head) {
            write!(f, " scale{}", self.scale)?;
        }
        if self.layout != Layout::default() && self.packed.is_none() {
            write!(f, " {}", self.layout)?;
        }
        Ok(())
    }
}

impl FromStr for Problem {
    type Err = Error;

    /// At least one word, in any order; what is not said is as in [`Problem::builder`].
    fn from_str(text: &str) -> Result<Problem, Error> {
        let mut builder = Problem::builder();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        if text.trim().is_empty() {
            return Err(Error::Empty);
        }
        for word in text.split_whitespace() {
            let (next, parts) = read(builder, word).ok_or_else(|| refusal(word))?;
            for part in parts {
                if let Some((_, earlier)) = seen.iter().find(|(known, _)| known == part) {
                    return Err(Error::Repeated { word: word.into(), earlier: (*earlier).into() });
                }
                seen.push((part, word));
            }
            builder = next;
        }
        let said = |part| seen.iter().find(|(known, _)| *known == part).map(|(_, word)| *word);
        match (said("queries"), said("keys")) {
            (Some(queries), Some(keys)) if queries.contains(',') != keys.contains(',') => {
                Err(Error::Mixed { queries: queries.into(), keys: keys.into() })
            }
            _ => builder.build(),
        }
    }
}

type Read = Option<(ProblemBuilder, &'static [&'static str])>;

/// One word: the builder that heard it, and the parts of the problem that it settles.
fn read(builder: ProblemBuilder, word: &str) -> Read {
    Some(match word {
        "f16" => (builder.dtype(DType::F16), &["dtype"]),
        "bf16" => (builder.dtype(DType::Bf16), &["dtype"]),
        "f32" => (builder.dtype(DType::F32), &["dtype"]),
        "full" => (builder.mask(MaskKind::None), &["mask"]),
        "causal" => (builder.mask(MaskKind::CausalBottomRight), &["mask"]),
        "causal-top-left" => (builder.mask(MaskKind::CausalTopLeft), &["mask"]),
        "plain" => (builder.score(ScoreKind::Plain), &["score"]),
        "alibi" => (builder.score(ScoreKind::Alibi), &["score"]),
        "sinks" => (builder.sinks(true), &["sinks"]),
        "documents" => (builder.documents(true), &["documents"]),
        "bhsd" => (builder.layout(Layout::Bhsd), &["layout"]),
        "bshd" => (builder.layout(Layout::Bshd), &["layout"]),
        _ => return read_number(builder, word),
    })
}

/// One word of letters and then numbers.
fn read_number(builder: ProblemBuilder, word: &str) -> Read {
    let (letters, number) = word.split_at(word.find(|letter: char| !letter.is_ascii_alphabetic())?);
    let one = || number.parse().ok();
    let pair = || match number.split_once('/') {
        Some((left, right)) => Some((left.parse().ok()?, Some(right.parse().ok()?))),
        None => Some((number.parse().ok()?, None)),
    };
    Some(match letters {
        "B" => (builder.batch(one()?), &["batch"]),
        "S" | "Sq" | "Sk" if number.contains(',') => {
            let places = cumulative(number)?;
            match letters {
                "S" => (builder.cumulative_queries(places.clone()).cumulative_keys(places), &["queries", "keys"]),
                "Sq" => (builder.cumulative_queries(places), &["queries"]),
                _ => (builder.cumulative_keys(places), &["keys"]),
            }
        }
        "S" => (builder.queries(one()?).keys(one()?), &["queries", "keys"]),
        "Sq" => (builder.queries(one()?), &["queries"]),
        "Sk" => (builder.keys(one()?), &["keys"]),
        "scale" => (builder.scale(number.parse().ok()?), &["scale"]),
        "softcap" => (builder.score(ScoreKind::SoftCap { cap: number.parse().ok()? }), &["score"]),
        "window" => {
            let (left, right): (u32, Option<u32>) = pair()?;
            (builder.mask(MaskKind::Window { left, right: right.unwrap_or(0) }), &["mask"])
        }
        "H" => {
            let (heads, kv_heads) = pair()?;
            (ProblemBuilder { kv_heads, ..builder }.heads(heads), &["heads"])
        }
        "D" => {
            let (head_dim, value_dim) = pair()?;
            (ProblemBuilder { value_dim, ..builder }.head_dim(head_dim), &["head dimension"])
        }
        _ => return None,
    })
}

/// Why a word is none: it is unknown, or its numbers do not fit.
fn refusal(word: &str) -> Error {
    let (letters, numbers) = word.split_at(word.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(0));
    let known = ["B", "S", "Sq", "Sk", "H", "D", "window"].contains(&letters);
    // A list of lengths is stored as its sums.
    let sum: Option<f64> = numbers.split([',', '/']).map(digits).sum();
    let word = word.to_string();
    if known && sum.is_some_and(|sum| sum > f64::from(u32::MAX)) { Error::Large { word } } else { Error::Word { word } }
}

/// Of as many digits as somebody may type.
fn digits(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// `97,33,5`: lengths of sequences, as the places where they begin and where the last one ends.
fn cumulative(lengths: &str) -> Option<Vec<u32>> {
    let mut places = vec![0u32];
    for length in lengths.split(',') {
        places.push(places.last()?.checked_add(length.parse().ok()?)?);
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_it_reads() {
        for line in [
            "f16 B2 H2 Sq97 Sk161 D64 causal",
            "f16 B2 H2 S128 D64 full",
            "f16 B2 H2 Sq3 Sk9 D64 window64/7",
            "f16 B2 H2 S128 D64 causal softcap0.5",
            "f16 B2 H2 S128 D64 full alibi sinks documents scale0.5 bshd",
            "f16 B3 H2 Sq97,0,5 Sk161,40,0 D64 causal",
            "bf16 B2 H2 S97,33 D64 full softcap5",
            "bf16 B1 H8/2 Sq1 Sk0 D192/128 causal-top-left scale0.5 bshd",
        ] {
            assert_eq!(line.parse::<Problem>().unwrap().to_string(), line);
        }
    }

    #[test]
    fn words_come_in_any_order_and_may_be_missing() {
        assert_eq!("window64".parse::<Problem>().unwrap().mask(), MaskKind::Window { left: 64, right: 0 });
        assert_eq!("causal D128".parse::<Problem>().unwrap().to_string(), "f16 B2 H8 S512 D128 causal");
        assert_eq!("f16".parse::<Problem>().unwrap(), Problem::builder().build().unwrap());
    }

    #[test]
    fn other_words_are_refused() {
        for word in ["f64", "B", "Bx", "B-1", "H8/", "H/2", "Q7", "7", "é7", "S1,", "B1/2", "Q99999999999"] {
            assert_eq!(word.parse::<Problem>().unwrap_err(), Error::Word { word: word.into() });
        }
        for word in ["B99999999999", "S99999999999", "H8/99999999999", "Sq4294967295,1", "window4294967296"] {
            assert_eq!(word.parse::<Problem>().unwrap_err(), Error::Large { word: word.into() });
        }
        let large = "B99999999999".parse::<Problem>().unwrap_err().to_string();
        assert_eq!(large, "`B99999999999`: the number is too large: expected at most 4294967295");
        for nothing in ["", "  "] {
            assert_eq!(nothing.parse::<Problem>().unwrap_err(), Error::Empty);
        }
        let refused = "B3 S1,2".parse::<Problem>().unwrap_err().to_string();
        assert!(refused.starts_with("`cu_q` has 2 sequences, and the batch 3: expected"), "{refused}");
        for (text, queries, keys) in [("Sq5,3 Sk8", "Sq5,3", "Sk8"), ("Sk5,3 Sq8", "Sq8", "Sk5,3")] {
            let mixed = Error::Mixed { queries: queries.into(), keys: keys.into() };
            assert_eq!(text.parse::<Problem>().unwrap_err(), mixed);
        }
        assert_eq!("D2000".parse::<Problem>().unwrap_err(), Error::HeadDimension { found: 2000 });
        assert_eq!(
            "S128 D64 Sk7".parse::<Problem>().unwrap_err().to_string(),
            "`Sk7` repeats what `S128` said: expected each part of a problem once"
        );
    }
}
