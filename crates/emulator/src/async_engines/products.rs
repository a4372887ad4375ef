//! `wgmma` products in flight, of one warp. They are carried out in the order of their issue, at any time until they
//! are waited for.

use crate::exec::{Issued, Multiply};
use std::collections::VecDeque;
use std::sync::Arc;

/// A product that a warp issued.
#[derive(Clone)]
pub struct Product {
    pub multiply: Arc<Multiply>,
    pub issued: Issued,
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
}

impl Products {
    pub fn issue(&mut self, product: Product) {
        self.flying.push_back(product);
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
        let over = self.groups.len().saturating_sub(pending as usize);
        let until = self.groups.drain(..over).next_back().unwrap_or(self.done);
        let count = until.saturating_sub(self.done);
        (0..count).map_while(|_| self.take()).collect()
    }
}
