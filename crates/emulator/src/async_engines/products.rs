//! `wgmma` products in flight, of one warp. They are carried out in the order of their issue, at any time until they
//! are waited for.

use crate::audit::Ticket;
use crate::exec::{At, Issued, Multiply};
use launch::finding::Severity;
use ptx::RegisterId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A product that a warp issued.
#[derive(Clone)]
pub struct Product {
    pub multiply: Arc<Multiply>,
    pub issued: Issued,
    /// What issued it, for whoever keeps the books.
    pub ticket: Ticket,
}

/// A product that nobody has waited for, carried out or not: its registers are not the threads' own.
pub struct Unobserved {
    pub multiply: Arc<Multiply>,
    /// Where it was issued.
    pub at: At,
    /// Groups committed before it was issued.
    pub group: u64,
    /// The gravest misuse of its registers that has been reported.
    pub told: Option<Severity>,
}

/// A register of products that threads touched behind the last fence.
#[derive(Clone, Copy)]
pub struct Touch {
    pub at: At,
    pub write: bool,
}

#[derive(Default)]
pub struct Products {
    flying: VecDeque<Product>,
    /// Products carried out so far.
    done: u64,
    /// Products issued when each group was committed, oldest first, of the groups that nobody has waited for.
    groups: VecDeque<u64>,
    /// Groups committed so far.
    pub committed: u64,
    unobserved: VecDeque<Unobserved>,
    /// There has been a `wgmma.fence`.
    pub fenced: bool,
    pub touched: BTreeMap<RegisterId, Touch>,
}

impl Products {
    pub fn issue(&mut self, at: At, product: Product) {
        let (multiply, group) = (product.multiply.clone(), self.committed);
        self.unobserved.push_back(Unobserved { multiply, at, group, told: None });
        self.flying.push_back(product);
    }

    /// `wgmma.fence`: what threads did with registers comes before what products will do.
    pub fn fence(&mut self) {
        self.fenced = true;
        self.touched.clear();
    }

    /// The products that nobody has waited for, youngest first.
    pub fn unobserved(&mut self) -> impl Iterator<Item = &mut Unobserved> {
        self.unobserved.iter_mut().rev()
    }

    pub fn commit(&mut self) {
        self.groups.push_back(self.done + self.flying.len() as u64);
        self.committed += 1;
    }

    /// The oldest product; it is carried out now.
    pub fn take(&mut self) -> Option<Product> {
        let product = self.flying.pop_front()?;
        self.done += 1;
        Some(product)
    }

    /// The products of all but the `pending` youngest groups; they are carried out now.
    pub fn complete(&mut self, pending: u32) -> Vec<Product> {
        let committed = self.committed;
        self.unobserved.retain(|product| product.group + u64::from(pending) >= committed);
        let over = self.groups.len().saturating_sub(pending as usize);
        let until = self.groups.drain(..over).next_back().unwrap_or(self.done);
        self.take_until(until)
    }

    /// The products of the first `groups` groups ever committed; they are carried out now, though this warp has not
    /// waited for them.
    pub fn complete_first(&mut self, groups: u64) -> Vec<Product> {
        let forgotten = self.committed - self.groups.len() as u64;
        let over = (groups.saturating_sub(forgotten) as usize).min(self.groups.len());
        let until = over.checked_sub(1).map_or(self.done, |last| self.groups[last]);
        self.take_until(until)
    }

    fn take_until(&mut self, until: u64) -> Vec<Product> {
        let count = until.saturating_sub(self.done);
        (0..count).map_while(|_| self.take()).collect()
    }
}
