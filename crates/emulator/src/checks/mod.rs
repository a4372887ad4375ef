//! The checks, one file each. A file's leading `//!` lines are its page: `explain NAME` prints them.

pub mod async_leak;
pub mod barrier;
pub mod cluster_lifetime;
pub mod deadlock;
pub mod early_release;
pub mod launch;
pub mod mbarrier;
pub mod misaligned;
pub mod missing_wait;
pub mod out_of_bounds;
pub mod proxy_fence;
pub mod race_global;
pub mod race_shared;
pub mod race_warp;
pub mod registers;
pub mod tensor_map;
pub mod trap;
pub mod uninitialised_memory;
pub mod uninitialised_register;
pub mod warp_convergence;
pub mod wgmma_registers;
pub mod wrong_space;

mod order;
mod words;

pub use order::report_faults;

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
    &barrier::CHECK,
    &cluster_lifetime::CHECK,
    &deadlock::CHECK,
    &early_release::CHECK,
    &launch::CHECK,
    &mbarrier::CHECK,
    &misaligned::CHECK,
    &missing_wait::CHECK,
    &out_of_bounds::CHECK,
    &proxy_fence::CHECK,
    &race_global::CHECK,
    &race_shared::CHECK,
    &race_warp::CHECK,
    &registers::CHECK,
    &tensor_map::CHECK,
    &trap::CHECK,
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
