//! Random programs that are valid PTX, made from the form table, with the recipe to run them.
//!
//! A program is a string of bytes: eight for the launch, then eight per instruction, which choose its form, its spelling
//! and its operands. So a change of a few bytes is a change of a few instructions, for a fuzzer and for a proptest that
//! makes a failing program smaller. Addresses are good most of the time, so that programs get far; the rest are wild.

#[path = "../../../ptx/tests/support/instruction.rs"]
mod instruction;

use emulator::{Emulator, Error};
use instruction::{Picks, REGISTERS, STEMS};
use launch::backend::{Backend, Engine, Options, Run};
use launch::{Kernel, Memory};
use ptx::Op;
use ptx::forms::FORMS;
use std::sync::LazyLock;

/// Bytes that make one instruction.
pub const CHUNK: usize = 8;

/// Instructions of one program.
pub const MAX_LINES: usize = 48;

/// Instructions that warps may execute: enough for every line of every warp and a few rounds of loops.
const BUDGET: u64 = 4_000;

/// The spellings of each row that runs.
static SPELLINGS: LazyLock<Vec<(Op, Vec<String>)>> = LazyLock::new(|| {
    let runs = FORMS.iter().filter(|form| emulator::executes(form));
    runs.map(|form| (form.op, form.spelling.examples())).collect()
});

/// Blocks: part of a warp, one, more than one, a warpgroup.
const BLOCKS: &[&str] = &["[1, 1, 1]", "[32, 1, 1]", "[33, 1, 1]", "[8, 4, 2]", "[128, 1, 1]", "[128, 1, 1]"];

/// Grid and cluster.
const GRIDS: &[(&str, &str)] =
    &[("[1, 1, 1]", "[1, 1, 1]"), ("[2, 1, 1]", "[1, 1, 1]"), ("[2, 1, 1]", "[2, 1, 1]"), ("[2, 2, 1]", "[1, 2, 1]")];

/// Tensor maps of 1 to 5 dimensions over the buffer.
const MAPS: &[&str] = &[
    "dims = [1024], strides = [], box = [64]",
    "dims = [32, 32], strides = [128], box = [32, 8], swizzle = \"128B\"",
    "dims = [16, 8, 8], strides = [64, 512], box = [16, 4, 2], swizzle = \"64B\"",
    "dims = [8, 4, 4, 8], strides = [32, 128, 512], box = [8, 2, 2, 1], swizzle = \"32B\"",
    "dims = [4, 4, 4, 4, 4], strides = [16, 64, 256, 1024], box = [4, 4, 1, 1, 2]",
];

/// Where registers begin: what arithmetic, counts and descriptors trip over.
const WORDS: &[u64] = &[0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 128, 255, 1 << 15, 0x7fff_ffff, 1 << 31, 0xffff_ffff];

