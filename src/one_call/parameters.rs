//! The block of parameters of a launch, on the stack.

use super::Options;
use super::arguments::Placed;
use super::call::Call;
use super::extras::{Extra, Extras, Memory};
use std::f64::consts::LOG2_E;

/// Four tensors of an address and three strides each, the log-sum-exp with two, four numbers, and the arrays.
const MOST_BYTES: usize = 4 * 32 + 3 * 8 + 4 * 4 + Extra::ALL.len() * 8;

pub struct Block {
    bytes: [u8; MOST_BYTES],
    end: usize,
}

impl Block {
    /// What `attention_forward` is passed, in its order.
    pub fn new(
        call: &Call,
        options: &Options,
        [q, k, v]: [&Placed; 3],
        o: &Placed,
        lse: &Placed,
        extras: &Extras<Memory>,
    ) -> Block {
        let mut block = Block { bytes: [0; MOST_BYTES], end: 0 };
        let (problem, even) = (&call.problem, call.sequences.is_none());
        let batch_stride = |stride: u64| even.then_some(stride);
        for tensor in [q, k, v, o] {
            let [batch, head, row, _] = tensor.view.strides;
            block.push(tensor.address.to_le_bytes());
            batch_stride(batch).into_iter().for_each(|stride| block.push(stride.to_le_bytes()));
            block.push(head.to_le_bytes());
            // Checked to fit, where there is a second row at all.
            block.push(u32::try_from(row).unwrap_or(0).to_le_bytes());
        }
        let (heads, queries) = (u64::from(problem.heads()), u64::from(problem.queries()));
        block.push(lse.address.to_le_bytes());
        batch_stride(heads * queries).into_iter().for_each(|stride| block.push(stride.to_le_bytes()));
        block.push(queries.to_le_bytes());
        block.push(problem.queries().to_le_bytes());
        block.push(problem.keys().to_le_bytes());
        block.arrays(extras, |extra| matches!(extra, Extra::CuQ | Extra::CuK));
        block.push((problem.heads() / problem.kv_heads()).to_le_bytes());
        block.push(scale(call, options).to_le_bytes());
        block.arrays(extras, |extra| !matches!(extra, Extra::CuQ | Extra::CuK));
        block
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Each parameter is aligned to its own size.
    fn push<const BYTES: usize>(&mut self, bytes: [u8; BYTES]) {
        let start = self.end.next_multiple_of(BYTES);
        self.end = start + BYTES;
        self.bytes[start..self.end].copy_from_slice(&bytes);
    }

    fn arrays(&mut self, extras: &Extras<Memory>, which: impl Fn(Extra) -> bool) {
        for (_, memory) in extras.iter().filter(|(extra, _)| which(*extra)) {
            self.push(memory.address.to_le_bytes());
        }
    }
}

/// Kernels whose score is plain leave the scale to the exponent, which has base two.
fn scale(call: &Call, options: &Options) -> f32 {
    let scale = call.problem.scale();
    match options.is_plain() {
        true => (f64::from(scale) * LOG2_E) as f32,
        false => scale,
    }
}

#[cfg(test)]
mod tests;
