//! How fast the emulator's core is: warp-instructions per second of one core, without checks, with all checks, and with
//! the engine that computes lane by lane; and how long sanitized attention takes on all cores.
//!
//! A figure is the best of many launches, each a few milliseconds long; the ways take turns in one process. The best
//! tells what the engine can do: whatever else runs on the machine only ever takes time away. For speeds, a small kernel is
//! decoded once and then run several times, so that decoding does not hide what its instructions cost.
//!
//! Names choose kernels; `--check` exits 1 where a figure misses what is required.

use emulator::Emulator;
use launch::backend::{Backend, Engine, Options};
use launch::{Expr, Kernel, Memory};
use std::path::Path;
use std::time::{Duration, Instant};

/// A kernel is launched in turns until this much time has passed, and in each way this often at least. Lane by lane is so
/// much slower that it would leave the others a handful of launches: it gets no more than it must.
const TIME: Duration = Duration::from_secs(3);
const LAUNCHES: usize = 3;

/// How often speeds run a kernel of the corpus per launch.
const REPEATS: u32 = 10;

/// What is required of a kernel; figures that are not are printed all the same.
#[derive(Clone, Copy, Default)]
struct Bars {
    /// Millions of warp-instructions per second and core, without checks.
    speed: Option<f64>,
    /// Times the speed of the engine that goes lane by lane, at least.
    lanes: Option<f64>,
    /// Times the time without checks, at most.
    checks: Option<f64>,
    /// Milliseconds on two cores without checks, and with all, at most.
    milliseconds: [Option<f64>; 2],
}

const NONE: Bars = Bars { speed: None, lanes: None, checks: None, milliseconds: [None; 2] };
const MIX: Bars = Bars { speed: Some(100.0), lanes: Some(6.0), ..CHECKED };
const CHECKED: Bars = Bars { checks: Some(3.0), ..NONE };
const SANITIZED: Bars = Bars { milliseconds: [None, Some(50.0)], ..CHECKED };
const ATTENTION: Bars = Bars { milliseconds: [Some(30.0), Some(50.0)], ..CHECKED };

/// Recipes of the corpus: softmax, reduction, transposition, a product with `cp.async`, attention by Triton; and others.
const CORPUS: [(&str, Bars); 8] = [
    ("softmax_rows.sm_80", CHECKED),
    ("block_reduce.sm_80", CHECKED),
    ("transpose.sm_80", CHECKED),
    ("mma_gemm.sm_80", CHECKED),
    ("tri_fa_fwd.sm_80", CHECKED),
    ("tri_fa_fwd.sm_90a", SANITIZED),
    ("tri_softmax.sm_80", NONE),
    ("layernorm_h.sm_80", NONE),
];

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let open = |path: String| Kernel::open(&here.join(path)).unwrap();
    let mut kernels = vec![("mix", MIX, Kernel::parse("mix.ptx", include_str!("mix.ptx")).unwrap())];
    kernels.extend(CORPUS.map(|(name, bars)| (name, bars, open(format!("../../corpus/{name}.toml")))));
    kernels.push(("attention", ATTENTION, open("benches/attention.toml".into())));
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    kernels.retain(|(name, ..)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name));
    println!("M warp-instructions/s of one core, best of many launches; in brackets what is required");
    println!("{:20}{:>18}{:>14}{:>14}{:>16}{:>16}", "", "without checks", "all checks", "lane by lane", "", "checks");
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut missed = 0;
    for (name, bars, kernel) in &kernels {
        let mut kernel = kernel.clone();
        if !["mix", "attention"].contains(name) {
            kernel.recipe.launches.iter_mut().for_each(|launch| launch.repeat = Expr::from(REPEATS));
        }
        let [plain, checked, lanes] = one_core.install(|| speeds(&kernel));
        let speed = figure(plain, "", at_least(bars.speed), &mut missed);
        let times = figure(plain / lanes, "x", at_least(bars.lanes), &mut missed);
        let slower = figure(plain / checked, "x", at_most(bars.checks), &mut missed);
        println!("{name:20}{speed:>18}{checked:>14.1}{lanes:>14.2}{times:>16}{slower:>16}");
    }
    println!("\nmilliseconds of a launch, {} threads", rayon::current_num_threads());
    for (name, bars, kernel) in kernels.iter().filter(|(_, bars, _)| bars.milliseconds[1].is_some()) {
        let [plain, checked, _] = launches(kernel, 2).map(|(_, time)| time.as_secs_f64() * 1e3);
        let [plain, checked] = [(plain, bars.milliseconds[0]), (checked, bars.milliseconds[1])]
            .map(|(time, bar)| figure(time, " ms", at_most(bar), &mut missed));
        println!("{name:20}{plain:>18}{checked:>18}");
    }
    if std::env::args().any(|argument| argument == "--check") && missed > 0 {
        eprintln!("{missed} figures miss what is required");
        std::process::exit(1);
    }
}

/// A bar, and the sign that makes larger figures better.
type Bar = Option<(f64, f64)>;

fn at_least(bar: Option<f64>) -> Bar {
    bar.map(|bar| (bar, 1.0))
}

fn at_most(bar: Option<f64>) -> Bar {
    bar.map(|bar| (bar, -1.0))
}

/// A figure with its bar in brackets; one that misses is marked and counted.
fn figure(value: f64, unit: &str, bar: Bar, missed: &mut usize) -> String {
    let Some((bar, sign)) = bar else { return format!("{value:.1}{unit}      ") };
    let misses = value * sign < bar * sign;
    *missed += usize::from(misses);
    let bracket = format!("({bar})");
    format!("{value:.1}{unit} {bracket:<4}{}", if misses { "!" } else { " " })
}

/// Millions of warp-instructions per second: without checks, with all, and lane by lane without checks.
fn speeds(kernel: &Kernel) -> [f64; 3] {
    launches(kernel, 3).map(|(instructions, time)| instructions as f64 / time.as_secs_f64() / 1e6)
}

/// The instructions and the shortest time of a launch, in the first `ways` of: without checks, with all, lane by lane.
fn launches(kernel: &Kernel, ways: usize) -> [(u64, Duration); 3] {
    let plain = Options { checks: false, instruction_budget: u64::MAX, ..Options::default() };
    let options = [plain, Options { checks: true, ..plain }, Options { engine: Engine::Lanes, ..plain }];
    let mut best = [(0, Duration::MAX); 3];
    let mut loaded = Emulator.load(kernel).unwrap();
    let (mut begin, mut rounds) = (Instant::now(), 0);
    while rounds < LAUNCHES || begin.elapsed() < TIME {
        let ways = if rounds < LAUNCHES { ways } else { ways.min(2) };
        for (options, best) in options.iter().zip(&mut best).take(ways) {
            let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
            let run = Emulator.run(&mut loaded, &mut memory, options).unwrap();
            *best = (run.instructions, best.1.min(run.times.iter().sum()));
        }
        rounds += 1;
        if rounds == LAUNCHES {
            begin = Instant::now();
        }
    }
    best
}
