//! No text makes the parser or the verifier panic, and what reads well is printed so that it reads back.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ptx::Source;
use ptx::forms::FORMS;
use std::sync::LazyLock;
use support::{Picks, instruction, module};

/// Valid texts to start from: every form once, and what surrounds instructions.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines: Vec<String> =
        FORMS.iter().map(|form| instruction(form.op, &form.spelling.examples()[0], &mut Picks(3))).collect();
    let short = ".version 7.0\n.target sm_80\n.address_size 64\n.file 1 \"a.cu\"\n.extern .shared .align 16 .b8 d[];\n\
                 .const .u16 limit[2] = {0xFFFF, 1};\n.visible .entry k(.param .u64 .ptr .global .align 16 p)\n.maxntid 8, 4\n\
                 { .reg .b32 %r<3>, %x; .reg .pred %p; .loc 1 2 3\nL: { .reg .f32 %x; mov.f32 %x, -1.5e3; }\n\
                 setp.eq.s32 %p|_, %r1, 0; @!%p bra L; ld.param.u64 {%r1}, [p+-0]; /* c */ .pragma \"x\"; ret; }\n";
    let calls = ".version 9.0\n.target sm_90a\n.extern .func (.param .b32 r) f(.param .b64 a, .param .align 8 .b8 s[16]) .noreturn;\n\
                 .global .u64 t[2][2] = {{f, 0}, {generic(f)}};\n.func g(.param .b32 x);\n.alias g, f;\n.weak .const .u8 b = 0xFF(t);\n\
                 .entry k() .reqnctapercluster 2 .pragma \"x\"; { .reg .b64 %d; .reg .b32 %r; .param .b32 p; mov.b64 %d, f;\n\
                 c: .callprototype (.param .b32 _) _ (.param .b64 _); t: .branchtargets a, c; u: .calltargets f, g;\n\
                 call.uni (p), %d, (%d), c; call g, (p); call (_), f, (%d, 1); brx.idx %r, t; a: ret; }\n";
    let chunks = lines.chunks(8).map(|lines| module("9.0", "sm_90a", &[lines.to_vec()]));
    chunks.chain([short.to_string(), calls.to_string()]).collect()
});

/// Reads, verifies, renders what is wrong; prints and reads again what is not.
fn survives(text: &str) {
    let source = Source::new("mutated.ptx", text);
    match ptx::parse(&source) {
        Ok(parsed) => {
            let all = ptx::verify(&parsed);
            let _ = ptx::Diagnostics { source, all }.to_string();
            let printed = ptx::print(&parsed.module);
            let again = ptx::parse(&Source::new("printed.ptx", printed.as_str()));
            let again = again.unwrap_or_else(|errors| panic!("{errors}\n--- printed from ---\n{text}"));
            assert_eq!(again.module, parsed.module, "{text}\n--- was printed as ---\n{printed}");
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

/// One change: at `at`, of `length` bytes, with something of `other` at `from`.
fn mutate(text: &mut Vec<u8>, kind: u8, at: usize, length: usize, other: &[u8], from: usize) {
    let at = at % text.len().max(1);
    let end = (at + length).min(text.len());
    match kind {
        0 => text[at..end].iter_mut().for_each(|byte| *byte ^= (from % 255) as u8 + 1),
        1 => drop(text.drain(at..end)),
        2 => {
            let copy = text[at..end].to_vec();
            text.splice(at..at, copy);
        }
        3 => text.truncate(at),
        _ => {
            let from = from % other.len();
            text.splice(at..end, other[from..(from + length).min(other.len())].to_vec());
        }
    }
}

/// Tokens in another order: texts that lex, and now and then read.
fn shuffle(text: &str, swaps: &[(usize, usize)]) -> String {
    let mut words: Vec<&str> = text.split_inclusive([' ', ',', ';', '\n', '.', '[', '{']).collect();
    let count = words.len();
    swaps.iter().for_each(|(a, b)| words.swap(a % count, b % count));
    words.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn on_mutated_texts(
        text in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        changes in prop::collection::vec((0u8..5, any::<usize>(), 1usize..40, any::<usize>()), 1..6),
    ) {
        let other = other.get(&TEXTS).as_bytes();
        let mut bytes = text.get(&TEXTS).as_bytes().to_vec();
        changes.iter().for_each(|(kind, at, length, from)| mutate(&mut bytes, *kind, *at, *length, other, *from));
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn on_exchanged_tokens(text in any::<prop::sample::Index>(), swaps in prop::collection::vec((any::<usize>(), any::<usize>()), 1..4)) {
        survives(&shuffle(text.get(TEXTS.as_slice()).as_str(), &swaps));
    }

    #[test]
    fn on_any_text(text in "\\PC*") {
        survives(&format!(".version 8.0\n.target sm_90a\n{text}"));
        survives(&text);
    }
}

#[test]
fn on_texts_made_to_hurt() {
    let inside = |body: &str| format!(".version 8.0\n.target sm_90\n.entry k() {{ .reg .b32 %r<2>; {body} ret; }}");
    let deep = 100_000;
    let cases = [
        inside(&format!("{}{}", "{".repeat(deep), "}".repeat(deep))),
        inside(&"{".repeat(deep)),
        inside(&format!("mov.b32 %r0, {}1{};", "{".repeat(deep), "}".repeat(deep))),
        inside(&format!("mov.b32 %r0, {}%r1;", "%r1|".repeat(deep))),
        inside(&format!("mov.b32 %r0, {};", "9".repeat(10_000))),
        inside("mov.b64 %r0, 18446744073709551616;"),
        inside("mov.b32 %r0, -18446744073709551615;"),
        inside("ld.shared.b32 %r0, [%r1+9223372036854775807];"),
        inside("ld.shared.b32 %r0, [%r1+-9223372036854775808];"),
        inside("ld.shared.b32 %r0, [18446744073709551615];"),
        inside(".reg .b32 %x<4294967295>;"),
        inside(".reg .b32 %x<4294967296>;"),
        inside(&".reg .b32 %x<1048576>;".repeat(3)),
        inside(".shared .align 2147483648 .b64 v[4294967295];"),
        inside(&format!("mov.b32 %r0, {{{}}};", "%r1,".repeat(deep) + "%r1")),
        inside(&format!("add{};", ".s32".repeat(deep))),
        inside(&format!("call {};", "(".repeat(deep))),
        inside("call; call (), (); brx.idx; brx.idx %r0;"),
        format!(".version 8.0\n.target sm_90\n.global .b32 a{} = {};", "[1]".repeat(deep), "{".repeat(deep)),
        ".version 8.0\n.target sm_90\n.global .b32 a[4294967295][4294967295] = {{1},{2}};".into(),
        format!(".version 8.0\n.target sm_90\n.global .b32 a[9][1000000] = {{{}}};", "{},".repeat(deep)),
        ".version 99999999999.1\n.target sm_80".into(),
        ".version 4294967295.4294967295\n.target sm_4294967295a\n".into(),
        ".version 8.0\n.target sm_90\n.entry k(.param .b8 p[4294967295]) { ret; }".into(),
        ".version 8.0\n.target sm_90\n/* never closed".into(),
        "\u{feff}.version 8.0\r\n.target sm_90\r\n.entry é() { ret; }".into(),
        include_str!("../src/forms/matrix.rs").into(),
        inside(include_str!("../src/forms/movement.rs")),
    ];
    cases.iter().for_each(|text| survives(text));
}
