//! Kernels that do not do what they should, and tools that did not look: tried on the emulator.

use super::rigs::{FastPath, FreedAnswers, NothingLaunched, OtherEntry, emulator};
use super::workshop::{at_end, at_start, case, edited, honest, parity, sanitize, stress, with_calls};
use super::{Attack, Place, row};
use crate::figures::Figure;
use crate::guard::{Guard, Objections};
use crate::harness;
use crate::outcome;
use crate::stages::Log;
use crate::stages::parity::{Noticed, Report};
use crate::stages::profile::{self, Profiled};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "nothing-launched",     "0 errors from a sanitizer that saw no launch",               &[Guard::Witness],    nothing_launched),
    row(HERE, "fast-path",            "0 errors of a race, on a path that the checks do not see",   &[Guard::Observed],   fast_path),
    row(HERE, "second-call-dies",     "a kernel that works: it was called once",                    &[Guard::LaterCalls], second_call_dies),
    row(HERE, "first-call-only",      "right results, of the first call alone",                     &[Guard::LaterCalls], first_call_only),
    row(HERE, "old-log",              "the log of the kernel before it was changed",                &[Guard::Stale],      old_log),
    row(HERE, "other-function",       "a fallback's result under the kernel's name",                &[Guard::Executed],   other_function),
    row(HERE, "other-grid-profiled",  "a busy GPU: a grid that fills it was profiled",              &[Guard::Executed],   other_grid_profiled),
    row(HERE, "idle-synchronisation", "race-free by construction: its fence orders nothing",        &[Guard::Mutation],   idle_synchronisation),
    row(HERE, "zeros",                "zeros within a loose tolerance",                             &[Guard::Controls],   zeros),
    row(HERE, "constants",            "ones within a loose tolerance",                              &[Guard::Controls],   constants),
    row(HERE, "copied-input",         "Q within a loose tolerance",                                 &[Guard::Controls],   copied_input),
    row(HERE, "loose-precision",      "a tolerance so wide that fp8 passes",                        &[Guard::Controls],   loose_precision),
    row(HERE, "previous-output",      "the answer that an earlier run left",                        &[Guard::Poison, Guard::Controls], previous_output),
    row(HERE, "half-the-batch",       "a whole batch, every other sequence left out",               &[Guard::Poison],     half_the_batch),
    row(HERE, "one-head",             "all heads, the last left out",                               &[Guard::Poison],     one_head),
    row(HERE, "one-tile",             "all queries, the last tile left out",                        &[Guard::Poison],     one_tile),
    row(HERE, "beyond-its-buffers",   "a result found in memory that is not the kernel's",          &[Guard::Findings],   beyond_its_buffers),
    row(HERE, "lost-atomic",          "right results, by luck: it counts without an atomic",        &[Guard::Findings],   lost_atomic),
    row(HERE, "changed-inputs",       "inputs that agree with the result, because it changed them", &[Guard::Inputs],     changed_inputs),
    row(HERE, "tested-shape",         "attention, on the one shape that is tested",                 &[Guard::Shapes],     tested_shape),
    row(HERE, "planted-nan",          "a result with NaN where nobody compares",                    &[Guard::NotANumber], planted_nan),
    row(HERE, "fewer-bits",           "f16, computed with three bits of mantissa",                  &[Guard::ErrorRule],  fewer_bits),
    row(HERE, "depends-on-order",     "the same result each time, but for the last bit",            &[Guard::BitEqual],   depends_on_order),
];

const HERE: Place = Place::Emulator;

fn nothing_launched(_: &[Guard]) -> Result<Objections, String> {
    sanitize(&case(&honest()?)?, 2, NothingLaunched)
}

fn fast_path(_: &[Guard]) -> Result<Objections, String> {
    sanitize(&case(&with_a_race()?)?, 1, FastPath)
}

fn second_call_dies(_: &[Guard]) -> Result<Objections, String> {
    stress(case(&with_calls(&honest()?, "    @%late trap;")?)?)
}

fn first_call_only(_: &[Guard]) -> Result<Objections, String> {
    stress(case(&with_calls(&honest()?, "    @%late ret;")?)?)
}

fn old_log(_: &[Guard]) -> Result<Objections, String> {
    let old = parity(&case(&honest()?)?, &emulator(0))?;
    let changed = case(&edited(&honest()?, "    ld.param", "    bar.sync 0;\n    ld.param")?)?;
    Ok(outcome::objections(&old, &[changed.subject()]))
}

