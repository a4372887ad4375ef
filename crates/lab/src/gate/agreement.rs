//! Do two runs say the same of who won?

use crate::bench::Duel;
use crate::measure::Verdict;

/// What two runs say of the duels that both have measured, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disagreement {
    /// Faster in one, slower in the other.
    pub contradicted: Vec<String>,
    /// Anything else that is not one verdict.
    pub open: Vec<String>,
}

impl Disagreement {
    pub fn of(first: &[Duel], second: &[Duel]) -> Disagreement {
        let mut found = Disagreement::default();
        let same = |one: &Duel| second.iter().find(|other| other.repeats(one));
        let both: Vec<(&Duel, &Duel)> = first.iter().filter_map(|one| Some((one, same(one)?))).collect();
        if both.is_empty() && !first.is_empty() && !second.is_empty() {
            found.open.push("it shares no comparison with the first".into());
        }
        for (one, other) in both {
            match (&one.verdict, &other.verdict) {
                (one, other) if one == other && one.is_decided() => {}
                (Verdict::Faster, Verdict::Slower) | (Verdict::Slower, Verdict::Faster) => {
                    found.contradicted.push(words(one, other))
                }
                _ => found.open.push(words(one, other)),
            }
        }
        found
    }
}

fn words(one: &Duel, other: &Duel) -> String {
    format!("{} against {}: {} in the first, {} in it", one.problem, one.peer, one.verdict, other.verdict)
}
