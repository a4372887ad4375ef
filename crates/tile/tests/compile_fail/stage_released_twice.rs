use tile::prelude::*;

fn warp(keys: &CopyRing<F16>) {
    let key = keys.next();
    key.release();
    key.release();
}

fn main() {}
