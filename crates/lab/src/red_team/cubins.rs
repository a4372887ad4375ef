//! Kernels whose text makes ptxas write machine code that is not what it is said to be: real cubins, through the stages' own code.

use ptx::Target;

use super::workshop::{at_start, case, edited, honest};
use super::{Attack, Place, row};
use crate::Toolbox;
use crate::assembly;
use crate::case::Case;
use crate::code_files;
use crate::guard::{Guard, Objections};
use crate::stages::{Log, assemble, code, resources};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "sixteen-blocks",     "a full processor: it asks for so many blocks that it spills", &[Guard::Spills],      sixteen_blocks),
    row(HERE, "array-on-the-stack", "all in registers: what ptxas counts is no spill",             &[Guard::LocalMemory], array_on_the_stack),
];

const HERE: Place = Place::Assembler;

/// Sixteen blocks of 128 threads leave 32 registers to each thread.
fn sixteen_blocks(_: &[Guard]) -> Result<Objections, String> {
    let (case, toolbox) = (case(&edited(&honest()?, ".minnctapersm 2\n", ".minnctapersm 16\n")?)?, tools()?);
    Ok(resources::run(std::slice::from_ref(&case), &assembled(&case, &toolbox)?.0)?.objections())
}

/// What it keeps, and where, is known at run time alone: it is in no register, and no store is idle.
const ARRAY: &str = "    .local .align 4 .b32 array[32];
    .reg .b32 %place, %kept;
    .reg .b64 %offset, %base;
    .reg .pred %never;
    mov.u64 %base, array;
    mov.u32 %place, %tid.x;
    and.b32 %place, %place, 31;
    mul.wide.u32 %offset, %place, 4;
    add.u64 %offset, %offset, %base;
    st.local.u32 [%offset], %place;
    mov.u32 %kept, %ctaid.x;
    and.b32 %kept, %kept, 31;
    mul.wide.u32 %offset, %kept, 4;
    add.u64 %offset, %offset, %base;
    ld.local.u32 %kept, [%offset];
    setp.eq.u32 %never, %kept, 77;
    @%never ret;";

fn array_on_the_stack(_: &[Guard]) -> Result<Objections, String> {
    let (case, toolbox) = (case(&at_start(&honest()?, ARRAY)?)?, tools()?);
    let (assembled, cubins) = assembled(&case, &toolbox)?;
    let nvdisasm = toolbox.nvdisasm.as_ref().ok_or(MISSING)?;
    let disassembly = code_files::disassemble(&cubins.iter().collect::<Vec<_>>(), nvdisasm);
    Ok(code::run(std::slice::from_ref(&case), &assembled, &nvdisasm.version, &disassembly)?.objections())
}

const MISSING: &str = "needs ptxas";

/// Both tools: whoever has one has the other.
fn tools() -> Result<Toolbox, String> {
    let toolbox = Toolbox::find();
    if toolbox.ptxas.is_some() && toolbox.nvdisasm.is_some() { Ok(toolbox) } else { Err(MISSING.into()) }
}

/// The log of the stage for the kernel's own target, and the cubins.
fn assembled(case: &Case, toolbox: &Toolbox) -> Result<(assemble::Report, Vec<Vec<u8>>), String> {
    let ptxas = toolbox.ptxas.as_ref().ok_or(MISSING)?;
    let targets: [Target; 1] = [case.kernel.module().target];
    let assembly = assembly::assemble(std::slice::from_ref(case), &targets, ptxas)?;
    let report = assemble::run(std::slice::from_ref(case), &targets, Some((&ptxas.version, &assembly)));
    Ok((report, assembly.into_values().filter_map(|made| made.cubin).collect()))
}
