//! Decoding with grouped heads: one query per sequence, 32 heads that share 8 of K and V, keys that grow in a buffer with
//! room for more. `cargo run --release --example gqa_decode`.

use std::error::Error;
use veriflash::attention::problem::{DType, Layout};
use veriflash::cuda::{self, Context, DeviceBuffer, Stream};
use veriflash::half::bf16;
use veriflash::{DeviceTensor, DeviceTensorMut, Options, attention_into};

const BATCH: u32 = 4;
const HEADS: u32 = 32;
const KV_HEADS: u32 = 8;
const COLUMNS: u32 = 128;
/// Keys that there is room for.
const CAPACITY: u32 = 1024;
const PROMPT: u32 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let context = match Context::here() {
        Ok(context) => context,
        Err(error @ (cuda::Error::NoDriver | cuda::Error::NoGpu)) => {
            println!("this example needs a GPU: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let stream = Stream::new(&context)?;
    let filled = |elements: u32, step: u32| -> Result<DeviceBuffer, cuda::Error> {
        let number = |index: u32| bf16::from_f32((index * step % 31) as f32 / 31.0 - 0.5);
        let bytes: Vec<u8> = (0..elements).flat_map(|index| number(index).to_le_bytes()).collect();
        let mut buffer = DeviceBuffer::new(&context, bytes.len())?;
        buffer.write(&stream, &bytes)?;
        Ok(buffer)
    };
    let query = filled(BATCH * HEADS * COLUMNS, 3)?;
    let (keys, values) =
        (filled(BATCH * KV_HEADS * CAPACITY * COLUMNS, 5)?, filled(BATCH * KV_HEADS * CAPACITY * COLUMNS, 7)?);
    let mut output = DeviceBuffer::new(&context, query.slice().bytes())?;
    let mut lse = DeviceBuffer::new(&context, (BATCH * HEADS * 4) as usize)?;

    // The lengths are parameters: every step launches the same kernel, which was compiled in the first.
    for length in PROMPT..CAPACITY {
        let one_row = [BATCH, HEADS, 1, COLUMNS];
        let q = DeviceTensor::new(query.slice(), DType::Bf16, one_row, Layout::Bhsd);
        let mut o = DeviceTensorMut::new(output.slice_mut(), DType::Bf16, one_row, Layout::Bhsd);
        let options = Options::new().causal().stream(&stream);
        attention_into(
            &q,
            &filled_part(&keys, length),
            &filled_part(&values, length),
            &mut o,
            &mut lse.slice_mut(),
            &options,
        )?;
    }
    let mut bytes = vec![0; (BATCH * HEADS * 4) as usize];
    lse.read(&stream, &mut bytes)?;
    let first = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    println!("{} steps; log-sum-exp of the first head: {first}", CAPACITY - PROMPT);
    Ok(())
}

/// The first keys or values of every head; the strides step over the room that is not filled yet.
fn filled_part(memory: &DeviceBuffer, length: u32) -> DeviceTensor<'_> {
    let [row, head, batch] = [COLUMNS, CAPACITY * COLUMNS, KV_HEADS * CAPACITY * COLUMNS].map(u64::from);
    let shape = [BATCH, KV_HEADS, length, COLUMNS];
    DeviceTensor::new(memory.slice(), DType::Bf16, shape, Layout::Bhsd).strides([batch, head, row, 1])
}
