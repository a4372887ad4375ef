//! Attention of three host slices, in one call: `cargo run --release --example first_call`.

use veriflash::half::f16;
use veriflash::{Error, HostTensor, Options, attention};

fn main() -> Result<(), Error> {
    let [batch, heads, rows, columns] = [2, 8, 512, 64];
    let elements = (batch * heads * rows * columns) as usize;
    let numbers = |step: usize| (0..elements).map(|index| f16::from_f32((index * step % 17) as f32 / 17.0)).collect();
    let [q, k, v]: [Vec<f16>; 3] = [3, 5, 7].map(numbers);

    let [q, k, v] = [&q, &k, &v].map(|values| HostTensor::new(values, [batch, heads, rows, columns]));
    let output = attention(&q, &k, &v, &Options::new().causal())?;
    println!("o[0] = {}, lse[0] = {}, computed by {:?}", output.o[0], output.lse[0], output.backend);
    Ok(())
}
