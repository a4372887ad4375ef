//! Loops and branches as they are printed.

use tile::prelude::*;

/// The instructions of a kernel, without declarations and lines.
fn instructions(body: impl FnOnce()) -> Vec<String> {
    let options =
        Options { target: ptx::Target::SM_80, threads: 32, cluster: 1, blocks_per_processor: None, checks: false };
    let built = tile::build("kernel", options, body).unwrap_or_else(|error| panic!("{error}"));
    let text = ptx::print(&built.module);
    let inside = text.lines().skip_while(|line| *line != "{").skip(1).map(str::trim);
    inside.filter(|line| !line.starts_with('.') && *line != "}").map(str::to_owned).collect()
}

#[test]
fn a_rust_range_is_unrolled_and_a_range_of_registers_loops() {
    let stores = |found: Vec<String>| found.iter().filter(|line| line.contains("st.global")).count();
    let unrolled = instructions(|| {
        let x = Slice::<u32>::parameter("x");
        for_each(0..3u32, |i| x.store(i, i * 7));
    });
    assert!(!unrolled.iter().any(|line| line.contains("bra")));
    assert_eq!(stores(unrolled), 3);
    let looped = instructions(|| {
        let x = Slice::<u32>::parameter("x");
        for_each(U32::from(0)..parameter::<u32>("n"), |i| x.store(i, i * 7));
    });
    assert_eq!(looped.iter().filter(|line| line.contains("bra ")).count(), 2);
    assert_eq!(stores(looped), 1);
}

#[test]
fn a_known_condition_is_decided_while_generating() {
    let x = || Slice::<u32>::parameter("x");
    let known =
        instructions(|| when(U32::from(1).lt(2), || x().store(0, choose(false.into(), || 1.into(), || 2.into()))));
    let plain = instructions(|| x().store(0, 2.into()));
    assert_eq!(known, plain);
}

#[test]
fn a_predicated_block_guards_each_instruction() {
    let found = instructions(|| {
        let x = Slice::<u32>::parameter("x");
        let first = lane_index().eq(0);
        predicated(first, || x.store(0, 5.into()));
    });
    assert!(found.iter().any(|line| line.starts_with("@%p0 st.global.u32")), "{found:?}");
    assert!(!found.iter().any(|line| line.contains("bra")), "{found:?}");
}

#[test]
fn a_choice_runs_one_of_two_branches() {
    let found = instructions(|| {
        let x = Slice::<u32>::parameter("x");
        let chosen = choose(lane_index().eq(0), || x.load(1), || x.load(2));
        x.store(0, chosen);
    });
    assert_eq!(found.iter().filter(|line| line.contains("bra $end")).count(), 2);
    assert_eq!(found.iter().filter(|line| line.contains("mov.u32 %choice")).count(), 2);
}

/// Equal pure instructions are shared, but never across a branch that may not have run.
#[test]
fn what_a_branch_computed_is_computed_again_behind_it() {
    let shifts = |found: Vec<String>| found.iter().filter(|line| line.starts_with("shl.b32")).count();
    let x = || Slice::<u32>::parameter("x");
    let shared = instructions(|| {
        let x = x();
        x.store(0, thread_index() * 8);
        x.store(1, thread_index() * 8);
    });
    let split = instructions(|| {
        let x = x();
        when(lane_index().eq(0), || x.store(0, thread_index() * 8));
        x.store(1, thread_index() * 8);
    });
    assert_eq!((shifts(shared), shifts(split)), (1, 2));
}

#[test]
fn a_form_without_a_function_is_spelled_by_the_author() {
    let written = instructions(|| {
        let ones = tile::instructions::raw::<u32>("popc.b32", &[thread_index().operand()]);
        Slice::<u32>::parameter("ones").store(thread_index(), ones);
    });
    assert!(written.iter().any(|line| line.starts_with("popc.b32 ")), "{written:?}");
}

#[test]
fn bits_have_operators() {
    let text = instructions(|| {
        let (x, bits) = (Slice::<u32>::parameter("x"), thread_index());
        [bits & 12, bits | 3, bits << 2, bits >> lane_index(), U32::from(1) << bits]
            .into_iter()
            .for_each(|value| x.store(0, value));
        [bits | 0, bits << 0, bits >> 0].into_iter().for_each(|value| x.store(1, value));
    });
    for mnemonic in ["and.b32", "or.b32", "shl.b32", "shr.u32"] {
        let expected = if mnemonic == "shl.b32" { 2 } else { 1 };
        let found = text.iter().filter(|line| line.starts_with(mnemonic)).count();
        assert_eq!(found, expected, "{mnemonic}: {text:#?}");
    }
}
