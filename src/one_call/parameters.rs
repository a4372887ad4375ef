//! The block of parameters of a launch, on the stack.

use super::Options;
use super::arguments::Placed;
use super::call::Call;
use super::extras::{Extra, Extras, Memory};
use std::f64::consts::LOG2_E;

/// A report, four tensors of an address and three strides each, the log-sum-exp with two, four numbers, and the arrays.
const MOST_BYTES: usize = 8 + 4 * 32 + 3 * 8 + 4 * 4 + Extra::ALL.len() * 8;

pub struct Block {
    bytes: [u8; MOST_BYTES],
    end: usize,
}

/// Where the parts of split keys lie.
#[derive(Clone, Copy)]
pub struct Parts {
    pub outputs: u64,
    pub statistics: u64,
    pub splits: u32,
}

impl Block {
    /// What `attention_forward` is passed, in its order.
    pub fn new(
        call: &Call,
        options: &Options,
        inputs: [&Placed; 3],
        o: &Placed,
        lse: &Placed,
        extras: &Extras<Memory>,
    ) -> Block {
        let mut block = Block::begin(options);
        inputs.into_iter().for_each(|tensor| block.tensor(call, tensor));
        block.result(call, o, lse);
        block.lengths(call, extras);
        block.scores(call, options);
        block.arrays(extras, |extra| !matches!(extra, Extra::CuQ | Extra::CuK));
        block
    }

    /// The same where keys are split: parts take the place of the result, and sinks are left to the kernel that joins them.
    pub fn of_parts(
        call: &Call,
        options: &Options,
        inputs: [&Placed; 3],
        parts: Parts,
        extras: &Extras<Memory>,
    ) -> Block {
        let mut block = Block::begin(options);
        inputs.into_iter().for_each(|tensor| block.tensor(call, tensor));
        block.parts(parts);
        block.lengths(call, extras);
        block.scores(call, options);
        block.arrays(extras, |extra| !matches!(extra, Extra::CuQ | Extra::CuK | Extra::Sinks));
        block
    }

    /// What `attention_combine` is passed, in its order.
    pub fn joining(call: &Call, o: &Placed, lse: &Placed, parts: Parts, extras: &Extras<Memory>) -> Block {
        let mut block = Block { bytes: [0; MOST_BYTES], end: 0 };
        block.result(call, o, lse);
        block.parts(parts);
        block.lengths(call, extras);
        block.arrays(extras, |extra| extra == Extra::Sinks);
        block
    }

    /// A debug kernel's first parameter is the address of its report, which the launch knows.
    fn begin(options: &Options) -> Block {
        Block { bytes: [0; MOST_BYTES], end: if options.debug { size_of::<u64>() } else { 0 } }
    }

    fn tensor(&mut self, call: &Call, tensor: &Placed) {
        let [batch, head, row, _] = tensor.view.strides;
        self.push(tensor.address.to_le_bytes());
        self.batch_stride(call, batch);
        self.push(head.to_le_bytes());
        // Checked to fit, where there is a second row at all.
        self.push(u32::try_from(row).unwrap_or(0).to_le_bytes());
    }

    fn result(&mut self, call: &Call, o: &Placed, lse: &Placed) {
        self.tensor(call, o);
        let (heads, queries) = (u64::from(call.problem.heads()), u64::from(call.problem.queries()));
        self.push(lse.address.to_le_bytes());
        self.batch_stride(call, heads * queries);
        self.push(queries.to_le_bytes());
    }

    /// Packed sequences have none.
    fn batch_stride(&mut self, call: &Call, stride: u64) {
        if call.sequences.is_none() {
            self.push(stride.to_le_bytes());
        }
    }

    fn parts(&mut self, parts: Parts) {
        self.push(parts.outputs.to_le_bytes());
        self.push(parts.statistics.to_le_bytes());
        self.push(parts.splits.to_le_bytes());
    }

    fn lengths(&mut self, call: &Call, extras: &Extras<Memory>) {
        self.push(call.problem.queries().to_le_bytes());
        self.push(call.problem.keys().to_le_bytes());
        self.arrays(extras, |extra| matches!(extra, Extra::CuQ | Extra::CuK));
    }

    fn scores(&mut self, call: &Call, options: &Options) {
        self.push((call.problem.heads() / call.problem.kv_heads()).to_le_bytes());
        self.push(scale(call, options).to_le_bytes());
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.end]
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
