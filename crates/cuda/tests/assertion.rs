//! A failed assertion on a real GPU. It ends the context, so this test has a process of its own; with
//! `VERIFLASH_REQUIRE_GPU` set, a machine without a GPU fails it.

use cuda::{Cuda, Error};
use launch::backend::{Backend, Options, Run};
use launch::{Kernel, Memory};

/// Of 4 × 2 × 2 blocks of 64 threads, the one of that number reports that its assertion fails, and traps.
fn assertion(culprit: u32) -> Kernel {
    let text = format!(
        r#"//@ [buffer.report]
//@ type = "u64"
//@ shape = [1]
//@ init = "zeros"
//@ [[launch]]
//@ grid = [4, 2, 2]
//@ block = [64, 1, 1]
//@ args = [{{ buffer = "report" }}]
//@ [assertions]
//@ report = "report"
//@ list = [{{ message = "nothing" }}, {{ message = "threads are others", at = "kernel.rs:7" }}]
.version 7.0
.target sm_80
.address_size 64
.visible .entry assert(.param .u64 report)
{{
    .reg .pred %fails;
    .reg .b32 %x, %y, %z, %thread, %block, %number;
    .reg .b64 %word, %report;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ctaid.y;
    mov.u32 %z, %ctaid.z;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %block, %z, 2, %y;
    mad.lo.u32 %block, %block, 4, %x;
    mad.lo.u32 %number, %block, 64, %thread;
    setp.eq.u32 %fails, %number, {culprit};
    mul.wide.u32 %word, %block, 1048576;
    add.u32 %number, %thread, 2048;
    cvt.u64.u32 %report, %number;
    add.u64 %word, %word, %report;
    ld.param.u64 %report, [report];
    @%fails st.relaxed.sys.global.u64 [%report], %word;
    @%fails fence.sc.sys;
    @%fails trap;
    ret;
}}
"#
    );
    Kernel::parse("assert.ptx", &text).unwrap()
}

fn run(cuda: &Cuda, kernel: &Kernel) -> Result<Run, Error> {
    let mut loaded = cuda.load(kernel)?;
    let mut memory = Memory::new(loaded.resolved(), 0)?;
    cuda.run(&mut loaded, &mut memory, &Options::default())
}

/// The report lies in memory of the process, which the context does not take along.
#[test]
fn the_error_names_assertion_block_and_lane() {
    // Thread 41 of block (3,1,0), and one that does not exist. Read on every machine.
    let (broken, sound) = (assertion(7 * 64 + 41), assertion(16 * 64));
    let cuda = match Cuda::open(0) {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("not run on a GPU: {error}");
            return assert!(std::env::var_os("VERIFLASH_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
        }
    };
    let silent = run(&cuda, &sound).expect("nothing fails");
    assert!(silent.outputs.is_empty(), "nothing is reported: {:?}", silent.outputs);
    let error = run(&cuda, &broken).expect_err("a failed assertion must be reported");
    println!("{error}");
    assert!(matches!(error, Error::ContextLost { .. }), "expected a lost context, found: {error}");
    let expected = "assertion `threads are others` failed in CTA (3,1,0), warp 1, lane 9 (kernel.rs:7)";
    assert!(error.to_string().contains(expected), "{error}");
}