fn other_function(_: &[Guard]) -> Result<Objections, String> {
    Ok(parity(&case(&honest()?)?, &OtherEntry)?.objections())
}

fn other_grid_profiled(_: &[Guard]) -> Result<Objections, String> {
    let case = case(&honest()?)?;
    let share = Figure::new(90.0);
    let launch = Profiled {
        entry: "attention_forward".into(),
        grid: "(128, 16, 1)".into(),
        block: "(128, 1, 1)".into(),
        microseconds: share,
        active: share,
        busy: share,
        tensor: share,
        memory: share,
        cache: share,
        stalls: vec![],
    };
    let entry = profile::Entry {
        subject: case.subject(),
        problem: case.problem.to_string(),
        largest: true,
        asked: harness::asked(&case.kernel, &case.resolved.launches),
        launches: vec![launch],
    };
    Ok(profile::Report { ncu: "a model".into(), kernels: vec![entry] }.objections())
}

/// What the fence orders for the host is watched by nobody: a check that cannot fail proves nothing.
fn idle_synchronisation(_: &[Guard]) -> Result<Objections, String> {
    stress(case(&edited(&honest()?, "    ld.param", "    fence.acq_rel.sys;\n    ld.param")?)?)
}

/// The honest kernel with something else in its stores of the output; `before` may compute it from `%from`, the address, and
/// `%word`, what would have been stored.
fn storing(before: &str, value: &str) -> Result<String, String> {
    let mut text = String::new();
    let honest = honest()?;
    for line in honest.lines() {
        let store = line.trim().strip_prefix("st.global.b32 [").and_then(|rest| rest.split_once(']'));
        match store {
            Some((address, stored)) => {
                let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
                text += &format!(
                    "    {{\n    .reg .b64 %from;\n    .reg .b32 %word;\n    add.u64 %from, {base}, {offset};\n    \
                     mov.b32 %word{stored}\n{before}\n    st.global.b32 [{address}], {value};\n    }}\n"
                );
            }
            None => text += &format!("{line}\n"),
        }
    }
    if text.lines().count() == honest.lines().count() { Err("the kernel has no store".into()) } else { Ok(text) }
}

fn zeros(_: &[Guard]) -> Result<Objections, String> {
    loosely(&storing("", "0")?)
}

fn constants(_: &[Guard]) -> Result<Objections, String> {
    loosely(&storing("", "0x3c003c00")?)
}

fn copied_input(_: &[Guard]) -> Result<Objections, String> {
    let load = "    sub.u64 %from, %from, %o;\n    add.u64 %from, %from, %q;\n    ld.global.b32 %word, [%from];";
    loosely(&storing(load, "%word")?)
}

fn loose_precision(_: &[Guard]) -> Result<Objections, String> {
    loosely(&narrowed()?)
}

/// So many times what the rule allows.
const LOOSE: f64 = 1e5;

/// Judged as if the rule allowed far more, of results and of the controls alike.
fn loosely(text: &str) -> Result<Objections, String> {
    let mut report: Report = parity(&case(text)?, &emulator(0))?;
    let (more, less) = (|one: Figure| Figure::new(one.value() * LOOSE), |one: Figure| Figure::new(one.value() / LOOSE));
    for entry in &mut report.kernels {
        for compared in std::iter::once(&mut entry.output).chain(&mut entry.log_sum_exp) {
            compared.element_allowed = more(compared.element_allowed);
            compared.frobenius_allowed = more(compared.frobenius_allowed);
        }
        entry.shapes.iter_mut().for_each(|shape| shape.error = less(shape.error));
        for control in &mut entry.controls {
            if let Noticed::Ratio(ratio) = &mut control.result {
                *ratio = less(*ratio);
            }
        }
    }
    Ok(report.objections())
}

fn previous_output(off: &[Guard]) -> Result<Objections, String> {
    skipping(off, "    ret;")
}

fn half_the_batch(off: &[Guard]) -> Result<Objections, String> {
    skipping_blocks(off, "z")
}

fn one_head(off: &[Guard]) -> Result<Objections, String> {
    skipping_blocks(off, "y")
}

