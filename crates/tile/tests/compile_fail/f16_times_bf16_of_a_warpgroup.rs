use tile::prelude::*;

fn attend(warpgroup: &Warpgroup, weights: &RowOperand<F16>, value: View<BF16>, output: &mut Accumulator) {
    warpgroup.mma(output, weights, value).finish();
}

fn main() {}
