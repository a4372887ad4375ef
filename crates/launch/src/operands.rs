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

    /// What went past the checks, in words.
    pub fn fault(&self) -> Option<String> {
        let (example, count) = self.unseen.as_ref()?;
        let plural = if *count == 1 { "" } else { "s" };
        Some(format!("{}: {example}; so in {count} execution{plural}", self.mnemonic))
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

/// What happened for no instruction, so that it could not be compared: the first of it, and how much there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Orphans {
    /// None if everything belongs to an instruction.
    pub first: Option<(String, u64)>,
}

impl Orphans {
    /// Adds one.
    pub fn add(&mut self, what: impl ToString) {
        self.first.get_or_insert_with(|| (what.to_string(), 0)).1 += 1;
    }

    /// Adds those of another part.
    pub fn absorb(&mut self, other: Orphans) {
        if let Some((example, count)) = other.first {
            self.first.get_or_insert((example, 0)).1 += count;
        }
    }
}

/// What all instructions of a run moved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operands {
    /// By function and statement.
    pub sites: BTreeMap<(usize, usize), OperandSite>,
    /// What belongs to none of them.
    pub orphans: Orphans,
}

impl Operands {
    /// Adds what another part of the run moved, or another run of the same kernel.
    pub fn absorb(&mut self, other: Operands) {
        for (place, site) in other.sites {
            let known = self.sites.entry(place).or_default();
            known.add(&site);
            (known.line, known.mnemonic, known.form) = (site.line, site.mnemonic, site.form);
        }
        self.orphans.absorb(other.orphans);
    }

    /// Instructions of which the checks did not see everything, or saw what did not happen.
    pub fn unseen(&self) -> impl Iterator<Item = &OperandSite> {
        self.sites.values().filter(|site| site.unseen.is_some())
    }

    /// All that the checks did not see, one line each: a bug of ours.
    pub fn faults(&self) -> Vec<String> {
        let faults = self.unseen().filter_map(|site| Some(format!("line {}: {}", site.line, site.fault()?)));
        let orphans = self.orphans.first.iter();
        faults.chain(orphans.map(|(example, count)| format!("of no instruction: {example}; {count} in all"))).collect()
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
        match (self.unseen().count(), &self.orphans.first) {
            (0, None) => write!(f, "all seen by the checks"),
            (some, None) => write!(f, "{some} of them past the checks"),
            (some, Some((_, orphans))) => {
                write!(f, "{some} of them past the checks, and {orphans} notes that belong to none of them")
            }
        }
    }
}
