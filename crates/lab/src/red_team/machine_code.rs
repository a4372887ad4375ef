//! Machine code that is not what it is said to be: what ptxas said, nvdisasm printed and the driver counted, changed as another kernel
//! would change it.

use std::collections::BTreeMap;

use cuda::Resources;

use super::workshop::{case, debug, honest};
use super::{Attack, Place, row};
use crate::gpu::Driven;
use crate::guard::{Guard, Objections};
use crate::sass;
use crate::stages::half::Half;
use crate::stages::{Log, assemble, code, resources};

#[rustfmt::skip] // One row per line.
pub const ATTACKS: &[Attack] = &[
    row(HERE, "no-tensor-cores",   "tensor cores: the compiler printed no warning",           &[Guard::TensorCores],  |_| code_of("HMMA.16816.F32", "FFMA")),
    row(HERE, "no-loop",           "tensor cores, which stand where they run once",           &[Guard::TensorCores],  |_| code_of("BRA `(.L_x_0)", "NOP")),
    row(HERE, "copies-that-wait",  "asynchronous copies, in a comment",                       &[Guard::AsyncCopies],  |_| code_of("LDGSTS.E.BYPASS.128", "LDG.E.128")),
    row(HERE, "local-memory",      "all in registers, with an array on the stack",            &[Guard::LocalMemory],  |_| code_of("EXIT ;", "STL [R1], R5 ;")),
    row(HERE, "f16-accumulation",  "f32 accumulation, done in f16",                           &[Guard::Accumulators], |_| code_of("HMMA.16816.F32", "HMMA.16816.F16")),
    row(HERE, "fp8-inside",        "f16, multiplied in fp8",                                  &[Guard::Accumulators], |_| code_of("HMMA.16816.F32", "QMMA.16832.F32.E4M3.E4M3")),
    row(HERE, "spilled-registers", "no spills: nobody asked ptxas",                           &[Guard::Spills],       |_| resources_of(&honest()?, 8)),
    row(HERE, "other-code-runs",   "all in registers, by ptxas: the driver makes other code", &[Guard::LocalMemory],  |_| driver_code("EXIT ;", "STL [R1], R5 ;")),
    row(HERE, "driver-spills",     "no spills: ptxas was asked, and not the driver",          &[Guard::Spills],       |_| driver_resources(24)),
    row(HERE, "debug-build",       "a release build, its assertions left on",                 &[Guard::Release],      |_| resources_of(&debug()?, 0)),
];

const HERE: Place = Place::MachineCode;

const TARGET: &str = "sm_80";
const VERSION: &str = "0.0.1";

/// Machine code as it should be.
const LISTING: &str = "        .target sm_80
.L_x_0:
        /*0000*/                   LDGSTS.E.BYPASS.128 [R23], [R12.64], !P0 ;
        /*0010*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
        /*0030*/                   EXIT ;";

/// What ptxas says of a kernel with so many spilled bytes.
fn said(spilled: u32) -> Vec<String> {
    let lines = [
        "ptxas info    : 0 bytes gmem".to_string(),
        format!("ptxas info    : Compiling entry function 'attention_forward' for '{TARGET}'"),
        "ptxas info    : Function properties for attention_forward".to_string(),
        format!("    0 bytes stack frame, {spilled} bytes spill stores, 0 bytes spill loads"),
        "ptxas info    : Used 96 registers, used 1 barriers, 476 bytes cmem[0]".to_string(),
    ];
    lines.into()
}

/// The stage `assemble` of a kernel of which ptxas made this cubin.
pub fn assembled(case: &crate::Case, cubin: &str, spilled: u32) -> assemble::Report {
    let made = assemble::Assembled { target: TARGET.into(), cubin: Some(cubin.into()), said: said(spilled) };
    let entry = assemble::Entry {
        subject: case.subject(),
        target: TARGET.into(),
        version: case.kernel.module().version.to_string(),
        faults: vec![],
        assembled: vec![made],
    };
    assemble::Report { ptxas: Some(VERSION.into()), kernels: vec![entry] }
}

fn code_of(from: &str, to: &str) -> Result<Objections, String> {
    let case = case(&honest()?)?;
    let listing = BTreeMap::from([("cubin".to_string(), LISTING.replace(from, to))]);
    let report = code::run(std::slice::from_ref(&case), &assembled(&case, "cubin", 0), VERSION, &listing)?;
    Ok(report.objections())
}

fn resources_of(text: &str, spilled: u32) -> Result<Objections, String> {
    let case = case(text)?;
    Ok(resources::run(std::slice::from_ref(&case), &assembled(&case, "cubin", spilled))?.objections())
}

/// The driver's code is this one, whatever ptxas made.
fn driver_code(from: &str, to: &str) -> Result<Objections, String> {
    let subject = case(&honest()?)?.subject();
    let listing = code::gpu::Listing {
        kernel: subject.kernel.clone(),
        cubin: "cubin".into(),
        code: "code".into(),
        sass: "sass".into(),
        census: sass::census(&LISTING.replace(from, to))?,
    };
    let entry = code::gpu::Entry { subject: subject.clone(), cubin: listing.cubin.clone(), code: listing.code.clone() };
    let report = code::gpu::Report { nvdisasm: VERSION.into(), kernels: vec![entry], listings: vec![listing] };
    Ok(Objections::of_parts(Half::Ran(report).objections(&[subject])))
}

fn driver_resources(local_bytes: u32) -> Result<Objections, String> {
    let case = case(&honest()?)?;
    let resources = Resources { registers: 96, shared_bytes: 0, local_bytes, constant_bytes: 476, max_threads: 512 };
    let driven = Driven { cubin: vec![], resources: vec![resources; case.resolved.launches.len()] };
    let report = resources::gpu::run(&[&case], &[driven], (8, 0))?;
    Ok(Objections::of_parts(Half::Ran(report).objections(&[case.subject()])))
}
