//! What can be wrong with a problem or with the tensors that come with it.

use crate::problem::{DType, MOST_COLUMNS};

/// Every refusal says what was found, what was expected, and so what to change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("head dimension {found} is not supported: expected 1 to {MOST_COLUMNS}")]
    HeadDimension { found: u32 },
    #[error("no kernel has heads of {found} columns: expected a multiple of 8 from 16 to 256, or the CPU backend")]
    KernelColumns { found: u32 },
    #[error("no kernel computes {found}: expected f16 or bf16, or the CPU backend")]
    KernelType { found: DType },
    #[error("{what} is 0: expected at least 1")]
    Zero { what: &'static str },
    #[error("{heads} heads cannot share {kv_heads} kv heads: expected a multiple of the kv heads")]
    Heads { heads: u32, kv_heads: u32 },
    #[error("scale {found} is not supported: expected a number above 0, and at most 2^127")]
    Scale { found: f32 },
    #[error("soft-cap {found} is not supported: expected a finite number above 0")]
    SoftCap { found: f32 },
    #[error(
        "`{argument}` {found}: expected where each sequence begins and the last one ends, from 0 on and never backwards"
    )]
    Cumulative { argument: &'static str, found: String },
    #[error("tensor {tensor} would hold {found} elements: expected at most {limit}")]
    TooLarge { tensor: &'static str, found: u128, limit: u128 },
    #[error("tensor {tensor} holds {found} elements: expected {expected} for {problem}")]
    Length { tensor: &'static str, found: usize, expected: usize, problem: String },
    #[error("`{word}` is not part of a problem: expected words as in `f16 B2 H8/2 Sq97 Sk161 D64 causal bhsd`")]
    Word { word: String },
    #[error("`{word}`: the number is too large: expected at most {}", u32::MAX)]
    Large { word: String },
    #[error("the problem is empty: expected words as in `f16 B2 H8/2 Sq97 Sk161 D64 causal bhsd`")]
    Empty,
    #[error("`{word}` repeats what `{earlier}` said: expected each part of a problem once")]
    Repeated { word: String, earlier: String },
    #[error("`{queries}` and `{keys}` do not go together: expected a list of lengths in both, or in neither")]
    Mixed { queries: String, keys: String },
    #[error("config {id} does not compute {problem}: {found}, expected {expected}")]
    Unsupported { id: u32, problem: String, found: String, expected: String },
    #[error("config {id} does not run on {gpu}: expected sm_90, the one that has its instructions")]
    Architecture { id: u32, gpu: String },
    #[error("config {id} has no scalar math: expected one of configs 1 to {last}")]
    Math { id: u32, last: u32 },
    #[error("no kernel computes {problem} on {gpu}: expected sm_80 or newer, and shared memory for a block")]
    Unplanned { problem: String, gpu: String },
    #[error("the kernel of config {id} cannot be generated: {message}")]
    Generation { id: u32, message: String },
}
