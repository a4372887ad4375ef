use tile::prelude::*;

fn attend(warpgroup: &Warpgroup, query: &RowOperand<F16>, keys: &mut Tiles<F16>, scores: &mut Accumulator) {
    let key = keys.next();
    let product = warpgroup.mma(scores, query, key.transposed());
    scores.row_max();
    product.finish();
    key.release();
}

fn main() {}
