//! The operand counter: bytes that instructions moved, beside those that the checks looked at.

use std::collections::BTreeMap;
use std::fmt;

/// What the executions of one instruction of the text moved. One that names memory is listed even if it moved nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperandSite {
    /// Its line.
    pub line: u32,
    /// The instruction with its modifiers, without operands.
    pub mnemonic: String,
    /// Family and row of the form table.
    pub form: String,
    /// Bytes of shared and global memory that were read, and written.
    pub read: u64,
    /// Likewise.
    pub written: u64,
    /// Bytes of mbarrier objects that were used.
    pub barriers: u64,
    /// Bytes of parameters and local memory, which no other thread can reach.
    pub private: u64,
    /// The first execution whose bytes and those that the checks saw differ, and how many there are.
    pub unseen: Option<(String, u64)>,
}

impl OperandSite {
    /// Did it move nothing, though it was executed?
    pub fn is_idle(&self) -> bool {
        self.read + self.written + self.barriers + self.private == 0 && self.unseen.is_none()
    }

    /// Adds what other executions moved.
    pub fn add(&mut self, other: &OperandSite) {
        self.read += other.read;
        self.written += other.written;
        self.barriers += other.barriers;
        self.private += other.private;
        if let Some((example, count)) = &other.unseen {
            self.unseen.get_or_insert((example.clone(), 0)).1 += count;
        }
    }
}

/// What all instructions of a run moved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operands {
    /// By function and statement.
    pub sites: BTreeMap<(usize, usize), OperandSite>,
}

impl Operands {
    /// Adds what another part of the run moved, or another run of the same kernel.
    pub fn absorb(&mut self, other: Operands) {
        for (place, site) in other.sites {
            let known = self.sites.entry(place).or_default();
            known.add(&site);
            (known.line, known.mnemonic, known.form) = (site.line, site.mnemonic, site.form);
        }
    }

    /// Instructions of which the checks did not see everything, or saw what did not happen.
    pub fn unseen(&self) -> impl Iterator<Item = &OperandSite> {
        self.sites.values().filter(|site| site.unseen.is_some())
    }
}

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sum = |of: fn(&OperandSite) -> u64| self.sites.values().map(of).sum::<u64>();
        let moving = self.sites.values().filter(|site| site.read + site.written + site.barriers > 0);
        let mut forms: Vec<&str> = moving.clone().map(|site| site.form.as_str()).collect();
        forms.sort_unstable();
        forms.dedup();
        let (read, written, barriers) = (sum(|site| site.read), sum(|site| site.written), sum(|site| site.barriers));
        write!(f, "{read} bytes read, {written} written, {barriers} of mbarriers used ")?;
        write!(f, "by {} instructions of {} forms, ", moving.count(), forms.len())?;
        match self.unseen().count() {
            0 => write!(f, "all seen by the checks"),
            some => write!(f, "{some} of them past the checks"),
        }
    }
}
