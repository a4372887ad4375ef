use tile::prelude::*;

fn warp(scores: &mut Accumulator) {
    scores.update(|cell, score| score * scores.row_max().of(cell));
}

fn main() {}
