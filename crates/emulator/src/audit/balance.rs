//! Two sides of a book: what moved, and what the checks looked at.

use std::fmt;
use std::ops::Range;

/// Memory that has addresses of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    Shared,
    Global,
    /// Of one thread, by its number in the cluster.
    Local(usize),
    Parameter,
    /// Objects of mbarriers in shared memory.
    Barrier,
}

impl fmt::Display for Region {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Region::Shared => write!(out, "shared memory"),
            Region::Global => write!(out, "global memory"),
            Region::Local(thread) => write!(out, "the local memory of thread {thread}"),
            Region::Parameter => write!(out, "the parameters"),
            Region::Barrier => write!(out, "an mbarrier"),
        }
    }
}

/// What a line of the book says of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// They were moved out of memory, or into it.
    Read,
    Written,
    /// The race detector looked at them.
    SeenRead,
    SeenWritten,
    /// A check asked whether anybody wrote them.
    Asked,
    /// They count as written.
    Marked,
}

const COLUMNS: usize = 6;

impl fmt::Display for Column {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Column::Read => "read",
            Column::Written => "written",
            Column::SeenRead => "seen to be read",
            Column::SeenWritten => "seen to be written",
            Column::Asked => "asked for",
            Column::Marked => "marked as written",
        })
    }
}

/// Some bytes, and how many lanes have to do with each of them.
#[derive(Clone, Debug)]
pub struct Line {
    pub column: Column,
    pub region: Region,
    pub range: Range<u64>,
    pub lanes: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Line { column, region, range, .. } = self;
        write!(out, "{} bytes of {region} at {:#x}, {column}", range.end - range.start, range.start)
    }
}

/// How closely the sides must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Lane by lane.
    Lanes,
    /// Byte by byte: several lanes or warps work together, or a unit works for them.
    Bytes,
    /// The same, but not everything that was announced has moved.
    Unfinished,
}

/// Bytes on which the sides differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub region: Region,
    pub range: Range<u64>,
    pub what: &'static str,
}

/// The first bytes on which the sides differ.
pub fn gap(lines: &[Line], rule: Rule) -> Option<Gap> {
    let mut edges: Vec<(Region, u64, usize, i64)> = vec![];
    for Line { column, region, range, lanes } in lines.iter().filter(|line| !line.range.is_empty()) {
        let depth = i64::from(*lanes);
        edges.push((*region, range.start, *column as usize, depth));
        edges.push((*region, range.end, *column as usize, -depth));
    }
    edges.sort_unstable_by_key(|(region, at, ..)| (*region, *at));
    let mut depths = [0; COLUMNS];
    for (index, (region, at, column, depth)) in edges.iter().enumerate() {
        depths[*column] += depth;
        let Some((next, end, ..)) = edges.get(index + 1) else { break };
        if next == region
            && end > at
            && let Some(what) = fault(*region, depths, rule)
        {
            return Some(Gap { region: *region, range: *at..*end, what });
        }
    }
    None
}

/// What is wrong with a byte that so many lanes have to do with, by column. Whoever sees a write sees what a read could
/// conflict with, too, so that an atomic is seen once.
fn fault(region: Region, depths: [i64; COLUMNS], rule: Rule) -> Option<&'static str> {
    let depths =
        if rule == Rule::Lanes && region != Region::Barrier { depths } else { depths.map(|depth| depth.min(1)) };
    let [read, written, seen_read, seen_written, asked, marked] = depths;
    let watched = !matches!(region, Region::Local(_) | Region::Parameter);
    // An object that is asked for need not be there.
    let finished = rule != Rule::Unfinished && region != Region::Barrier;
    match region {
        _ if watched && read > seen_read + seen_written => Some("read, which the race detector did not see"),
        _ if watched && written > seen_written => Some("written, which the race detector did not see"),
        _ if finished && seen_read > read => Some("not read, though the race detector saw it"),
        _ if finished && seen_written > written => Some("not written, though the race detector saw it"),
        Region::Parameter | Region::Barrier => None,
        _ if read > 0 && asked == 0 => Some("read, and nobody asked whether they were written"),
        _ if written > 0 && marked == 0 => Some("written, and do not count as written"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Column::*;

    fn lines(all: &[(Column, Range<u64>, u32)]) -> Vec<Line> {
        let line = |(column, range, lanes): &(Column, Range<u64>, u32)| Line {
            column: *column,
            region: Region::Shared,
            range: range.clone(),
            lanes: *lanes,
        };
        all.iter().map(line).collect()
    }

    fn found(all: &[(Column, Range<u64>, u32)], rule: Rule) -> Option<(Range<u64>, &'static str)> {
        gap(&lines(all), rule).map(|gap| (gap.range, gap.what))
    }

    #[test]
    fn sides_agree_however_they_are_cut() {
        let all = [(Read, 0..4, 1), (Read, 4..8, 1), (SeenRead, 0..8, 1), (Asked, 0..2, 1), (Asked, 2..8, 3)];
        assert_eq!(found(&all, Rule::Lanes), None);
    }

    #[test]
    fn a_lane_that_was_not_seen_is_found_where_lanes_count() {
        let all = [(Read, 0..4, 32), (SeenRead, 0..4, 31), (Asked, 0..4, 1)];
        assert_eq!(found(&all, Rule::Lanes), Some((0..4, "read, which the race detector did not see")));
        assert_eq!(found(&all, Rule::Bytes), None);
    }

    #[test]
    fn one_byte_is_enough() {
        let all = [(Written, 16..32, 1), (SeenWritten, 16..31, 1), (Marked, 16..32, 1)];
        assert_eq!(found(&all, Rule::Bytes), Some((31..32, "written, which the race detector did not see")));
        let all = [(Read, 0..4, 1), (SeenRead, 0..4, 1), (Asked, 1..4, 1)];
        assert_eq!(found(&all, Rule::Lanes), Some((0..1, "read, and nobody asked whether they were written")));
    }

    #[test]
    fn an_atomic_is_seen_as_a_write() {
        let all = [(Read, 0..4, 2), (Written, 0..4, 2), (SeenWritten, 0..4, 2), (Asked, 0..4, 1), (Marked, 0..4, 1)];
        assert_eq!(found(&all, Rule::Lanes), None);
        let unasked = found(&[&all[..3], &all[4..]].concat(), Rule::Lanes);
        assert_eq!(unasked, Some((0..4, "read, and nobody asked whether they were written")));
    }

    #[test]
    fn what_was_announced_may_be_missing_only_until_it_is_finished() {
        let all = [(SeenRead, 0..4, 1)];
        assert_eq!(found(&all, Rule::Unfinished), None);
        assert_eq!(found(&all, Rule::Bytes), Some((0..4, "not read, though the race detector saw it")));
    }
}
