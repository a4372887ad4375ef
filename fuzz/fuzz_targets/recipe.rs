//! Any recipe reads or is refused, and what reads resolves within the limits or is refused. `cargo fuzz run recipe`.

#![no_main]

use launch::{Limits, Recipe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(recipe) = Recipe::parse("fuzz.toml", text) {
        let again = Recipe::parse("again.toml", &recipe.to_toml()).expect("what we print, we read");
        assert_eq!(again, recipe);
        recipe.resolve(&Limits::default()).ok();
    }
});
