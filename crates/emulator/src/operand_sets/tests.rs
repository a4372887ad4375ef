use super::*;
use launch::Kernel;
use ptx::forms::{FORMS, Float, Matrix, Movement, Wgmma};

/// Runs `body` in one block of 32 threads; `%lane` and the address `%at` of the thread's word in a buffer are there.
fn fed(block: u32, init: &str, body: &str) -> OperandSets {
    let text = format!(
        "//@ [buffer.x]\n//@ type = \"u32\"\n//@ shape = [{block}]\n//@ init = {init}\n//@ [[launch]]\n\
         //@ grid = [1, 1, 1]\n//@ block = [{block}, 1, 1]\n//@ args = [{{ buffer = \"x\" }}]\n\
         .version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry one(.param .u64 x)\n{{\n\
         .reg .b32 %lane, %value;\n.reg .b64 %at, %offset;\n.reg .f32 %f, %g;\n.reg .pred %p;\n\
         mov.u32 %lane, %tid.x;\nmul.wide.u32 %offset, %lane, 4;\nld.param.u64 %at, [x];\n\
         add.u64 %at, %at, %offset;\n{body}\nret;\n}}\n"
    );
    let kernel = Kernel::parse("one.ptx", &text).unwrap();
    crate::backend::operand_sets(&kernel).unwrap()
}

const ADD: Op = Op::Float(Float::Add);

#[test]
fn a_set_is_what_a_lane_reads() {
    let add = "cvt.rn.f32.u32 %f, %lane;\nadd.f32 %g, %f, 0f3F800000;\nst.global.f32 [%at], %g;";
    assert_eq!(fed(32, "\"zeros\"", add).count(ADD), 32);
    assert_eq!(fed(128, "\"zeros\"", add).count(ADD), ENOUGH);
    let half = "and.b32 %lane, %lane, 15;\ncvt.rn.f32.u32 %f, %lane;\nadd.f32 %g, %f, %f;";
    assert_eq!(fed(32, "\"zeros\"", half).count(ADD), 16);
    let guarded = "setp.lt.u32 %p, %lane, 5;\ncvt.rn.f32.u32 %f, %lane;\n@%p add.f32 %g, %f, %f;";
    assert_eq!(fed(32, "\"zeros\"", guarded).count(ADD), 5);
    assert_eq!(fed(32, "\"zeros\"", "").count(ADD), 0);
}

#[test]
fn addresses_and_the_bytes_there_are_read() {
    let load = Op::Movement(Movement::LoadVolatile);
    let spread = "ld.volatile.global.u32 %value, [%at];";
    assert_eq!(fed(32, "\"zeros\"", spread).count(load), 32);
    let one = "ld.param.u64 %at, [x];\nld.volatile.global.u32 %value, [%at];";
    assert_eq!(fed(32, "\"zeros\"", one).count(load), 1);
    let changing = format!("{one}\nbar.sync 0;\nst.global.u32 [%at], 7;\nbar.sync 0;\n{one}");
    assert_eq!(fed(32, "\"zeros\"", &changing).count(load), 2);
    let store = Op::Movement(Movement::StoreVolatile);
    let twice = "st.volatile.global.u32 [%at], 7;\nst.volatile.global.u32 [%at], 7;";
    assert_eq!(fed(32, "\"ramp\"", twice).count(store), 32);
}

#[test]
fn specials_are_seen_in_the_type_of_the_operand() {
    let values = "[0x7f800000, 0xff800000, 0x7fc00000, 0x00000000, 0x80000000, 0x00000001, 0x3f800000, 0x40000000]";
    let add = "ld.global.f32 %f, [%at];\nadd.f32 %g, %f, 0f3F800000;";
    assert_eq!(fed(8, values, add).missing(ADD, Type::F32), []);
    let plain = fed(8, "\"const(1065353216)\"", add); // 1.0
    assert_eq!(plain.missing(ADD, Type::F32).len(), 6);
    let halves = "ld.global.u32 %value, [%at];\nadd.f16x2 %value, %value, %value;";
    let found = fed(8, values, halves).missing(Op::Half(ptx::forms::Half::Add), Type::F16);
    assert_eq!(found, [Special::Infinity, Special::NegativeInfinity]); // 0x7f80 is a NaN of f16.
}

#[test]
fn special_numbers_have_their_bits() {
    let all = [(Type::E4m3, 0x7f), (Type::E5m2, 0xfd), (Type::Bf16, 0x7f81), (Type::Tf32, 0x7f80_2000)];
    assert!(all.iter().all(|(ty, bits)| Special::of(*ty, *bits) == Some(Special::NotANumber)));
    assert_eq!(Special::of(Type::E4m3, 0x78), None);
    assert_eq!(Special::of(Type::E5m2, 0x7c), Some(Special::Infinity));
    assert_eq!(Special::of(Type::Tf32, 0x7f80_1fff), Some(Special::Infinity));
    assert_eq!(Special::of(Type::F64, 1 << 63), Some(Special::NegativeZero));
    assert_eq!(Special::of(Type::U32, 0), None);
    assert_eq!(Special::of_type(Type::E4m3).count(), 4);
}

#[test]
fn rows_say_what_forms_need() {
    let form = |op| FORMS.iter().find(|form| form.op == op).unwrap();
    assert_eq!(needed_sets(form(ADD)), ENOUGH);
    assert_eq!(needed_sets(form(Op::Wgmma(Wgmma::Fence))), 1);
    assert_eq!(needed_sets(form(Op::Wgmma(Wgmma::WaitGroup))), 1);
    assert_eq!(special_types(form(ADD)), [Type::F32]);
    assert_eq!(special_types(form(Op::Movement(Movement::Load))), []);
    assert_eq!(special_types(form(Op::Wgmma(Wgmma::BrainShared))), [Type::Bf16, Type::F32]);
    assert_eq!(special_types(form(Op::Matrix(Matrix::MultiplyFloat8))), [Type::E4m3, Type::E5m2, Type::F32]);
    assert_eq!(special_types(form(Op::Matrix(Matrix::LoadMatrix))), []);
}
