//! Whoever makes machine code of texts that the driver's linker gets wrong.

use std::fmt;
use std::sync::Arc;

/// Makes machine code of a text for a target, such as `sm_90a`; nothing if it cannot.
type Make = dyn Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync;

/// An assembler outside of the driver. Without one the driver's loader takes such a text as it is, and keeps to itself what it makes of it.
#[derive(Clone)]
pub struct Assembler(Arc<Make>);

impl Assembler {
    pub fn new(make: impl Fn(&str, &str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Assembler {
        Assembler(Arc::new(make))
    }

    pub(crate) fn make(&self, text: &str, target: &str) -> Option<Vec<u8>> {
        (self.0)(text, target)
    }
}

impl fmt::Debug for Assembler {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Assembler")
    }
}

/// What the driver's linker would get wrong in a text. It compiles every text as one of several that may be joined.
pub(crate) fn unlinkable(text: &str) -> Option<&'static str> {
    if has_both_kinds_of_shared_memory(text) {
        return Some("it misplaces dynamic shared memory behind static");
    }
    // ptxas, C7504: "'setmaxnreg' ignored to maintain compatibility across compilation units". Warpgroups then have no more registers than they
    // were launched with: they spill, and their products wait for each other. Seen on an H200: 5.5 times as long.
    let hands_registers_over = code_lines(text).any(|line| line.contains("setmaxnreg"));
    hands_registers_over.then_some("it ignores `setmaxnreg`, without which warpgroups spill")
}

/// Driver 580's linker places the dynamic part right behind the static one, whatever its alignment; its loader does not.
fn has_both_kinds_of_shared_memory(text: &str) -> bool {
    let declares = |words: &str| text.lines().any(|line| line.trim_start().starts_with(words));
    declares(".extern .shared") && (declares(".shared") || declares(".visible .shared"))
}

/// What is no comment, roughly: a comment at the end of a line is taken for code.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_and_dynamic_shared_memory_are_told_apart() {
        let (fixed, dynamic) = ("  .shared .align 8 .b8 full[16];\n", ".extern .shared .align 1024 .b8 tiles[];\n");
        assert!(has_both_kinds_of_shared_memory(&format!("{dynamic}{fixed}")));
        assert!(!has_both_kinds_of_shared_memory(fixed) && !has_both_kinds_of_shared_memory(dynamic));
    }

    #[test]
    fn texts_that_hand_registers_over_are_not_for_the_linker() {
        let plain = "//@ setmaxnreg\n.entry k() {\n    ret;\n}\n";
        assert_eq!(unlinkable(plain), None);
        let roles = plain.replace("ret", "setmaxnreg.dec.sync.aligned.u32 24");
        assert!(unlinkable(&roles).unwrap().contains("ignores `setmaxnreg`"));
    }
}