fn one_tile(off: &[Guard]) -> Result<Objections, String> {
    skipping_blocks(off, "x")
}

fn skipping_blocks(off: &[Guard], axis: &str) -> Result<Objections, String> {
    let place = format!("    .reg .b32 %place;\n    .reg .pred %skip;\n    mov.u32 %place, %ctaid.{axis};");
    skipping(off, &format!("{place}\n    setp.ge.u32 %skip, %place, 1;\n    @%skip ret;"))
}

/// What is left out is right all the same where the memory holds the answer already.
fn skipping(off: &[Guard], statements: &str) -> Result<Objections, String> {
    Ok(parity(&case(&at_start(&honest()?, statements)?)?, &FreedAnswers::new(off))?.objections())
}

/// Reads before Q, and does nothing with it: who looks for an answer there can find one.
fn beyond_its_buffers(_: &[Guard]) -> Result<Objections, String> {
    let read = "    .reg .b32 %found;\n    ld.global.b32 %found, [%q+-64];";
    sanitize(&case(&at_end(&honest()?, read)?)?, 2, emulator)
}

/// All threads count in one place, and each forgets what others did meanwhile. The result does not depend on it.
fn with_a_race() -> Result<String, String> {
    let text = edited(&honest()?, ".visible .entry", ".global .u32 progress = 0;\n.visible .entry")?;
    let count = "    .reg .b32 %count;\n    ld.global.u32 %count, [progress];\n    add.u32 %count, %count, 1;\n    \
                 st.global.u32 [progress], %count;";
    at_start(&text, count)
}

fn lost_atomic(_: &[Guard]) -> Result<Objections, String> {
    sanitize(&case(&with_a_race()?)?, 2, emulator)
}

fn changed_inputs(_: &[Guard]) -> Result<Objections, String> {
    Ok(parity(&case(&at_end(&honest()?, "    st.global.b16 [%q], 0;")?)?, &emulator(0))?.objections())
}

fn tested_shape(_: &[Guard]) -> Result<Objections, String> {
    let load = "    ld.param.f32 %scale_log2, [scale_log2];\n";
    let other = "    {\n    .reg .pred %other;\n    setp.ne.u32 %other, %keys, 33;\n    \
                 @%other mul.f32 %scale_log2, %scale_log2, 0f40000000;\n    }\n";
    Ok(parity(&case(&edited(&honest()?, load, &format!("{load}{other}"))?)?, &emulator(0))?.objections())
}

fn planted_nan(_: &[Guard]) -> Result<Objections, String> {
    // Not the poison, which is a NaN of its own.
    let text = storing("    or.b32 %word, %word, 0x7e00;", "%word")?;
    Ok(parity(&case(&text)?, &emulator(0))?.objections())
}

/// Weights lose all but three bits of their mantissa before they meet V.
fn narrowed() -> Result<String, String> {
    let honest = honest()?;
    let narrow = |line: &str| {
        let weights = line.trim().strip_prefix("cvt.rn.f16x2.f32 ").filter(|rest| rest.contains("%scores"));
        let register = weights.and_then(|rest| rest.split(',').next());
        register.map_or(format!("{line}\n"), |register| {
            format!("{line}\n    and.b32 {register}, {register}, 0xff80ff80;\n")
        })
    };
    let text: String = honest.lines().map(narrow).collect();
    if text.lines().count() == honest.lines().count() { Err("the kernel has no weights".into()) } else { Ok(text) }
}

fn fewer_bits(_: &[Guard]) -> Result<Objections, String> {
    Ok(parity(&case(&narrowed()?)?, &emulator(0))?.objections())
}

/// Every other warp that gets to work changes the last bits of what it stores.
fn depends_on_order(_: &[Guard]) -> Result<Objections, String> {
    let text = storing(
        "    shr.b32 %arrival, %arrival, 5;\n    and.b32 %arrival, %arrival, 1;\n    xor.b32 %word, %word, %arrival;",
        "%word",
    )?;
    let text = edited(&text, ".visible .entry", ".global .u32 arrivals = 0;\n.visible .entry")?;
    let text = edited(&text, "    .reg .b32 %block_y;", "    .reg .b32 %arrival;\n    .reg .b32 %block_y;")?;
    sanitize(&case(&at_start(&text, "    atom.global.add.u32 %arrival, [arrivals], 1;")?)?, 6, emulator)
}
