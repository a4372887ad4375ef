//! Where a cluster writes to its books. Each is one test where nobody keeps them.

use super::{Audit, Column, Region, Ticket};
use crate::async_engines::{Number, Spot};
use crate::checks;
use crate::exec::{Accessed, watched_shared};
use crate::machine::Cluster;

impl Cluster<'_, '_> {
    /// Bytes move, or a check asks for them.
    #[inline]
    pub fn note(&self, column: Column, accessed: Accessed, skip: usize, bytes: usize) {
        if let Some(audit) = &self.audit {
            self.note_in(audit, column, accessed.behind(skip), bytes as u64);
        }
    }

    #[cold]
    fn note_in(&self, audit: &Audit, column: Column, accessed: Accessed, bytes: u64) {
        let (region, start) = match accessed {
            Accessed::Nothing => return,
            Accessed::Global { allocation, offset } => (Region::Global, self.global.address(allocation, offset)),
            Accessed::Shared { block, offset } => (Region::Shared, watched_shared(block, offset)),
            Accessed::Local { warp, lane, offset } => (Region::Local(warp * 32 + lane), offset as u64),
            Accessed::Parameter { offset } => (Region::Parameter, offset as u64),
        };
        audit.note(column, region, start..start + bytes, 1);
    }

    /// Bytes were put somewhere: do they count as written from now on?
    #[inline]
    pub fn note_put(&self, accessed: Accessed, skip: usize, bytes: usize) {
        if self.audit.is_some() && !matches!(accessed, Accessed::Parameter { .. }) {
            self.note(Column::Written, accessed, skip, bytes);
            if self.unwritten(accessed.behind(skip), bytes).is_none() {
                self.note(Column::Marked, accessed, skip, bytes);
            }
        }
    }

    /// The object of an mbarrier is used.
    pub fn note_barrier(&self, spot: Spot) {
        if let Some(audit) = &self.audit {
            let start = watched_shared(spot.0, spot.1);
            audit.note(Column::Read, Region::Barrier, start..start + checks::mbarrier::BYTES as u64, 1);
        }
    }

    pub fn audit_begin(&mut self, step: u32) {
        if let Some(audit) = &self.audit {
            audit.begin(step, &mut self.detector);
        }
    }

    pub fn audit_end(&mut self) {
        if let Some(audit) = &self.audit {
            audit.end(&mut self.detector);
        }
    }

    /// Something of the current instruction happens later.
    pub fn audit_start(&self) -> Ticket {
        self.audit.as_ref().map_or(Ticket::default(), |audit| audit.starts())
    }

    /// The same for an operation with a number.
    pub fn audit_departure(&self, number: Number) {
        self.audit.iter().for_each(|audit| audit.departs(number));
    }

    /// It happens; returns where to go on afterwards.
    pub fn audit_landing(&self, ticket: Ticket) -> Ticket {
        self.audit.as_ref().map_or(Ticket::default(), |audit| audit.go_on(ticket))
    }

    /// A part of an operation happens.
    pub fn audit_part(&self, number: Number) -> Ticket {
        self.audit.as_ref().map_or(Ticket::default(), |audit| audit.go_on_with(number))
    }

    /// The rest of it happens, or all at once.
    pub fn audit_arrival(&self, number: Number) -> Ticket {
        self.audit.as_ref().map_or(Ticket::default(), |audit| audit.finish(number))
    }

    /// The part has happened.
    pub fn audit_pause(&self, outer: Ticket) {
        self.audit.iter().for_each(|audit| audit.pauses(outer));
    }

    /// All of it has.
    pub fn audit_landed(&self, outer: Ticket) {
        self.audit.iter().for_each(|audit| audit.lands(outer));
    }
}
