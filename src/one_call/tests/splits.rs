//! The workspace of split keys.

use super::super::call::Call;
use super::super::extras::Memory;
use super::super::workspace::{bytes, parts};
use super::Attempt;
use crate::Options;
use attention::configs::Config;
use attention::planner::Gpu;
use attention::problem::Layout;

/// One query of eight heads and 64 columns against that many keys, as an H200 would be asked.
fn decode(keys: u32, options: Options) -> (Call, Config) {
    let mut attempt = Attempt::new([1, 8, 1, 64], Layout::Bhsd, options);
    attempt.of_keys(keys);
    let call = attempt.check().unwrap();
    let config = attempt.options.split_config_for(&call, &Gpu::H200).unwrap();
    (call, config)
}

#[test]
fn memory_for_the_longest_sequence_serves_all_shorter_ones() {
    for options in [Options::new(), Options::new().causal()] {
        let needed = (1..600).map(|tiles| {
            let (call, config) = decode(tiles * 32, options.clone());
            bytes(&call, &config)
        });
        let needed: Vec<u64> = needed.collect();
        assert!(needed.is_sorted(), "{needed:?}");
        // Eight rows of 32 shares: 64 columns, maximum and sum, in f32.
        assert_eq!((needed[0], needed[598]), (0, 8 * 32 * (64 + 2) * 4));
    }
}

#[test]
fn parts_lie_one_behind_the_other() {
    let (call, config) = decode(4096, Options::new());
    let mut memory = Memory { address: 0x1000, bytes: bytes(&call, &config), device: 0 };
    let found = parts(&memory, &call, &config).unwrap().unwrap();
    assert_eq!((found.outputs, found.splits), (0x1000, config.splits));
    assert_eq!(found.statistics - 0x1000, u64::from(8 * config.splits * 64 * 4));
    memory.bytes -= 1;
    assert!(parts(&memory, &call, &config).is_err());
    let unsplit = Config { splits: 1, ..config };
    assert!(parts(&Memory { bytes: 0, ..memory }, &call, &unsplit).unwrap().is_none());
}
