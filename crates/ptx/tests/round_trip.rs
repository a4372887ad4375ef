//! What is printed reads back to an equal module.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ptx::forms::FORMS;
use ptx::{Module, Source, Statement};
use support::{Picks, instruction, module};

fn read(text: &str) -> Module {
    let source = Source::new("test.ptx", text);
    let parsed = ptx::parse(&source).unwrap_or_else(|errors| panic!("{errors}"));
    let errors = ptx::verify(&parsed);
    assert!(errors.is_empty(), "{}", ptx::Diagnostics { source, all: errors });
    parsed.module
}

/// Reads, prints, reads again, compares; the module.
fn round(text: &str) -> Module {
    let first = read(text);
    let printed = ptx::print(&first);
    assert_eq!(read(&printed), first, "{text}\n--- was printed as ---\n{printed}");
    first
}

/// A body in an entry with a few registers, all written.
fn entry(body: &str) -> String {
    module("9.0", "sm_90a", &[body.lines().map(String::from).collect()])
}

/// The entry that `entry` makes.
fn entry_of(module: &Module) -> &ptx::Function {
    module.function("k0").expect("the entry is there")
}

/// The last instruction before `end: ret`, printed.
fn last_line(module: &Module) -> String {
    let printed = ptx::print(module);
    let lines: Vec<&str> = printed.lines().collect();
    let end = lines.iter().position(|line| *line == "end:").expect("the label is printed");
    lines[end - 1].trim().into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn instructions_of_the_table(seed in any::<u64>()) {
        let mut picks = Picks(seed);
        let mut line = |_| {
            let form = &FORMS[picks.below(FORMS.len() as u64) as usize];
            let examples = form.spelling.examples();
            instruction(form.op, &examples[picks.below(examples.len() as u64) as usize], &mut picks)
        };
        let lines: Vec<String> = (0..40).map(&mut line).collect();
        round(&module("9.0", "sm_90a", &[lines.clone(), lines[..5].to_vec()]));
    }
}

#[test]
fn every_spelling_of_every_row() {
    for form in FORMS.iter() {
        let spelled = form.spelling.examples();
        let lines = spelled.iter().map(|mnemonic| instruction(form.op, mnemonic, &mut Picks(spelled.len() as u64)));
        round(&module("9.0", "sm_90a", &[lines.collect()]));
    }
}

#[test]
fn wgmma_from_shared_memory_and_from_registers() {
    let sums: Vec<String> = (0..64).map(|number| format!("%f{}", number % 8)).collect();
    let sums = sums.join(", ");
    let head = "wgmma.mma_async.sync.aligned.m64n128k16.f32";
    let shared = format!("{head}.bf16.bf16 {{{sums}}}, %d0, %d1, %p0, 1, -1, 0, 1;");
    assert_eq!(last_line(&round(&entry(&shared))), shared);
    let registers = format!("{head}.f16.f16 {{{sums}}}, {{%r0, %r1, %r2, %r3}}, %d1, 1, 1, 1, 1;");
    assert_eq!(last_line(&round(&entry(&registers))), registers);
}

#[test]
fn tma_load_and_mbarrier_wait() {
    let load = "@%p1 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
                [S+128], [%d0, {%r0, %r1, 7}], [%r2];";
    assert_eq!(last_line(&round(&entry(load))), load);
    let wait = "wait:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [S+8], %r3, 1000;\n@!%p2 bra wait;";
    round(&entry(wait));
}

#[test]
fn modifiers_in_any_order_mean_one_instruction() {
    let orders = ["m8n8.x4.trans.shared", "x4.trans.shared.m8n8", "trans.x4.m8n8.shared", "shared.m8n8.x4.trans"];
    let texts = orders.map(|order| format!("ldmatrix.sync.aligned.{order}.b16 {{%r0, %r1, %r2, %r3}}, [%r4+32];"));
    let modules = texts.map(|text| round(&entry(&text)));
    assert!(modules.iter().all(|module| *module == modules[0]));
    assert!(last_line(&modules[0]).starts_with("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"));
}

#[test]
fn sibling_scopes_may_use_equal_names() {
    let body = "{\n.reg .b32 %x;\nmov.b32 %x, 1;\nloop:\nadd.s32 %x, %x, 1;\nbra loop;\n}\n\
                { .reg .b64 %x; .shared .b32 v; loop: mov.b64 %x, v; { .reg .f32 %x; mov.f32 %x, 1.0; bra loop; } }";
    let module = round(&entry(body));
    let function = entry_of(&module);
    assert_eq!(function.registers.iter().filter(|register| register.name == "%x").count(), 3);
    assert_eq!(function.body.iter().filter(|one| matches!(one, Statement::Open(_))).count(), 3);
}

