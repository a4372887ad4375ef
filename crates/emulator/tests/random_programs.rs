//! Valid PTX, whatever it does, is run or refused: no panic, no hang. Both engines agree on what it did.

#[path = "support/program.rs"]
mod program;

use launch::backend::Engine;
use program::{CHUNK, MAX_LINES, kernel, run, text};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn random_programs_end(bytes in prop::collection::vec(any::<u8>(), CHUNK..CHUNK * MAX_LINES), seed in 0u64..8) {
        let Some(kernel) = kernel(&bytes) else { return Ok(()) };
        let outcomes = [Engine::Warps, Engine::Lanes].map(|engine| run(&kernel, seed, engine));
        if let [Ok((fast, memory)), Ok((slow, expected))] = outcomes {
            prop_assert!(memory == expected, "the engines leave different memory\n{}", text(&bytes));
            prop_assert_eq!(fast.findings, slow.findings, "the engines find different things\n{}", text(&bytes));
        }
    }
}
