//! What the executions of each instruction moved, added up.

use super::Account;
use super::balance::{Column, Line, Region};
use launch::OperandSite;
use std::collections::BTreeMap;

/// By step.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<u32, OperandSite>);

impl Tally {
    pub(super) fn settle(&mut self, account: Account) {
        let site = self.0.entry(account.step).or_default();
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

    pub fn absorb(&mut self, other: Tally) {
        other.0.into_iter().for_each(|(step, site)| self.0.entry(step).or_default().add(&site));
    }

    pub fn into_sites(self) -> impl Iterator<Item = (u32, OperandSite)> {
        self.0.into_iter()
    }
}
