//! What kernels are fed with while they are timed, and that calls stand apart.

use launch::resolved::Init;

use crate::case::Case;

/// Q, K and V must be random normal, as those of peers are: zeros and small integers let a GPU run 10 to 15 % faster by their power
/// alone.
pub fn check(case: &Case) -> Result<(), String> {
    let tensors = [&case.contract.q, &case.contract.k, &case.contract.v];
    let is_plain = |name: &&&String| {
        let buffer = case.resolved.buffers.iter().find(|buffer| buffer.name == ***name);
        !buffer.is_some_and(|buffer| matches!(buffer.init, Init::Normal { .. }))
    };
    if let Some(name) = tensors.iter().find(is_plain) {
        return Err(format!("buffer `{name}` is not random: expected init = \"normal(1.0)\" for what is timed"));
    }
    // A call whose first launch overlaps what stands before it runs into the call before, which no caller's kernels need allow.
    match case.resolved.launches.first().is_some_and(|launch| launch.overlap) {
        true => Err("the first launch has `overlap = true`: calls that are timed must not overlap each other".into()),
        false => Ok(()),
    }
}
