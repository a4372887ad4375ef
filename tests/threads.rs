//! Results and findings do not depend on how many cores there are.

use emulator::Emulator;
use launch::backend::{Backend, Options, Run};
use launch::{Limits, Memory};
use veriflash::filetests::{Case, corpus, find};

/// Every buffer and every finding of a case, in a pool of so many threads.
fn run(case: &Case, threads: usize) -> (Memory, Run) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let kernel = corpus::kernel(case).expect("the case reads");
        let mut memory = Memory::new(&kernel.resolve(&Limits::default()).expect("it resolves"), 0).expect("its inputs");
        let options = Options { seed: 5, ..Options::default() };
        let mut loaded = Emulator.load(&kernel).expect("it loads");
        let run = Emulator.run(&mut loaded, &mut memory, &options).expect("it runs");
        (memory, run)
    })
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let cases = find(&["corpus".into()]).expect("cases");
    // One of four: every style is among them.
    let racing = find(&["filetests/fail/race-global".into()]).expect("cases");
    assert!(racing.len() >= 8, "races between blocks are judged together");
    for case in cases.iter().step_by(4).chain(&racing) {
        let ((one, first), (many, second)) = (run(case, 1), run(case, 3));
        assert!(one == many, "{}: results differ", case.name);
        assert_eq!(first.findings, second.findings, "{}", case.name);
        assert_eq!(first.instructions, second.instructions, "{}", case.name);
    }
}
