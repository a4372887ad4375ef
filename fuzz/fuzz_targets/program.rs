//! Valid PTX, whatever it does, is run or refused: no panic, no hang, no more memory than it asks for.
//! `cargo fuzz run program`.

#![no_main]

#[path = "../../crates/emulator/tests/support/program.rs"]
mod program;

use launch::backend::Engine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let engine = if first & 1 == 0 { Engine::Warps } else { Engine::Lanes };
    if let Some(kernel) = program::kernel(bytes) {
        program::run(&kernel, u64::from(first >> 1), engine).ok();
    }
});
