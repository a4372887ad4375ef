//! How fast the emulator's core is: warp-instructions per second of one core, without checks, with all checks, and with
//! the engine that computes lane by lane; all in one process, in turns. Names choose kernels; `--check` exits 1 below what is required.

use emulator::Emulator;
use launch::backend::{Backend, Engine, Options};
use launch::{Kernel, Memory};
use std::path::Path;
use std::time::{Duration, Instant};

/// Samples of each figure, of which the median counts.
const SAMPLES: usize = 9;
/// A sample runs the kernel until this much time has passed.
const SAMPLE: Duration = Duration::from_millis(100);

/// What the mix must reach: millions of warp-instructions per second, how many times the engine that goes lane by
/// lane, and at most how many times slower with all checks.
const REQUIRED: (f64, f64, f64) = (100.0, 6.0, 3.0);

/// The attention kernel must take at most so many milliseconds on two cores, without checks.
const ATTENTION: f64 = 30.0;

/// Kernels beside the mix, by their recipe in the corpus.
const REAL: [&str; 4] = ["softmax_rows.sm_80", "tri_softmax.sm_80", "layernorm_h.sm_80", "tri_fa_fwd.sm_80"];

fn main() {
    let mut kernels = vec![("mix".to_string(), Kernel::parse("mix.ptx", include_str!("mix.ptx")).unwrap())];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    kernels.extend(REAL.map(|name| (name.into(), Kernel::open(&corpus.join(format!("{name}.toml"))).unwrap())));
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    kernels.push(("attention".into(), Kernel::open(&benches.join("attention.toml")).unwrap()));
    kernels.retain(|(name, _)| wanted.is_empty() || wanted.contains(name));
    println!("M warp-instructions/s, one core, median of {SAMPLES}; in brackets what the mix requires");
    println!(
        "{:20} {:>16} {:>16} {:>16} {:>12} {:>12}",
        "", "without checks", "all checks", "lane by lane", "", "checks"
    );
    let one_core = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut met = true;
    for (name, kernel) in &kernels {
        let [plain, checked, lanes] = one_core.install(|| measure(kernel));
        let (times, slower) = (plain / lanes, plain / checked);
        let needed = if name == "mix" { ["(100)", "(6)", "(3)"] } else { [""; 3] };
        println!(
            "{name:20} {plain:>10.1} {:5} {checked:>16.1} {lanes:>16.2} {times:>7.1}x {:3} {slower:>7.2}x {:3}",
            needed[0], needed[1], needed[2]
        );
        met &= name != "mix" || (plain >= REQUIRED.0 && times >= REQUIRED.1 && slower <= REQUIRED.2);
        if name == "attention" {
            met &= attention(kernel);
        }
    }
    if std::env::args().any(|argument| argument == "--check") && !met {
        eprintln!("the mix is below what is required");
        std::process::exit(1);
    }
}

/// Prints how long a launch of the attention kernel takes by the clock; true if that is little enough.
fn attention(kernel: &Kernel) -> bool {
    let options = Options { checks: false, instruction_budget: u64::MAX, ..Options::default() };
    let [plain, checked] = [false, true].map(|checks| milliseconds(kernel, &Options { checks, ..options }));
    println!("{:20} {plain:>10.1} ms ({ATTENTION}) {checked:>11.1} ms", "");
    plain <= ATTENTION
}

/// The median.
fn milliseconds(kernel: &Kernel, options: &Options) -> f64 {
    let mut loaded = Emulator.load(kernel).unwrap();
    let mut one = || {
        let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
        let run = Emulator.run(&mut loaded, &mut memory, options).unwrap();
        run.times.iter().sum::<Duration>().as_secs_f64() * 1e3
    };
    let mut all: Vec<f64> = (0..SAMPLES).map(|_| one()).collect();
    all.sort_by(f64::total_cmp);
    all[SAMPLES / 2]
}

/// Millions of warp-instructions per second: without checks, with all, and lane by lane without checks.
fn measure(kernel: &Kernel) -> [f64; 3] {
    let plain = Options { checks: false, instruction_budget: u64::MAX, ..Options::default() };
    let ways = [plain, Options { checks: true, ..plain }, Options { engine: Engine::Lanes, ..plain }];
    let mut samples = [const { vec![] }; 3];
    for _ in 0..SAMPLES {
        for (way, samples) in ways.iter().zip(&mut samples) {
            samples.push(sample(kernel, way));
        }
    }
    samples.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[SAMPLES / 2]
    })
}

fn sample(kernel: &Kernel, options: &Options) -> f64 {
    let mut loaded = Emulator.load(kernel).unwrap();
    let (mut instructions, mut time) = (0, Duration::ZERO);
    let (begin, used) = (Instant::now(), processor_time());
    while instructions == 0 || begin.elapsed() < SAMPLE {
        let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
        let run = Emulator.run(&mut loaded, &mut memory, options).unwrap();
        instructions += run.instructions;
        time += run.times.iter().sum::<Duration>();
    }
    // Of the time that passed, only what this thread ran counts: others may use the machine.
    let share = match (used, processor_time()) {
        (Some(before), Some(after)) => (after - before).as_secs_f64() / begin.elapsed().as_secs_f64(),
        _ => 1.0,
    };
    instructions as f64 / (time.as_secs_f64() * share.min(1.0)) / 1e6
}

/// How long this thread has run, where the system tells.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}
