//! Any text parses or is refused, and what parses verifies, prints and reads back equal. `cargo fuzz run ptx`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ptx::{Source, parse, print, verify};

fuzz_target!(|text: &str| {
    if let Ok(parsed) = parse(&Source::new("fuzz.ptx", text)) {
        verify(&parsed);
        let again = parse(&Source::new("again.ptx", print(&parsed.module))).expect("what we print, we read");
        assert_eq!(again.module, parsed.module);
    }
});
