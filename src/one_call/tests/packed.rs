//! Which kernels packed sequences get on an H200.

use super::Attempt;
use crate::Options;
use attention::configs::Math;
use attention::planner::Gpu;
use attention::problem::Layout;

fn math(begins: &[u32], options: Options) -> Math {
    let options = options.packed(begins, begins);
    let attempt = Attempt::new([1, 32, 4096, 64], Layout::Bshd, options.clone());
    let call = attempt.check().expect("it is right");
    options.config_for(&call, &Gpu::H200).expect("there is a kernel").math
}

/// Blocks that stay would look at 64 places of up to 4,096 rows, nearly all of which are empty.
#[test]
fn kernels_whose_blocks_stay_are_not_for_one_long_sequence_among_many_short_ones() {
    let of_equals: Vec<u32> = (0..=64).map(|number| number * 64).collect();
    assert_eq!(math(&of_equals, Options::new()), Math::Warpgroup);
    assert_eq!(math(&of_equals, Options::new().longest(4096)), Math::Warpgroup, "places on the host are known");
    let one_has_all: Vec<u32> = (0..=64).map(|number| number / 64 * 4096).collect();
    assert_eq!(math(&one_has_all, Options::new()), Math::Tensor);
    let decodes_beside_a_prompt: Vec<u32> = (0..=63).chain([4096]).collect();
    assert_eq!(math(&decodes_beside_a_prompt, Options::new()), Math::Tensor);
    assert_eq!(math(&[0, 4096], Options::new()), Math::Warpgroup, "one is as long as all, and there are no others");
}
