use tile::prelude::*;

fn body(mut keys: Loads<F16>, at: TileAt) {
    roles(producer(24, || keys.load(at)), consumers(2, 240, |_| keys.load(at)));
}

fn main() {}
