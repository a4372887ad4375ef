//! Names that the author gives, as PTX can spell them.

use crate::error::{BuildError, Place};

/// What has a name. Registers begin with `%`, which is not part of the author's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Entry,
    Parameter,
    Register,
}

/// Refuses what PTX cannot spell: PTX ISA, "Identifiers".
pub(crate) fn check_name(what: Named, name: &str, at: Place) {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_$".contains(letter);
    let leading_digit = what != Named::Register && name.starts_with(|letter: char| letter.is_ascii_digit());
    if name.is_empty() || leading_digit || !name.chars().all(allowed) {
        let kind = match what {
            Named::Entry => "a kernel",
            Named::Parameter => "a parameter",
            Named::Register => "a register",
        };
        let digits = if what == Named::Register { "" } else { ", and no digit at the start" };
        BuildError::new(format!("{kind} cannot be called `{name}`"), at)
            .help(format!("names have ASCII letters, digits, `_` and `$`{digits}"))
            .raise()
    }
}
