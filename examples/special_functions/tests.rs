//! Without a GPU: a device that computes what the emulator does, and the emulator that runs the GPU's kernel.

use super::*;
use forms::{Function, double_operand};
use gpu::{THREADS, kernel};

/// Operands per form.
const SAMPLES: u64 = 1 << 16;

/// Gives what the form's function gives, but one bit is wrong at some operands.
struct Fake<'form> {
    form: &'form Form,
    wrong: Vec<u64>,
}

impl Fake<'_> {
    fn result(&self, number: u64) -> u64 {
        let result = match self.form.function {
            Function::Half(function) => function(number as u16).into(),
            Function::Single(function) => function(number as u32).into(),
            Function::Double(function) => function(double_operand(number)),
        };
        result ^ u64::from(self.wrong.contains(&number))
    }
}

impl Device for Fake<'_> {
    fn results(&mut self, first: u64, room: &mut [u8]) -> Result<(), Error> {
        let bytes = self.form.bytes();
        for (number, room) in (first..).zip(room.chunks_exact_mut(bytes)) {
            room.copy_from_slice(&self.result(number).to_le_bytes()[..bytes]);
        }
        Ok(())
    }
}

#[test]
fn each_wrong_bit_is_counted_and_the_first_shown() {
    for form in forms().iter().filter(|form| form.operands() < 1 << 32) {
        let right = compare(form, 1 << 14, &mut Fake { form, wrong: vec![] }).unwrap();
        assert_eq!(right, Tally::default(), "{}", form.name);
        let mut fake = Fake { form, wrong: vec![0, 0x3fff, 0x4000, form.operands() - 1] };
        let tally = compare(form, 1 << 14, &mut fake).unwrap();
        assert_eq!(tally.count, 4, "{}", form.name);
        let first = tally.first.expect("the first is kept");
        assert_eq!((first.operand, first.found), (operand(form, 0), first.expected ^ 1), "{}", form.name);
    }
}

#[test]
fn singles_are_compared_in_every_part_of_their_range() {
    for form in forms().iter().filter(|form| form.bytes() == 4) {
        for first in [0, 0x007f_8000, 0x3f80_0000, 0x7f7f_8000, 0xbf80_0000, u64::from(u32::MAX) + 1 - SAMPLES] {
            let wrong = first + SAMPLES - 1;
            let mut room = vec![0; SAMPLES as usize * 4];
            Fake { form, wrong: vec![wrong] }.results(first, &mut room).unwrap();
            let tally = differences(form, first, &room);
            assert_eq!((tally.count, tally.first.map(|first| first.operand)), (1, Some(wrong)), "{}", form.name);
        }
    }
}

#[test]
fn a_difference_is_a_line_with_its_bits() {
    let form = &forms()[0];
    let first = Difference { operand: 0x3f80_0000, expected: 0x3f80_0000, found: 1 };
    assert_eq!(
        line(form, Tally { count: 7, first: Some(first) }),
        "rcp.approx.f32         4294967296 inputs, 7 differences, first 0x3f800000: emulator 0x3f800000, GPU 0x00000001"
    );
}

#[test]
fn doubles_have_every_high_fraction_and_every_exponent() {
    assert_eq!(double_operand(0), 0.5f64.to_bits());
    assert_eq!(double_operand(1 << 20), 1f64.to_bits());
    assert_eq!(double_operand((1 << 21) - 1), 0x3fff_ffff_0000_0000);
    let operands: std::collections::HashSet<u64> = (1 << 21..1 << 22).map(double_operand).collect();
    assert!((0..0x1000u64).all(|field| operands.contains(&(field << 52)) && operands.contains(&(field << 52 | 1))));
}

/// The kernel that a GPU runs, in the emulator: it computes the same, at the right places.
#[test]
fn the_kernel_gives_the_functions_in_the_emulator() {
    for form in forms() {
        let source = ptx::Source::new(form.name, kernel(&form));
        let parsed = ptx::parse(&source).expect("the kernel reads");
        assert!(ptx::verify(&parsed).is_empty(), "{}", form.name);
        for first in [0, 0x7f00, 0x003f_8000, 0x7f7f_fe00] {
            if first < form.operands() {
                emulate(&form, first);
            }
        }
    }
}

fn operand(form: &Form, number: u64) -> u64 {
    if form.bytes() == 8 { double_operand(number) } else { number }
}

/// Four blocks from operand `first` on; a form that the emulator does not execute is left out.
fn emulate(form: &Form, first: u64) {
    let (count, bits) = (4 * u64::from(THREADS), 8 * form.bytes());
    let numbers = |list: Vec<u64>| list.iter().map(|number| format!("{number:#x}")).collect::<Vec<_>>().join(", ");
    let operands = numbers((first..first + count).map(|number| operand(form, number)).collect());
    let fake = Fake { form, wrong: vec![] };
    let results = numbers((first..first + count).map(|number| fake.result(number)).collect());
    let text = format!(
        "//@ [buffer.results]\n//@ type = \"u{bits}\"\n//@ shape = [{count}]\n//@ init = \"poison\"\n\
         //@ expect = [{results}]\n//@ [buffer.operands]\n//@ type = \"u{bits}\"\n//@ shape = [{count}]\n\
         //@ init = [{operands}]\n//@ [[launch]]\n//@ grid = [4, 1, 1]\n//@ block = [{THREADS}, 1, 1]\n\
         //@ args = [{{ buffer = \"results\" }}, {{ u64 = {first} }}, {{ buffer = \"operands\" }}]\n{}",
        kernel(form)
    );
    let kernel = launch::Kernel::parse(form.name, &text).expect("the recipe reads");
    let sanitized = emulator::sanitize(&kernel, &[0], 0, &launch::backend::Options::default())
        .unwrap_or_else(|error| panic!("{}: {error}", form.name));
    assert!(sanitized.findings.is_empty(), "{}", form.name);
    let resolved = kernel.resolve(&launch::Limits::default()).expect("the recipe resolves");
    sanitized.runs[0].2.check(&resolved).unwrap_or_else(|error| panic!("{}: {error}", form.name));
}