#[test]
fn a_declaration_behind_a_scope_keeps_its_uses() {
    let body = "{ .reg .b32 %x; .shared .b32 v; mov.b32 %x, v; }\n.reg.b16 late;\n.shared .b64 w;\n\
                mov.b16 late, 3;\n@%p0 mov.b64 %d0, w;\n@%p1 st.shared.b16 [w+2], late;";
    assert_eq!(last_line(&round(&entry(body))), "@%p1 st.shared.b16 [w+2], late;");
}

#[test]
fn operands_as_people_and_compilers_write_them() {
    let cases = [
        ("ld.shared.b32 %r0, [%r1+-4];", "ld.shared.b32 %r0, [%r1+-4];"),
        ("ld.shared.b32 %r0, [ %r1 + 0 ];", "ld.shared.b32 %r0, [%r1];"),
        ("st.shared.v4.b32 [S], {%r0, 1, 0x10, -1};", "st.shared.v4.b32 [S], {%r0, 1, 16, -1};"),
        ("ld.global.v2.b32 {%r0, _}, [%d0];", "ld.global.v2.b32 {%r0, _}, [%d0];"),
        ("mov.u32 %r0, WARP_SZ;", "mov.u32 %r0, 32;"),
        ("ld.shared.b32 %r0, [%r1+WARP_SZ];", "ld.shared.b32 %r0, [%r1+32];"),
        ("mov.f32 %f0, 0f3f800000;", "mov.f32 %f0, 0f3F800000;"),
        ("mov.f64 %g0, 0D3FF0000000000000;", "mov.f64 %g0, 0d3FF0000000000000;"),
        ("mov.f32 %f0, 1.5;", "mov.f32 %f0, 0d3FF8000000000000;"),
        ("@!%p3 setp.lt.and.f32 %p0|%p1, %f0, %f1, !%p2;", "@!%p3 setp.lt.and.f32 %p0|%p1, %f0, %f1, !%p2;"),
        ("/* a block\ncomment */ mov.u32 %r0, %tid.x; // and a line", "mov.u32 %r0, %tid.x;"),
    ];
    for (text, printed) in cases {
        assert_eq!(last_line(&round(&entry(text))), printed);
    }
}

#[test]
fn locations_and_pragmas() {
    let body = ".loc 1 12 3\nmov.b32 %r0, 1;\n.loc 1 14 5, function_name $L__info_string0, inlined_at 1 20 7\n\
                mov.b32 %r0, 2;\n.pragma \"nounroll\";\nmov.b32 %r0, 3;";
    let module = round(&entry(body).replace("{\n    .reg .pred", "{\n    .pragma \"first\";\n    .reg .pred"));
    let found = |wanted: &Statement| entry_of(&module).body.contains(wanted);
    assert!(
        found(&Statement::Location { file: 1, line: 14, column: 5 }) && found(&Statement::Pragma("nounroll".into()))
    );
}

#[test]
fn declarations_of_every_kind() {
    round(
        ".version 8.0\n.target sm_90a, debug\n.address_size 64\n.file 1 \"a.cu\"\n\
         .extern .shared .align 16 .b8 dynamic[];\n.global .align 4 .f32 table[2] = {1.5, 0f00000000};\n\
         .const .u16 limit = 0xFFFF;\n.visible .global .b64 count;\n\
         .visible .entry one(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24], .param .u64 .ptr q)\n\
         .maxntid 128\n.minnctapersm 2\n.maxnreg 64\n{ .reg .b32 %r<3>, %x; .reg .b32 %y0; ret; }\n\
         .entry two() .reqntid 8, 4, 1 { .local .align 8 .b8 stack[16]; exit; }\n.weak .entry three { }\n",
    );
}

#[test]
fn names_that_end_in_two_digits_are_declared_one_by_one() {
    // ptxas reads `%x0<2>` and knows no `%x00`.
    let module = round(&entry("    .reg .f32 %x00, %x01, %y<2>;"));
    let printed = ptx::print(&module);
    assert!(printed.contains(".reg .f32 %x00;\n") && printed.contains(".reg .f32 %y<2>;\n"), "{printed}");
}
