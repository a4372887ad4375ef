use tile::prelude::*;

fn warp(sum: Var<f32>) {
    let old = sum;
    let new = sum.get();
}

fn main() {}
