#![deny(unused_must_use)]
use tile::prelude::*;

fn warp(keys: &CopyRing<F16>) {
    keys.next();
}

fn main() {}
