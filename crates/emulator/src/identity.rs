//! What makes two findings of different runs one: the same two places, in whichever order a schedule ran them.

use crate::checks::Check;
use launch::Finding;
use launch::finding::Event;

/// File, line and column.
type Place = (String, u32, u32);

/// Two unordered accesses are one finding, whatever a schedule makes of the pair; single events belong to their check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    later: Place,
    earlier: Place,
    check: &'static str,
}

impl Identity {
    pub fn of(finding: &Finding) -> Identity {
        let place = |event: &Event| (event.file.clone(), event.line, event.column);
        let by_second = Check::find(finding.check).is_some_and(|check| check.by_second);
        let first = place(if by_second { finding.primary() } else { &finding.first });
        let second = finding.second.as_ref().map_or(first.clone(), place);
        let check = if finding.second.is_some() { "" } else { finding.check };
        Identity { later: first.clone().max(second.clone()), earlier: first.min(second), check }
    }

    /// The lines of the two places, in the order of the text.
    pub fn lines(&self) -> (u32, u32) {
        (self.earlier.1, self.later.1)
    }
}
