//! The checks, one file each. A file's leading `//!` lines are its page: `explain NAME` prints them.

pub mod async_leak;
pub mod bank_conflict;
pub mod barrier;
pub mod cluster_lifetime;
pub mod deadlock;
pub mod earlier_grid;
pub mod early_release;
pub mod launch;
pub mod local_memory;
pub mod mbarrier;
pub mod misaligned;
pub mod missing_wait;
pub mod nan_birth;
pub mod nondeterminism;
pub mod out_of_bounds;
pub mod proxy_fence;
pub mod race_global;
pub mod race_shared;
pub mod race_warp;
pub mod redundant_sync;
pub mod registers;
pub mod tensor_map;
pub mod trap;
pub mod uncoalesced;
pub mod uninitialised_memory;
pub mod uninitialised_register;
pub mod warp_convergence;
pub mod wgmma_registers;
pub mod wrong_space;

pub mod initialisations;
mod order;
mod words;

pub use order::report_faults;

use crate::exec::{Access, Accessed, At};
use crate::machine::Cluster;
use ::launch::finding::Severity;

/// A check: what it is called, how bad what it finds is, and its page.
#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub severity: Severity,
    /// What is missing is missing before the second place: other first ones make the same finding.
    pub by_second: bool,
    source: &'static str,
}

/// Every check, in alphabetical order.
pub const ALL: &[&Check] = &[
    &async_leak::CHECK,
    &bank_conflict::CHECK,
    &barrier::CHECK,
    &cluster_lifetime::CHECK,
    &deadlock::CHECK,
    &early_release::CHECK,
    &launch::CHECK,
    &local_memory::CHECK,
    &mbarrier::CHECK,
    &misaligned::CHECK,
    &missing_wait::CHECK,
    &nan_birth::CHECK,
    &nondeterminism::CHECK,
    &out_of_bounds::CHECK,
    &proxy_fence::CHECK,
    &race_global::CHECK,
    &race_shared::CHECK,
    &race_warp::CHECK,
    &redundant_sync::CHECK,
    &registers::CHECK,
    &tensor_map::CHECK,
    &trap::CHECK,
    &uncoalesced::CHECK,
    &uninitialised_memory::CHECK,
    &uninitialised_register::CHECK,
    &warp_convergence::CHECK,
    &wgmma_registers::CHECK,
    &wrong_space::CHECK,
];

impl Check {
    const fn error(name: &'static str, source: &'static str) -> Check {
        Check { name, severity: Severity::Error, by_second: false, source }
    }

    const fn warning(name: &'static str, source: &'static str) -> Check {
        Check { severity: Severity::Warning, ..Check::error(name, source) }
    }

    const fn lint(name: &'static str, source: &'static str) -> Check {
        Check { severity: Severity::Lint, ..Check::error(name, source) }
    }

    const fn by_second(self) -> Check {
        Check { by_second: true, ..self }
    }

    /// The check of that name.
    pub fn find(name: &str) -> Option<&'static Check> {
        ALL.iter().copied().find(|check| check.name == name)
    }

    /// The page: the leading `//!` lines of the check's own file.
    pub fn page(&self) -> String {
        let lines = self.source.lines().take_while(|line| line.starts_with("//!"));
        let text = lines.map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or(""));
        text.collect::<Vec<_>>().join("\n")
    }

    /// The first sentence of the page.
    pub fn summary(&self) -> String {
        let page = self.page();
        let text = page.lines().skip(2).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        text.split_inclusive(". ").next().unwrap_or_default().trim().to_string()
    }
}

/// Counts what an access costs.
pub fn lint_access(cluster: &mut Cluster, at: At, access: &Access, accessed: &[Accessed; 32]) {
    bank_conflict::watch(cluster, at, access, accessed);
    uncoalesced::watch(cluster, at, access, accessed);
    local_memory::watch(cluster, at, access, accessed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_page_with_an_example_and_a_fix() {
        for check in ALL {
            let page = check.page();
            assert!(page.starts_with(&format!("# {}\n", check.name)), "{}", check.name);
            assert!(page.contains("```ptx"), "{} shows no example", check.name);
            assert!(page.contains("\nFix: "), "{} shows no fix", check.name);
            assert!(page.contains("PTX ISA") || page.contains("Guide"), "{} names no section", check.name);
        }
    }
}
