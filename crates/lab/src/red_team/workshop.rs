//! An honest kernel, small enough to be run hundreds of times, and the means to change it.

use launch::Kernel;
use rayon::prelude::*;

use crate::Settings;
use crate::case::Case;
use crate::guard::Objections;
use crate::harness::Rig;
use crate::stages::{Log, parity, sanitize, stress};

/// Two blocks of queries, both ragged, two heads and two sequences: there is something to leave out.
const PROBLEM: &str = "f16 B2 H2 Sq17 Sk33 D16 full";
/// The configuration with the smallest blocks.
const CONFIG: u32 = 5;
const DATA_SEED: u64 = 0;

/// The text of the kernel, a complete case.
pub fn honest() -> Result<String, String> {
    text(false)
}

/// The same with the assertions of a debug build.
pub fn debug() -> Result<String, String> {
    text(true)
}

fn text(debug: bool) -> Result<String, String> {
    let words = |error: attention::Error| error.to_string();
    let config = attention::configs::Config::by_id(CONFIG).ok_or("there is no such configuration")?;
    let config = attention::configs::Config { debug, ..config };
    let problem = PROBLEM.parse().map_err(words)?;
    Ok(attention::kernels::kernel(&problem, &config).map_err(words)?.parsed.source.text)
}

pub fn case(text: &str) -> Result<Case, String> {
    let kernel = Kernel::parse("attack.ptx", text).map_err(|error| error.to_string())?;
    Case::new(kernel).map_err(|error| error.to_string())
}

/// One part replaced, which must be there: an attack that changes nothing is none.
pub fn edited(text: &str, from: &str, to: &str) -> Result<String, String> {
    if !text.contains(from) {
        return Err(format!("the kernel has no `{from}` any more"));
    }
    Ok(text.replacen(from, to, 1))
}

/// Statements before the first of the kernel.
pub fn at_start(text: &str, statements: &str) -> Result<String, String> {
    edited(text, "    ld.param", &format!("    {{\n{statements}\n    }}\n    ld.param"))
}

/// Statements after its last, of the first thread of the first block alone.
pub fn at_end(text: &str, statements: &str) -> Result<String, String> {
    let first = "    .reg .b32 %place, %part;\n    .reg .pred %other;\n    mov.u32 %place, %tid.x;\n    \
                 mov.u32 %part, %ctaid.x;\n    or.b32 %place, %place, %part;\n    mov.u32 %part, %ctaid.y;\n    \
                 or.b32 %place, %place, %part;\n    mov.u32 %part, %ctaid.z;\n    or.b32 %place, %place, %part;\n    \
                 setp.ne.u32 %other, %place, 0;\n    @%other ret;";
    edited(text, "    ret;\n}", &format!("    {{\n{first}\n{statements}\n    }}\n    ret;\n}}"))
}

/// A counter of threads that came here in this and earlier calls: `%call` is how many calls were complete.
pub fn with_calls(text: &str, statements: &str) -> Result<String, String> {
    let case = case(text)?;
    let launch = case.resolved.launches.first().ok_or("the recipe launches nothing")?;
    let threads = launch.grid.iter().product::<u32>() * launch.block.iter().product::<u32>();
    let text = edited(text, ".visible .entry", ".global .u32 calls = 0;\n.visible .entry")?;
    let count = format!(
        "    .reg .b32 %call;\n    .reg .pred %late;\n    atom.global.add.u32 %call, [calls], 1;\n    \
                         div.u32 %call, %call, {threads};\n    setp.ge.u32 %late, %call, 1;"
    );
    at_start(&text, &format!("{count}\n{statements}"))
}

/// What the stage `parity` has against a kernel.
pub fn parity(case: &Case, rig: &dyn Rig) -> Result<parity::Report, String> {
    Ok(parity::Report { kernels: vec![parity::examine(case, DATA_SEED, rig, &|| ())?] })
}

/// What the stage `sanitize` has against a kernel; `rig` by seed.
pub fn sanitize<R: Rig>(case: &Case, seeds: u64, rig: impl Fn(u64) -> R) -> Result<Objections, String> {
    let run = |seed| Ok(sanitize::examine(case, DATA_SEED, seed, &rig(seed))?.0);
    let runs = (0..seeds).map(run).collect::<Result<_, String>>()?;
    let kernels = vec![sanitize::Entry { subject: case.subject(), runs }];
    Ok(sanitize::Report { kernels, timeline: None }.objections())
}

/// What the stage `stress` has against a kernel. Faults are injected whatever launches showed, so that launches are judged alone.
pub fn stress(case: Case) -> Result<Objections, String> {
    let settings = Settings { seeds: vec![0, 1], rounds: 1, mutation_budget: 0, ..Settings::default() };
    let shown = |schedule| stress::shown(&case, schedule, &settings);
    let runs = stress::schedules(&settings).into_par_iter().map(shown).collect::<Result<_, _>>()?;
    let mut report = stress::Report::new(std::slice::from_ref(&case), runs);
    report.mutations.extend(stress::mutate(case.kernel.hash(), &[&case], &settings, &|| false)?);
    Ok(report.objections())
}
