use tile::prelude::*;

fn attend(
    warpgroup: &Warpgroup,
    scores: &Accumulator,
    weights: &mut RowOperand<F16>,
    values: &mut Tiles<F16>,
    output: &mut Accumulator,
) {
    let value = values.next();
    let product = warpgroup.mma(output, &*weights, value.view());
    weights.set(scores);
    product.finish();
    value.release();
}

fn main() {}
