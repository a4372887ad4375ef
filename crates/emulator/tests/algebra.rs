//! Instructions on exact numbers (`--algebra`), one small kernel for each kind.

use emulator::{Emulator, Error};
use launch::backend::{Backend, Options};
use launch::{Kernel, Memory};

const REGISTERS: &str = "    .reg .b64 %out, %in;\n    .reg .b32 %lane, %r<16>;\n    .reg .b16 %h<8>;\n    \
     .reg .f32 %f<16>;\n    .reg .f64 %d<8>;\n    .reg .pred %p<4>;\n    ld.param.u64 %out, [out];\n    \
     ld.param.u64 %in, [in];\n    mov.u32 %lane, %laneid;\n    mad.wide.u32 %out, %lane, 4, %out;\n";

/// A warp that has its own word of `out` at `%out`, and 64 halves of the given type at `%in`.
fn run(out: &str, input: &str, body: &str, seed: u64) -> Result<Memory, Error> {
    let recipe = format!(
        "//@ [buffer.out]\n//@ type = \"{out}\"\n//@ shape = [32]\n//@ init = \"zeros\"\n//@ [buffer.in]\n\
         //@ type = \"{input}\"\n//@ shape = [64]\n//@ init = \"normal(1.0)\"\n//@ [[launch]]\n//@ grid = [1, 1, 1]\n\
         //@ block = [32, 1, 1]\n//@ args = [{{ buffer = \"out\" }}, {{ buffer = \"in\" }}]\n"
    );
    let head =
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry one(.param .u64 out, .param .u64 in)\n{\n";
    let kernel = Kernel::parse("one.ptx", &format!("{recipe}{head}{REGISTERS}{body}\n    ret;\n}}\n"))?;
    let mut loaded = Emulator.load(&kernel)?;
    let mut memory = Memory::new(loaded.resolved(), 0)?;
    Emulator.run(&mut loaded, &mut memory, &Options { algebra: true, seed, ..Options::default() })?;
    Ok(memory)
}

fn words(memory: &Memory, name: &str) -> Vec<u32> {
    let bytes = memory.buffer(name).unwrap().contents.to_vec();
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
}

/// What lane 0 leaves where `body` puts an f32 into `%f0`.
fn float(body: &str) -> u32 {
    let body = format!("{body}\n    st.global.f32 [%out], %f0;");
    words(&run("f32", "f16", &body, 0).unwrap(), "out")[0]
}

#[test]
fn constants_of_integers_compute_as_integers() {
    let three = "    mov.f32 %f1, 0f40400000;\n    mov.f32 %f2, 0fC0000000;\n"; // 3 and -2
    assert_eq!(float(three), 0);
    assert_eq!(float(&format!("{three}    fma.rn.f32 %f0, %f1, %f1, %f2;")), 7);
    assert_eq!(float(&format!("{three}    sub.ftz.f32 %f0, %f2, %f1;")), 0xfffb);
    assert_eq!(float(&format!("{three}    max.f32 %f0, %f2, %f1;")), 3);
    assert_eq!(float(&format!("{three}    copysign.f32 %f0, %f2, %f1;")), 0xfffd);
    assert_eq!(float(&format!("{three}    abs.f32 %f0, %f2;")), 2);
    assert_eq!(float(&format!("{three}    set.lt.f32.f32 %f0, %f2, %f1;")), 1);
    assert_eq!(float(&format!("{three}    slct.f32.f32 %f0, %f1, %f2, %f2;")), 0xfffe);
    assert_eq!(float(&format!("{three}    add.sat.f32 %f0, %f1, %f1;")), 1);
    assert_eq!(float(&format!("{three}    cvt.rzi.s32.f32 %r0, %f2;\n    cvt.rn.f32.s32 %f0, %r0;")), 0xfffe);
    assert_eq!(
        float(&format!(
            "{three}    cvt.f64.f32 %d0, %f1;\n    add.f64 %d0, %d0, 0d4000000000000000;\n    cvt.rn.f32.f64 %f0, %d0;"
        )),
        5
    );
}

#[test]
fn large_constants_are_infinite() {
    assert_eq!(float("    mov.f32 %f0, 0fF149F2CA;"), f32::NEG_INFINITY.to_bits()); // -1e30
    let tested = "    mov.f32 %f1, 0f46000000;\n    testp.infinite.f32 %p0, %f1;\n    selp.f32 %f0, 0f3F800000, 0f00000000, %p0;";
    assert_eq!(float(tested), 1);
    assert_eq!(float("    mov.f32 %f1, 0fFF800000;\n    ex2.approx.f32 %f0, %f1;"), 0);
}

/// A product, then a sum, on packed halves and on f32, and fused: the same number.
#[test]
fn types_do_not_matter() {
    let loads = "    mad.wide.u32 %in, %lane, 4, %in;\n    ld.global.b32 %r1, [%in];\n    mov.b32 {%h1, %h2}, %r1;\n";
    let packed = "    fma.rn.f16x2 %r0, %r1, %r1, %r1;";
    let steps = "    mul.f16x2 %r2, %r1, %r1;\n    add.f16x2 %r0, %r1, %r2;";
    let wide = "    cvt.f32.f16 %f1, %h1;\n    cvt.f32.f16 %f2, %h2;\n    fma.rn.f32 %f3, %f1, %f1, %f1;\n    \
                mul.f32 %f4, %f2, %f2;\n    add.f32 %f4, %f4, %f2;\n    cvt.rn.f16x2.f32 %r0, %f4, %f3;";
    let found = [packed, steps, wide].map(|body| {
        let body = format!("{loads}{body}\n    st.global.b32 [%out], %r0;");
        words(&run("u32", "f16", &body, 0).unwrap(), "out")
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    assert!(found[0].iter().any(|word| *word != found[0][0]));
}

/// Also what several lanes add to one place, in whichever order.
#[test]
fn sums_of_atomics_do_not_depend_on_the_schedule() {
    let body = "    mad.wide.u32 %in, %lane, 4, %in;\n    ld.global.f32 %f1, [%in];\n    ld.param.u64 %out, [out];\n    \
                red.global.add.f32 [%out], %f1;";
    let memory = run("f32", "f32", body, 0).unwrap();
    let sum = words(&memory, "in")[..32].iter().fold(0u16, |sum, word| sum.wrapping_add(*word as u16));
    assert_eq!(words(&memory, "out")[0], u32::from(sum));
    assert_eq!(words(&run("f32", "f32", body, 4).unwrap(), "out")[0], u32::from(sum));
}

#[test]
fn matrices_of_every_type_multiply() {
    let ones =
        "    mov.f32 %f1, 0f3F800000;\n    mov.b32 %r1, %f1;\n    mov.f32 %f2, 0f40000000;\n    mov.b32 %r2, %f2;\n";
    let tf32 = "    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f3, %f4, %f5}, {%r1, %r1, %r1, %r1}, \
                {%r2, %r2}, {%f1, %f1, %f1, %f1};";
    assert_eq!(float(&format!("{ones}{tf32}")), 8 * 2 + 1);
    let f64 = "    mov.f64 %d1, 0d4008000000000000;\n    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d2, %d3}, {%d1}, \
               {%d1}, {%d1, %d1};\n    cvt.rn.f32.f64 %f0, %d2;";
    assert_eq!(float(f64), 4 * 9 + 3);
    let f16 = "    mov.b32 %r1, 0x00010001;\n    mov.b32 %r2, 0x00020002;\n    mov.b32 %r3, 0;\n    \
               mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r4, %r5}, {%r1, %r1, %r1, %r1}, {%r2, %r2}, {%r3, %r3};\n    \
               mov.b32 {%h0, %h1}, %r4;\n    cvt.f32.f16 %f0, %h0;";
    assert_eq!(float(f16), 32);
}

#[test]
fn what_has_no_room_for_a_number_is_refused() {
    let refused = |body: &str| run("u32", "f16", body, 0).unwrap_err().to_string();
    assert!(refused("    cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;").ends_with(
        "the emulator does not execute `cvt.rn.satfinite.e4m3x2.f32`: with `--algebra`, whose numbers need 16 bits"
    ));
    let widened = "it widens a bf16, and an exact number does not survive that; use `cvt`";
    for by_hand in [
        "    shl.b32 %r1, %r0, 16;\n    mov.b32 %f1, %r1;",
        "    and.b32 %r1, %r0, 0xffff0000;\n    add.f32 %f1, %r1, %r1;",
        "    mov.b32 %f1, {0, %h1};",
    ] {
        assert!(refused(by_hand).ends_with(widened), "{}", refused(by_hand));
    }
    assert!(run("u32", "f16", "    shl.b32 %r1, %lane, 16;\n    st.global.u32 [%out], %r1;", 0).is_ok());
    assert!(refused("    max.xorsign.abs.f32 %f0, %f1, %f2;").ends_with(": with `--algebra`: `.xorsign`"));
}
