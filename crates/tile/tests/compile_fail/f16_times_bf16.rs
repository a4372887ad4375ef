use tile::prelude::*;

fn warp(scores: &Accumulator, value: View<BF16>, output: &mut Accumulator) {
    let weights = scores.to::<F16>("weights");
    mma_add(output, &weights, value);
}

fn main() {}
