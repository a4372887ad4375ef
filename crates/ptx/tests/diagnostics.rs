//! How errors read.

use ptx::{Diagnostics, Source};

fn rendered(body: &str) -> String {
    let text =
        format!(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n{body}\n}}\n");
    let source = Source::new("k.ptx", text);
    match ptx::parse(&source) {
        Ok(parsed) => Diagnostics { source, all: ptx::verify(&parsed) }.to_string(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_wrong_type() {
    insta::assert_snapshot!(rendered("    .reg .u32 %count;\n    add.f32 %count, 1.0, 2.0;"), @r"
    error: `add.f32` takes `.f32` here, found `%count`, which is `.u32`
     --> k.ptx:7:13
      |
    7 |     add.f32 %count, 1.0, 2.0;
      |             ^^^^^^ this is `.u32`
      |
      = help: `.b32` or `.f32` registers fit
    ");
}

#[test]
fn a_target_too_old() {
    insta::assert_snapshot!(rendered("    .reg .f32 %f;\n    cp.async.wait_group 0;"), @r"
    error: `cp.async.wait_group` needs sm_80 or later; the module is for sm_75
     --> k.ptx:7:5
      |
    7 |     cp.async.wait_group 0;
      |     ^^^^^^^^^^^^^^^^^^^ sm_75 does not have this
    ");
}

#[test]
fn a_lonely_modifier() {
    insta::assert_snapshot!(rendered("    .reg .pred %p;\n    setp.lo.s32 %p, 1, 2;"), @r"
    error: `.lo` does not go with the other modifiers of `setp.lo.s32`
     --> k.ptx:7:5
      |
    7 |     setp.lo.s32 %p, 1, 2;
      |     ^^^^^^^^^^^ `.lo` needs another modifier beside it
      |
      = help: `.lo` goes with `.u16`, `.u32`, `.u64`
    ");
}

#[test]
fn a_misspelled_register() {
    insta::assert_snapshot!(rendered("    .reg .b32 %row;\n    mov.b32 %rwo, 1;"), @r"
    error: `%rwo` is not declared
     --> k.ptx:7:13
      |
    7 |     mov.b32 %rwo, 1;
      |             ^^^^ unknown name
      |
      = help: `%row` is declared: did you mean it?
    ");
}

#[test]
fn an_unknown_form() {
    insta::assert_snapshot!(rendered("    .reg .b32 %row;\n    blur.b32 %row, 1;"), @r"
    error: `blur.b32` is not in the form table
     --> k.ptx:7:5
      |
    7 |     blur.b32 %row, 1;
      |     ^^^^^^^^ unknown instruction form
      |
      = help: `veriflash explain forms` lists the forms that veriflash knows
    ");
}

#[test]
fn a_misspelt_instruction() {
    insta::assert_snapshot!(rendered("    .reg .b32 %row;\n    ldmatrx.sync %row, 1;"), @r"
    error: `ldmatrx.sync` is not in the form table
     --> k.ptx:7:5
      |
    7 |     ldmatrx.sync %row, 1;
      |     ^^^^^^^^^^^^ unknown instruction form
      |
      = help: the nearest instruction is `ldmatrix`: did you mean it? `veriflash explain forms` lists the forms that veriflash knows
    ");
}

#[test]
fn a_register_that_nothing_writes() {
    insta::assert_snapshot!(rendered("    .reg .b32 %r<2>;\n    add.s32 %r0, %r1, 1;"), @r"
    error: `%r1` is read but nothing writes it
     --> k.ptx:7:18
      |
    7 |     add.s32 %r0, %r1, 1;
      |                  ^^^ its value is undefined
      |
      = help: write `%r1` first, or read the register that was meant
    ");
}

#[test]
fn several_at_once_in_the_order_of_the_text() {
    let body = "    .reg .b32 %r;\n    bar.sync 16;\n    @%r mov.b32 %r, 1.5;\n    ld.param.u64 %r, [out+8];";
    insta::assert_snapshot!(rendered(body), @r"
    error: `bar.sync` takes 0 to 15 here, found 16
     --> k.ptx:7:14
      |
    7 |     bar.sync 16;
      |              ^^ expected 0 to 15
    error: a guard is a predicate, found `%r`, which is `.b32`
     --> k.ptx:8:5
      |
    8 |     @%r mov.b32 %r, 1.5;
      |     ^^^ expected a `.pred` register
    error: expected a constant of 32 bits, found one of 64
     --> k.ptx:8:21
      |
    8 |     @%r mov.b32 %r, 1.5;
      |                     ^^^ this constant
    error: `ld.param.u64` takes `.u64` here, found `%r`, which is `.b32`
     --> k.ptx:9:18
      |
    9 |     ld.param.u64 %r, [out+8];
      |                  ^^ this is `.b32`
      |
      = help: `.b64`, `.b128`, `.u64` or `.s64` registers fit
    error: parameter `out` has 8 bytes; this reads bytes 8 to 16 of it
     --> k.ptx:9:22
      |
    9 |     ld.param.u64 %r, [out+8];
      |                      ^^^^^^^ outside the parameter
    ");
}

#[test]
fn a_name_that_changes_its_meaning_within_a_scope() {
    let body = |inner: &str| format!("    .reg .b32 %r;\n    mov.b32 %r, 1;\n    {{ {inner} }}");
    assert_eq!(rendered(&body(".reg .b64 %r; mov.b64 %r, 2;")), "");
    assert_eq!(rendered(&body("mov.b32 %r, 2; .reg .b64 %s; mov.b64 %s, 2;")), "");
    let late = rendered(&body("mov.b32 %r, 2; .reg .b64 %r;"));
    assert!(late.contains("`%r` hides an outer `%r` from the middle of its scope on"), "{late}");
}

#[test]
fn an_entry_that_cannot_be_read_is_one_error() {
    let text = ".version 8.0\n.target sm_90\n.entry k() .abi_preserve 8 { .reg .b32 %r; mov.b32 %r, 1; ret; }\n.entry l() { ret; }\n";
    let errors = ptx::parse(&Source::new("k.ptx", text)).expect_err("refused");
    assert_eq!(errors.all.len(), 1, "{errors}");
    assert!(errors.only_unsupported());
}
