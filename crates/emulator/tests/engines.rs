//! The engine of whole warps against the one that goes lane by lane: loads, stores and shuffles of every shape.

use emulator::Emulator;
use launch::backend::{Backend, Engine, Options};
use launch::{Kernel, Memory};

/// Bytes of the buffers.
const BYTES: usize = 32 * 1024;

/// Two warps, each lane at `%lane`; `%at` is where it stores next, 16 bytes wide, and all that it stores moves it on.
const HEAD: &str = "//@ [buffer.x]
//@ type = \"f32\"
//@ shape = [8192]
//@ init = \"normal(1.0, 7)\"
//@ [buffer.y]
//@ type = \"u32\"
//@ shape = [8192]
//@ init = \"zeros\"
//@ [[launch]]
//@ grid = [2, 1, 1]
//@ block = [64, 1, 1]
//@ args = [{ buffer = \"x\" }, { buffer = \"y\" }, { s32 = -5 }]
.version 8.0
.target sm_90
.address_size 64
.visible .entry engines(.param .u64 x, .param .u64 y, .param .s32 number)
{
    .reg .pred %p, %q, %odd; .reg .b32 %a, %b, %c, %d, %lane, %thread, %s, %t, %base; .reg .b64 %x, %y, %w, %v, %at, %from;
    .reg .b16 %h; .shared .align 16 .b8 kept[4096];
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %lane, %laneid; mov.u32 %thread, %tid.x;
    mov.u32 %a, %ctaid.x; mad.lo.s32 %a, %a, 64, %thread; mul.wide.u32 %w, %a, 256; add.s64 %at, %y, %w;
    and.b32 %b, %lane, 1; setp.eq.s32 %odd, %b, 1; mov.u32 %base, kept;
";

/// Stores what is in `%a` or `%p`, and goes on.
const KEEP: &str = "st.global.u32 [%at], %a; add.s64 %at, %at, 4;\n";
const KEEP_BIT: &str = "selp.b32 %a, 1, 0, %p; st.global.u32 [%at], %a; add.s64 %at, %at, 4;\n";

fn shuffles() -> String {
    let mut text = String::from("mad.lo.s32 %d, %lane, 977, %thread;\n");
    for (mode, clamp) in [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31), ("up", 0x1800), ("down", 0x181f)] {
        for amount in [1, 5, 16] {
            text += &format!("shfl.sync.{mode}.b32 %a|%p, %d, {amount}, {clamp}, 0xffffffff;\n{KEEP}{KEEP_BIT}");
        }
        text += &format!("shfl.sync.{mode}.b32 %a, %d, 3, {clamp}, -1;\n{KEEP}");
    }
    text
}

/// Loads at addresses one behind the other, all the same, and apart; guarded and not; and stores likewise.
fn accesses() -> String {
    let mut text = String::new();
    for (width, load) in [(1, "u8"), (2, "u16"), (4, "b32"), (8, "b64"), (8, "v2.b32"), (16, "v4.b32"), (16, "v2.b64")]
    {
        let (registers, kept) = match load {
            "u8" | "u16" => ("%h", "cvt.u32.u16 %a, %h;\n"),
            "b32" => ("%a", ""),
            "b64" => ("%w", "cvt.u32.u64 %a, %w;\n"),
            "v2.b32" => ("{%a, %b}", "xor.b32 %a, %a, %b;\n"),
            "v4.b32" => ("{%a, %b, %c, %d}", "xor.b32 %a, %a, %b; sub.s32 %a, %a, %c; xor.b32 %a, %a, %d;\n"),
            _ => ("{%w, %v}", "xor.b64 %w, %w, %v; cvt.u32.u64 %a, %w;\n"),
        };
        for place in ["mov.u32 %t, %lane;", "mov.u32 %t, 3;", "mul.lo.s32 %t, %lane, 13; and.b32 %t, %t, 31;"] {
            let offset = format!("{place} mul.lo.s32 %t, %t, {width};\n");
            let apart = "and.b32 %s, %thread, 32; mad.lo.s32 %s, %s, 64, %t; add.s32 %s, %s, %base;\n";
            for guard in ["", "@%odd "] {
                text += &format!("{offset}cvt.u64.u32 %from, %t; add.s64 %from, %x, %from;\n");
                text += &format!("{guard}ld.global.{load} {registers}, [%from+16];\n{kept}");
                text += &format!("{apart}{guard}st.shared.{load} [%s], {registers};\nbar.warp.sync -1;\n");
                text += &format!("{guard}ld.shared.{load} {registers}, [%s];\n{kept}{KEEP}");
            }
        }
    }
    text
}

fn run(body: &str, engine: Engine) -> Vec<u8> {
    let text = format!("{HEAD}ld.param.s32 %a, [number];\n{KEEP}{body}ret;\n}}\n");
    let kernel = Kernel::parse("engines.ptx", &text).unwrap();
    let mut loaded = Emulator.load(&kernel).unwrap();
    let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
    let options = Options { engine, checks: false, ..Options::default() };
    let run = Emulator.run(&mut loaded, &mut memory, &options).unwrap();
    assert!(run.findings.is_empty(), "{:?}", run.findings);
    memory.buffer("y").unwrap().contents.to_vec()
}

#[test]
fn both_engines_do_the_same() {
    for body in [shuffles(), accesses()] {
        let [lanes, warps] = [Engine::Lanes, Engine::Warps].map(|engine| run(&body, engine));
        assert_eq!(lanes.len(), BYTES);
        let first = lanes.iter().zip(&warps).position(|(lane, warp)| lane != warp);
        assert_eq!(first, None, "the first byte that differs");
        let stored = lanes.iter().filter(|byte| **byte != 0).count();
        assert!(stored > BYTES / 8, "only {stored} bytes were stored");
    }
}