/// A program as a complete case.
pub fn text(bytes: &[u8]) -> String {
    let (launch, lines) = bytes.split_at(bytes.len().min(CHUNK));
    let mut picks = Picks(number(launch));
    let lines: Vec<&[u8]> = lines.chunks(CHUNK).take(MAX_LINES).collect();
    let mut text = recipe(&mut picks) + HEAD;
    text += &begin(&mut picks, lines.len() as u64);
    for (index, chunk) in lines.iter().enumerate() {
        text += &format!("line{index}:\n{}", line(chunk, lines.len() as u64));
    }
    text + "end:\n    ret;\n}\n"
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

fn recipe(picks: &mut Picks) -> String {
    let (grid, cluster) = picks.of(GRIDS);
    format!(
        "//@ [buffer.data]\n//@ type = \"f32\"\n//@ shape = [1024]\n//@ init = \"normal(1.0)\"\n//@ [[launch]]\n//@ grid = {grid}\n\
         //@ cluster = {cluster}\n//@ block = {}\n//@ args = [{{ map = \"data\", {} }}, {{ buffer = \"data\" }}]\n",
        picks.of(BLOCKS),
        picks.of(MAPS),
    )
}

/// The function calls itself as often as its argument says.
const HEAD: &str = "\
.version 9.0
.target sm_90a
.address_size 64
.global .align 128 .b8 G[4096];
.shared .align 128 .b8 S[8192];
.const .align 16 .b8 C[256];
.func (.param .b32 result) callee(.param .b64 first, .param .b32 second)
{
    .reg .b32 %r;
    .reg .b64 %d;
    .reg .pred %p;
    .param .b64 one;
    .param .b32 two;
    .param .b32 three;
    ld.param.b64 %d, [first];
    ld.param.b32 %r, [second];
    setp.eq.u32 %p, %r, 0;
    @%p bra done;
    sub.u32 %r, %r, 1;
    st.param.b64 [one], %d;
    st.param.b32 [two], %r;
    call (three), callee, (one, two);
    ld.param.b32 %r, [three];
done:
    st.param.b32 [result], %r;
    ret;
}
.visible .entry program(.param .align 64 .b8 parameter[128], .param .u64 pointer)
{
    .local .align 16 .b8 L[256];
    .reg .b32 %lane;
    .reg .b64 %place;
    .param .b32 taken;
    .param .align 16 .b8 given[64];
    .param .b64 argument;
";

/// Declares and fills the registers.
fn begin(picks: &mut Picks, lines: u64) -> String {
    let mut text = String::new();
    for (stem, ty, _) in STEMS {
        text += &format!("    .reg {ty} {stem}<{REGISTERS}>;\n");
        (0..REGISTERS).for_each(|number| text += &format!("    {}\n", fill(stem, ty.bits(), number, picks)));
    }
    text += "    mov.u32 %lane, %laneid;\n    mul.wide.u32 %place, %lane, 16;\n    st.param.b64 [argument], %d0;\n";
    text += "type: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _);\n";
    text + &format!("table: .branchtargets end, {};\n", label(picks, lines))
}

fn fill(stem: &str, bits: u32, number: u64, picks: &mut Picks) -> String {
    let word = picks.of(WORDS) << (picks.below(2) * picks.below(32));
    match bits {
        1 => format!("mov.pred {stem}{number}, {};", word & 1),
        16 => format!("mov.b16 {stem}{number}, {};", word & 0xffff),
        32 if picks.one_in(3) => format!("mov.b32 {stem}{number}, %tid.x;"),
        32 => format!("mov.b32 {stem}{number}, {};", word & 0xffff_ffff),
        _ => format!("mov.b64 {stem}{number}, {word};"),
    }
}

fn label(picks: &mut Picks, lines: u64) -> String {
    let at = picks.below(lines + 1);
    if at == lines { "end".into() } else { format!("line{at}") }
}

/// One instruction with what it needs before it.
fn line(chunk: &[u8], lines: u64) -> String {
    let number = number(chunk);
    let (op, spellings) = &SPELLINGS[(number >> 48) as usize % SPELLINGS.len()];
    let mnemonic = &spellings[(number >> 32) as usize % spellings.len()];
    let mut picks = Picks(number);
    let written = instruction::instruction(*op, mnemonic, &mut picks);
    let written = if mnemonic.starts_with("bra") { written.replace("end", &label(&mut picks, lines)) } else { written };
    let mut text = String::new();
    for base in written.split('[').skip(1).filter_map(|rest| rest.split([']', '+', ' ', ',']).next()) {
        if base.starts_with('%') && !picks.one_in(16) {
            text += &address(base, mnemonic, &mut picks);
        }
    }
    text + "    " + &written + "\n"
}

/// Puts a good address into a register, of the space that the instruction asks for.
fn address(register: &str, mnemonic: &str, picks: &mut Picks) -> String {
    let offset = 128 * (1 + picks.below(6));
    let text = match register {
        "%r0" | "%u1" => {
            let lanes = ["", "    mad.lo.u32 @, %lane, 16, @;\n"];
            format!("    mov.u32 @, S;\n    add.u32 @, @, {offset};\n{}", picks.of(&lanes))
        }
        "%r1" => format!("    mov.u32 @, {};\n", 64 * picks.below(3)),
        "%d1" => format!("    mov.u64 @, S;\n    add.u64 @, @, {offset};\n"),
        "%d3" => "    mov.u64 @, parameter;\n".into(),
        _ if mnemonic.contains(".const") => "    mov.u64 @, C;\n    add.u64 @, @, 64;\n".into(),
        _ if mnemonic.contains(".local") => "    mov.u64 @, L;\n    add.u64 @, @, 64;\n".into(),
        _ => generic(mnemonic, offset, picks),
    };
    text.replace('@', register)
}

/// An address of anywhere; where the mnemonic says global, of global memory.
fn generic(mnemonic: &str, offset: u64, picks: &mut Picks) -> String {
    let lanes = *picks.of(&["", "    add.u64 @, @, %place;\n"]);
    let global = format!("    mov.u64 @, G;\n    add.u64 @, @, {offset};\n{lanes}");
    let buffer = format!("    ld.param.u64 @, [pointer];\n    add.u64 @, @, {offset};\n{lanes}");
    let map = "    mov.u64 @, parameter;\n    cvta.param.u64 @, @;\n".to_string();
    let shared = format!("    mov.u64 @, S;\n    add.u64 @, @, {offset};\n    cvta.shared.u64 @, @;\n{lanes}");
    let all = match mnemonic {
        _ if mnemonic.contains("tensor") => [map.clone(), map.clone(), map, buffer],
        _ if mnemonic.contains(".global") => [global.clone(), global, buffer.clone(), buffer],
        _ if mnemonic.contains("mbarrier") => [shared.clone(), shared.clone(), shared, global],
        _ => [global, buffer, map, shared],
    };
    picks.of(&all).clone()
}

/// The program as a kernel, if the verifier has nothing against it.
pub fn kernel(bytes: &[u8]) -> Option<Kernel> {
    let text = text(bytes);
    let kernel = Kernel::parse("program.ptx", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    ptx::verify(&kernel.parsed).is_empty().then_some(kernel)
}

/// Runs it with all checks: what it found and what it left in memory.
pub fn run(kernel: &Kernel, seed: u64, engine: Engine) -> Result<(Run, Memory), Error> {
    let mut loaded = Emulator.load(kernel)?;
    let mut memory = Memory::new(loaded.resolved(), 0)?;
    let options = Options { seed, instruction_budget: BUDGET, engine, ..Options::default() };
    let run = Emulator.run(&mut loaded, &mut memory, &options)?;
    Ok((run, memory))
}
