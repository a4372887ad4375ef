//! Assertions: nothing where checks are off, a report and a trap where they are on.

use tile::Built;
use tile::prelude::*;

fn built(checks: bool, body: impl FnOnce()) -> Built {
    let options = Options { target: ptx::Target::SM_80, threads: 32, cluster: 1, blocks_per_processor: None, checks };
    tile::build("kernel", options, body).unwrap_or_else(|error| panic!("{error}"))
}

/// The text without the lines that say where an instruction was written.
fn text(built: &Built) -> String {
    let text = ptx::print(&built.module);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(".loc"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn double(asserts: bool) {
    let numbers = Slice::<f32>::parameter("numbers");
    for_each(U32::from(0)..parameter::<u32>("length"), |index| {
        let number = numbers.load(index);
        if asserts {
            check(|| number.is_finite(), "numbers are finite");
        }
        numbers.store(index, number * 2.0);
    });
}

#[test]
fn without_checks_the_text_is_as_if_nothing_had_been_asserted() {
    let (silent, plain) = (built(false, || double(true)), built(false, || double(false)));
    assert_eq!(text(&silent), text(&plain));
    assert_eq!(silent.assertions, vec![]);
    let mut asked = false;
    built(false, || {
        check(
            || {
                asked = true;
                true.into()
            },
            "nobody asks",
        );
    });
    assert!(!asked);
}

#[test]
fn a_failing_thread_reports_and_traps_without_a_branch() {
    let built = built(true, || double(true));
    let text = text(&built);
    assert!(text.contains("kernel(\n    .param .u64 .ptr .global .align 8 report,"), "{text}");
    let guarded = |line: &&str| line.starts_with("@%p") && !line.contains("bra ");
    let guarded: Vec<&str> = text.lines().map(str::trim).filter(guarded).collect();
    let [.., store, fence, trap] = guarded[..] else { panic!("{text}") };
    assert!(store.contains(" st.relaxed.sys.global.u64 [%rd"), "{store}");
    assert!(fence.ends_with(" fence.sc.sys;") && trap.ends_with(" trap;"), "{fence} {trap}");
    assert_eq!(text.matches("bra ").count(), 2, "those of the loop alone: {text}");
}

/// A loop body is generated twice, and a loop of Rust's many times.
#[test]
fn an_assertion_is_listed_once_with_its_line() {
    let built = built(true, || {
        double(true);
        for index in 0..3 {
            check(|| thread_index().ne(index), "three threads are missing");
        }
        check(|| U32::from(1).lt(2), "what is known needs no code");
    });
    let listed: Vec<_> = built.assertions.iter().map(|one| (one.message.as_str(), one.at.file())).collect();
    let file = "crates/tile/tests/assertions.rs";
    assert_eq!(listed, [("numbers are finite", file), ("three threads are missing", file)]);
    assert_eq!(text(&built).matches(" trap;").count(), 4);
}
