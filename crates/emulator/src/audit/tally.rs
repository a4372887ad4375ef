//! What the executions of each instruction moved, added up.

use super::Account;
use super::balance::{Column, Line, Region};
use launch::{OperandSite, Orphans};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By step.
    sites: BTreeMap<u32, OperandSite>,
    orphans: Orphans,
}

impl Tally {
    pub(super) fn settle(&mut self, account: Account) {
        let site = self.sites.entry(account.step).or_default();
        for Line { column, region, range, lanes } in &account.lines {
            let bytes = (range.end - range.start) * u64::from(*lanes);
            match (column, region) {
                (Column::Read | Column::Written, Region::Local(_) | Region::Parameter) => site.private += bytes,
                (Column::Read | Column::Written, Region::Barrier) => site.barriers += bytes,
                (Column::Read, _) => site.read += bytes,
                (Column::Written, _) => site.written += bytes,
                _ => {}
            }
        }
        if let Some(fault) = account.fault() {
            site.unseen.get_or_insert((fault, 0)).1 += 1;
        }
    }

    /// Something happened that belongs to no account.
    pub(super) fn orphan(&mut self, what: impl ToString) {
        self.orphans.add(what);
    }

    pub fn absorb(&mut self, other: Tally) {
        other.sites.into_iter().for_each(|(step, site)| self.sites.entry(step).or_default().add(&site));
        self.orphans.absorb(other.orphans);
    }

    pub fn into_parts(self) -> (BTreeMap<u32, OperandSite>, Orphans) {
        (self.sites, self.orphans)
    }
}
