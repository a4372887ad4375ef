//! Negative controls: the plain computation with one error injected must fail the rule that judges kernels.
//!
//! A tolerance that lets one of these pass would let a wrong kernel pass. A control that cannot be told from the right
//! computation on this problem and these inputs says so, and proves nothing.

use std::fmt;

use super::precision::Precision;
use super::tensors::Forgotten;
use super::tolerance::{Parity, judge};
use super::{Oracle, Outputs, plain};
use crate::scoring::ScoreKind;
use crate::visibility::Lengths;

/// Keys in the block that a control skips: a key tile of the standard config.
const BLOCK: u32 = 64;

/// One error, injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Scores are 1 % too large.
    Scale,
    /// The last block of keys that anybody sees is left out; it may be a partial one.
    SkippedBlock,
    /// Each query sees a key more than it should.
    WiderMask,
    /// Each query sees a key less than it should; without a mask, the last key is dropped.
    NarrowerMask,
    /// Weights are rounded to fp8 before they meet V.
    Fp8Weights,
    /// Scores are not modified: a cap or slopes are forgotten.
    ForgottenScore,
    /// What a modification adds to a score is subtracted: a slope has the wrong sign.
    MirroredScore,
    /// The sum does not count the sinks.
    ForgottenSinks,
    /// Queries see keys of every document.
    ForgottenDocuments,
    /// Each head's result stands where the next head's should.
    SwappedHeads,
}

/// What became of a control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The verdict on the wrong result; it must be a failure.
    Applies(Parity),
    DoesNotApply(&'static str),
}

impl Outcome {
    /// Whether the rule let a wrong result pass.
    pub fn is_missed(&self) -> bool {
        matches!(self, Outcome::Applies(parity) if parity.passes())
    }
}

impl Control {
    pub const ALL: [Control; 10] = [
        Control::Scale,
        Control::SkippedBlock,
        Control::WiderMask,
        Control::NarrowerMask,
        Control::Fp8Weights,
        Control::ForgottenScore,
        Control::MirroredScore,
        Control::ForgottenSinks,
        Control::ForgottenDocuments,
        Control::SwappedHeads,
    ];
}

pub fn run(oracle: &Oracle, control: Control) -> Outcome {
    match inject(oracle, control) {
        Err(reason) => Outcome::DoesNotApply(reason),
        Ok(wrong) if wrong.same_bits(&oracle.plain) => {
            Outcome::DoesNotApply("changes no bit of the result on these inputs")
        }
        Ok(wrong) => Outcome::Applies(judge(oracle, &wrong)),
    }
}

/// The wrong result, or why there is none.
fn inject(oracle: &Oracle, control: Control) -> Result<Outputs, &'static str> {
    let last_seen = last_seen_key(oracle).ok_or("no query sees a key")?;
    let right = plain::Method::new(oracle.problem, oracle.visibility, oracle.scoring);
    let compute = |method| plain::compute(oracle.problem, oracle.inputs, &method);
    let (mask, scoring) = (oracle.visibility, oracle.scoring);
    match control {
        Control::Scale => Ok(compute(plain::Method { scale: right.scale * 1.01, ..right })),
        Control::Fp8Weights => {
            Ok(compute(plain::Method { distort_weight: |weight| Precision::E4M3.round(weight), ..right }))
        }
        Control::SkippedBlock => {
            let skipped = last_seen / BLOCK;
            let visibility = &|query, key, of| key / BLOCK != skipped && mask.sees(query, key, of);
            Ok(compute(plain::Method { visibility, ..right }))
        }
        Control::WiderMask if sees_everything(oracle) => Err("no mask: every query sees every key already"),
        Control::WiderMask => {
            let visibility = &|query, key, of| mask.sees(query, key, of) || key > 0 && mask.sees(query, key - 1, of);
            Ok(compute(plain::Method { visibility, ..right }))
        }
        Control::NarrowerMask => {
            let visibility = &|query, key, of: Lengths| {
                mask.sees(query, key, of) && key + 1 < of.keys && mask.sees(query, key + 1, of)
            };
            Ok(compute(plain::Method { visibility, ..right }))
        }
        Control::ForgottenScore | Control::MirroredScore if scoring.is_plain() => Err("scores are not modified"),
        Control::ForgottenScore => Ok(compute(plain::Method { scoring: &ScoreKind::Plain, ..right })),
        Control::MirroredScore => {
            let mirrored = &|scaled: f64, at| 2.0 * scaled - scoring.change(scaled, at);
            Ok(compute(plain::Method { scoring: mirrored, ..right }))
        }
        Control::ForgottenSinks if !oracle.problem.sinks() => Err("heads have no sinks"),
        Control::ForgottenSinks => Ok(compute(plain::Method { forgotten: Forgotten::Sink, ..right })),
        Control::ForgottenDocuments if !oracle.problem.documents() => Err("there are no documents"),
        Control::ForgottenDocuments => Ok(compute(plain::Method { forgotten: Forgotten::Documents, ..right })),
        Control::SwappedHeads if oracle.problem.heads() == 1 => Err("one head has none to be swapped with"),
        Control::SwappedHeads => Ok(swap_heads(oracle)),
    }
}

fn last_seen_key(oracle: &Oracle) -> Option<u32> {
    let of = oracle.problem.lengths();
    (0..of.keys).rev().find(|&key| (0..of.queries).any(|query| oracle.visibility.sees(query, key, of)))
}

fn sees_everything(oracle: &Oracle) -> bool {
    let of = oracle.problem.lengths();
    (0..of.queries).all(|query| (0..of.keys).all(|key| oracle.visibility.sees(query, key, of)))
}

fn swap_heads(oracle: &Oracle) -> Outputs {
    let [heads, queries, columns] =
        [oracle.problem.heads(), oracle.problem.o_shape().rows, oracle.problem.value_dim()].map(|count| count as usize);
    let mut wrong = oracle.plain.clone();
    wrong.output.chunks_mut(heads * queries * columns).for_each(|batch| batch.rotate_right(queries * columns));
    wrong.log_sum_exp.chunks_mut(heads * queries).for_each(|batch| batch.rotate_right(queries));
    wrong
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Control::Scale => "scale off by 1 %",
            Control::SkippedBlock => "one key block skipped",
            Control::WiderMask => "mask one key too wide",
            Control::NarrowerMask => "mask one key too narrow",
            Control::Fp8Weights => "weights rounded to fp8",
            Control::ForgottenScore => "scores not modified",
            Control::MirroredScore => "scores modified with the wrong sign",
            Control::ForgottenSinks => "sinks not counted",
            Control::ForgottenDocuments => "documents ignored",
            Control::SwappedHeads => "heads swapped",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Outcome::Applies(parity) if parity.passes() => write!(f, "missed: {parity}"),
            Outcome::Applies(parity) if parity.ratio().is_infinite() => f.write_str("noticed: infinitely wrong"),
            Outcome::Applies(parity) => write!(f, "noticed at {:.3e} times the bound", parity.ratio()),
            Outcome::DoesNotApply(reason) => write!(f, "does not apply: {reason}"),
        }
    }
}
