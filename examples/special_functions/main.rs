//! Compares every approximate function of the special-function unit with a GPU, for all operands.
//!
//! `cargo run --release --example special_functions [TEXT]`; with TEXT, the forms alone whose names contain it. f32: all
//! 2^32 operands; f16 and bf16: all 2^16; f64: every high fraction at two exponents, and every exponent with other
//! fractions. NaNs are compared by their bits, too. The model is that of sm_90.

mod forms;
mod gpu;

use cuda::{Context, Error};
use forms::{Form, forms};
use gpu::Gpu;
use rayon::prelude::*;
use std::process::ExitCode;
use std::time::Instant;

/// Operands per launch: two buffers of their results are 512 MiB on this side.
const CHUNK: u64 = 1 << 26;
/// Operands that one task compares.
const TASK: usize = 1 << 16;

/// What computes the results that are compared.
trait Device: Send {
    /// The results for the operands `first`, `first + 1`, and so on, as many as there is room for.
    fn results(&mut self, first: u64, room: &mut [u8]) -> Result<(), Error>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Difference {
    operand: u64,
    expected: u64,
    found: u64,
}

/// How many results differ, and the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    first: Option<Difference>,
}

impl Tally {
    /// `later` holds later operands.
    fn and(self, later: Tally) -> Tally {
        Tally { count: self.count + later.count, first: self.first.or(later.first) }
    }
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    match run(&wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: the special functions are compared with a GPU: {error}");
            ExitCode::from(2)
        }
    }
}

/// Are all equal?
fn run(wanted: &str) -> Result<bool, Error> {
    let context = Context::open(0)?;
    println!("GPU: {}", context.device());
    let forms: Vec<Form> = forms().into_iter().filter(|form| form.name.contains(wanted)).collect();
    let mut equal = 0;
    for form in &forms {
        let start = Instant::now();
        let chunk = form.operands().min(CHUNK);
        let tally = compare(form, chunk, &mut Gpu::new(&context, form, chunk)?)?;
        println!("{}, {:.1} s", line(form, tally), start.elapsed().as_secs_f64());
        equal += usize::from(tally.count == 0);
    }
    println!("special functions: {equal} of {} equal", forms.len());
    Ok(equal == forms.len() && equal > 0)
}

fn line(form: &Form, tally: Tally) -> String {
    let counts = format!("{:<22} {:>10} inputs, {} differences", form.name, form.operands(), tally.count);
    let Some(Difference { operand, expected, found }) = tally.first else { return counts };
    let width = 2 + 2 * form.bytes();
    format!("{counts}, first {operand:#0width$x}: emulator {expected:#0width$x}, GPU {found:#0width$x}")
}

/// While one chunk is compared, the device computes the next.
fn compare(form: &Form, chunk: u64, device: &mut impl Device) -> Result<Tally, Error> {
    let room = || vec![0; chunk as usize * form.bytes()];
    let (mut current, mut next) = (room(), room());
    device.results(0, &mut current)?;
    let mut total = Tally::default();
    for first in (0..form.operands()).step_by(chunk as usize) {
        let last = first + chunk >= form.operands();
        let fetch = || if last { Ok(()) } else { device.results(first + chunk, &mut next) };
        let (fetched, tally) = rayon::join(fetch, || differences(form, first, &current));
        fetched?;
        total = total.and(tally);
        std::mem::swap(&mut current, &mut next);
    }
    Ok(total)
}

fn differences(form: &Form, first: u64, results: &[u8]) -> Tally {
    let tasks = results.par_chunks(TASK * form.bytes()).enumerate();
    tasks.map(|(task, results)| form.tally(first + (task * TASK) as u64, results)).reduce(Tally::default, Tally::and)
}

#[cfg(test)]
mod tests;
