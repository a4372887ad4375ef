//! The block of parameters of a launch, on the stack.

use super::Options;
use super::arguments::Placed;
use super::call::Call;
use super::extras::{Extra, Extras, Memory};
use super::tensor::View;
use attention::configs::Config;
use attention::kernels::warpgroup;
use attention::problem::DType;
use cuda::Tiled;
use launch::Element;
use launch::resolved::MAP_BYTES;
use launch::tensor_map::{Promotion, Swizzle};
use std::f64::consts::LOG2_E;

/// A report, four maps (of which the first is aligned; tensors of an address and strides take less), a tensor of an address and three
/// strides, the log-sum-exp with two, four numbers, the arrays, and what blocks share their tiles by.
const MOST_BYTES: usize = MAP_ALIGN + 4 * MAP_BYTES + 4 * 8 + 3 * 8 + 4 * 4 + Extra::ALL.len() * 8 + 4 * 4 + 8;

/// PTX ISA, "Tensor-map": where the address of one must be a multiple of 64.
const MAP_ALIGN: usize = 64;

/// What maps have strides below, in elements. CUDA driver API, cuTensorMapEncodeTiled: 2⁴⁰ bytes.
const MOST_STRIDE: u64 = 1 << 39;

/// Makes the map of a tensor.
pub type Encode<'a> = &'a dyn Fn(&Tiled) -> Result<[u8; MAP_BYTES], cuda::Error>;

pub struct Block {
    bytes: [u8; MOST_BYTES],
    end: usize,
}

/// What the launch of a kernel for sm_90a has of its own.
#[derive(Clone, Copy)]
pub struct Tiles<'a> {
    pub config: &'a Config,
    /// The address of a word that is zero, where blocks count the tiles that are taken.
    pub counter: Option<u64>,
    /// What takes the place of the result where keys are split.
    pub parts: Option<Parts>,
    pub map: Encode<'a>,
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
        block.numbers(extras, false);
        block
    }

    /// What `attention_forward` for sm_90a is passed, in its order: tensors as maps, and how blocks share the tiles of the output.
    pub fn of_tiles(
        call: &Call,
        options: &Options,
        [q, k, v]: [&Placed; 3],
        [o, lse]: [&Placed; 2],
        extras: &Extras<Memory>,
        tiles: Tiles,
    ) -> Result<Block, cuda::Error> {
        let mut block = Block::begin(options);
        let Tiles { config, counter, parts, map } = tiles;
        let keys = config.key_rows_of_copy();
        for (tensor, rows) in [(q, config.query_tiles().1), (k, keys), (v, keys)] {
            block.map(map(&tensor.tiled(rows))?);
        }
        if call.sequences.is_some() {
            block.map(map(&v.tiled(1))?);
        }
        match parts {
            Some(parts) => block.parts(parts),
            None if warpgroup::stores_tiles(config, call.problem.dims(), call.sequences.is_some()) => {
                block.map(map(&o.tiled(warpgroup::WARP_ROWS))?);
                block.log_sum_exp(call, lse);
            }
            None => block.result(call, o, lse),
        }
        block.lengths(call, extras);
        block.scores(call, options);
        block.numbers(extras, parts.is_some());
        let sequences = call.sequences.map(|sequences| sequences.count);
        call.sequences.into_iter().for_each(|sequences| block.push(sequences.longest.to_le_bytes()));
        block.push(call.problem.heads().to_le_bytes());
        block.push(sequences.unwrap_or(call.problem.batch()).to_le_bytes());
        block.push((warpgroup::section(&call.problem, sequences) as u32).to_le_bytes());
        counter.into_iter().for_each(|counter| block.push(counter.to_le_bytes()));
        Ok(block)
    }

    /// The same where keys are split: parts take the place of the result.
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
        block.numbers(extras, true);
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
        self.log_sum_exp(call, lse);
    }

    fn log_sum_exp(&mut self, call: &Call, lse: &Placed) {
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

    /// What is read beside tensors and lengths. Where keys are split, sinks are left to the kernel that joins the parts.
    fn numbers(&mut self, extras: &Extras<Memory>, split: bool) {
        self.arrays(extras, |extra| match extra {
            Extra::CuQ | Extra::CuK => false,
            Extra::Sinks => !split,
            _ => true,
        });
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
        self.push_aligned(BYTES, bytes);
    }

    fn map(&mut self, bytes: [u8; MAP_BYTES]) {
        self.push_aligned(MAP_ALIGN, bytes);
    }

    fn push_aligned<const BYTES: usize>(&mut self, align: usize, bytes: [u8; BYTES]) {
        let start = self.end.next_multiple_of(align);
        self.end = start + BYTES;
        self.bytes[start..self.end].copy_from_slice(&bytes);
    }

    fn arrays(&mut self, extras: &Extras<Memory>, which: impl Fn(Extra) -> bool) {
        for (_, memory) in extras.iter().filter(|(extra, _)| which(*extra)) {
            self.push(memory.address.to_le_bytes());
        }
    }
}

impl Placed {
    /// (column, row, head, batch) of a tensor, in boxes of so many rows.
    fn tiled(&self, box_rows: u32) -> Tiled {
        let View { dtype, shape: [batch, heads, rows, columns], strides: [of_batch, of_head, of_row, _] } = self.view;
        // Nobody takes a step where there is one element, and a caller may say anything; a map asks for 16 bytes at least.
        let stride = |stride: u64, size: u32| match stride {
            odd if size == 1 && (odd == 0 || !odd.is_multiple_of(8) || odd >= MOST_STRIDE) => 16,
            stride => stride * 2,
        };
        Tiled {
            element: if dtype == DType::Bf16 { Element::Bf16 } else { Element::F16 },
            address: self.address,
            dims: [columns, rows, heads, batch].map(u64::from),
            strides: [stride(of_row, rows), stride(of_head, heads), stride(of_batch, batch)],
            box_dims: [warpgroup::BOX_COLUMNS, box_rows, 1, 1],
            swizzle: Swizzle::B128,
            l2: Promotion::B256,
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
