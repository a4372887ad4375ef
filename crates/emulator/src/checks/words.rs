//! The words that findings share: who, how many bytes, where.

use crate::machine::{Cluster, describe_lanes};

/// `lane 3 of warp 0 in block (0,0,0)`.
pub fn who(cluster: &Cluster, warp: usize, mask: u32) -> String {
    let ([x, y, z], warp) = (cluster.home(warp).index, cluster.warp_in_block(warp));
    format!("{} of warp {warp} in block ({x},{y},{z})", describe_lanes(mask))
}

/// `1 byte`, `4 bytes`.
pub fn bytes(count: u64) -> String {
    counted(count, "byte")
}

/// `1 thread`, `64 threads`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The form of a verb for one, or the one for many.
pub fn verb(count: u32, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// `is` or `are`.
pub fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// `it` or `them`.
pub fn them(count: u64) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// `warp 3`, `warps 0, 2 and 3`.
pub fn warps(numbers: &[usize]) -> String {
    let text: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match text.split_last() {
        None => "no warp".into(),
        Some((only, [])) => format!("warp {only}"),
        Some((last, rest)) => format!("warps {} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!((bytes(1), bytes(4), counted(0, "thread")), ("1 byte".into(), "4 bytes".into(), "0 threads".into()));
        assert_eq!(["is", "are"], [are(1), are(2)]);
        assert_eq!([warps(&[]), warps(&[3]), warps(&[0, 2, 3])], ["no warp", "warp 3", "warps 0, 2 and 3"]);
    }
}
