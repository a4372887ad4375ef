use tile::prelude::*;

fn warp(keys: &CopyRing<F16>, query: &RowOperand<F16>, scores: &mut Accumulator) {
    let key = keys.next();
    let view = key.transposed();
    key.release();
    mma(scores, query, view);
}

fn main() {}
