//! Whoever makes machine code of texts that the driver's linker gets wrong.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes machine code of a text for a target, such as `sm_90a`, or says why it cannot.
type Make = dyn Fn(&str, &str) -> Result<Vec<u8>, String> + Send + Sync;
/// Text and target, and what became of them.
type Made = HashMap<(String, String), Result<Vec<u8>, String>>;

/// An assembler outside of the driver. Without one the driver's loader takes such a text as it is, and keeps to itself what it makes of it.
#[derive(Clone)]
pub struct Assembler {
    make: Arc<Make>,
    /// A kernel is loaded many times.
    made: Arc<Mutex<Made>>,
}

impl Assembler {
    pub fn new(make: impl Fn(&str, &str) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Assembler {
        Assembler { make: Arc::new(make), made: Arc::default() }
    }

    pub(crate) fn make(&self, text: &str, target: &str) -> Result<Vec<u8>, String> {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (text.to_string(), target.to_string());
        if let Some(known) = made().get(&key) {
            return known.clone();
        }
        // Others assemble meanwhile.
        let new = (self.make)(text, target);
        made().insert(key, new.clone());
        new
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
    fn a_text_is_assembled_once() {
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let assembler = Assembler::new(move |text, _| {
            *count.lock().unwrap() += 1;
            if text.is_empty() { Err("nothing to assemble".into()) } else { Ok(text.into()) }
        });
        assert_eq!(
            [assembler.make("code", "sm_90a"), assembler.make("code", "sm_90a")],
            [Ok(b"code".into()), Ok(b"code".into())]
        );
        assert_eq!(assembler.make("", "sm_90a"), Err("nothing to assemble".into()));
        let times = || *asked.lock().unwrap();
        assert_eq!(times(), 2);
        assert_eq!((assembler.make("code", "sm_100a"), times()), (Ok(b"code".into()), 3), "for another target, again");
    }

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
