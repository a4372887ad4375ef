//! Multiply-adds per second of the tensor cores, on one core, with operands decoded from where instructions find them.
//!
//! `cargo bench -p emulator --bench tensor_core`; with `-- --check` it fails below what is required, with `-- NAME` it
//! runs what has this in its name. All kernels take turns in one process, and a figure is the median of its samples.

use emulator::numerics::format::{Element, Format};
use emulator::numerics::fragment::{Level, Multiplier, Precision, Register};
use emulator::numerics::tensor_core::Rule;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

const SAMPLES: usize = 21;
/// The length of a sample, in multiply-adds; the reference gets a hundredth of it.
const WORK: usize = 1 << 23;

/// `mma.sync`: registers of a warp, rows of 16 by 8 columns.
struct Sync {
    multiplier: Multiplier,
    a: Vec<[Register; 4]>,
    b: Vec<[Register; 2]>,
    c: [Register; 4],
}

impl Sync {
    fn new(level: Level, precision: Precision, bits: &mut dyn FnMut() -> u32) -> Sync {
        let mut register = || std::array::from_fn(|_| bits());
        let a = (0..8).map(|_| std::array::from_fn(|_| register())).collect();
        let b = (0..8).map(|_| std::array::from_fn(|_| register())).collect();
        Sync { multiplier: Multiplier::at(level, precision), a, b, c: [[0; 32]; 4] }
    }

    fn run(&mut self, rule: &Rule, work: usize) {
        let each = 16 * 8 * rule.length;
        for turn in 0..work / each {
            if turn % 16 == 0 {
                self.c = [[0; 32]; 4];
            }
            self.multiplier.load_left(rule.operand, black_box(&self.a[turn % 8]));
            self.multiplier.load_right(rule.operand, 1, black_box(&self.b[turn / 8 % 8]));
            self.multiplier.multiply(rule, &mut self.c);
        }
        black_box(&self.c);
    }
}

/// `wgmma` of 64 rows by 128 columns: both operands in shared memory, in rows of 128 bytes that are swizzled.
struct Group {
    multiplier: Multiplier,
    a: Vec<u8>,
    b: Vec<u8>,
    c: Vec<Vec<Register>>,
}

const ROWS: usize = 64;
const COLUMNS: usize = 128;

/// The core matrix of eight swizzled rows at 16 bytes of depth.
fn core(memory: &[u8], group: usize, step: usize) -> Register {
    let rows = &memory[group * 1024..][..1024];
    let mut core = [0; 32];
    for (line, words) in core.chunks_exact_mut(4).enumerate() {
        let bytes = &rows[line * 128 + (step ^ line) * 16..][..16];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
    core
}

impl Group {
    fn new(level: Level, precision: Precision, bits: &mut dyn FnMut() -> u32) -> Group {
        let mut memory = |rows: usize| (0..rows * 32).flat_map(|_| bits().to_le_bytes()).collect();
        let (a, b) = (memory(ROWS), memory(COLUMNS));
        Group { multiplier: Multiplier::at(level, precision), a, b, c: vec![vec![[0; 32]; COLUMNS / 2]; 4] }
    }

    fn run(&mut self, rule: &Rule, work: usize) {
        let each = ROWS * COLUMNS * rule.length;
        for turn in 0..work / each {
            if turn % 16 == 0 {
                self.c.iter_mut().for_each(|c| c.fill([0; 32]));
            }
            let step = turn % 4 * 2;
            let mut columns = [[0; 32]; COLUMNS / 4];
            for (place, to) in columns.iter_mut().enumerate() {
                *to = core(black_box(&self.b), place / 2, step + place % 2);
            }
            self.multiplier.load_right(rule.operand, COLUMNS / 8, &columns);
            for (warp, c) in self.c.iter_mut().enumerate() {
                let rows = [0, 1, 2, 3].map(|place| core(&self.a, 2 * warp + place % 2, step + place / 2));
                self.multiplier.load_left(rule.operand, &rows);
                self.multiplier.multiply(rule, c);
            }
        }
        black_box(&self.c);
    }
}

/// The rule, element by element.
struct Reference {
    a: Vec<Element>,
    b: Vec<Element>,
    c: u32,
}

impl Reference {
    fn new(rule: &Rule, bits: &mut dyn FnMut() -> u32) -> Reference {
        let mut elements = || (0..rule.length).map(|_| rule.operand.decode(bits())).collect();
        Reference { a: elements(), b: elements(), c: 0 }
    }

    fn run(&mut self, rule: &Rule, work: usize) {
        for _ in 0..work / rule.length {
            self.c = rule.dot(black_box(&self.a), black_box(&self.b), 0x3f80_0000);
        }
        black_box(self.c);
    }
}

/// Elements around one, in all the places of a word.
fn source(format: Format) -> impl FnMut() -> u32 {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let width = format.sign().ilog2() + 1;
    move || {
        (0..32 / width).fold(0, |word, part| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let random = (state >> 20) as u32;
            let shift = format.fraction_bits + format.ignored_bits;
            let one = (format.bias() as u32) << shift;
            let element =
                (one - ((random % 4) << shift) + (random >> 8 & ((1 << shift) - 1))) | random >> 31 << (width - 1);
            word | element << (part * width)
        })
    }
}

/// What the thread has used, so that neighbours on the machine do not count.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn processor_time() -> Duration {
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    const THREAD_CPU_TIME: i32 = 3; // CLOCK_THREAD_CPUTIME_ID
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the function of the C library fills the structure it is given.
    unsafe { clock_gettime(THREAD_CPU_TIME, &mut time) };
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

enum Kernel {
    Sync(Box<Sync>),
    Group(Box<Group>),
    Reference(Reference),
}

struct Row {
    name: String,
    rule: Rule,
    kernel: Kernel,
    /// In 10^9 multiply-adds per second.
    required: Option<f64>,
    samples: Vec<f64>,
}

impl Row {
    fn sample(&mut self) {
        let work = if matches!(self.kernel, Kernel::Reference(_)) { WORK / 100 } else { WORK };
        let start = processor_time();
        match &mut self.kernel {
            Kernel::Sync(sync) => sync.run(&self.rule, work),
            Kernel::Group(group) => group.run(&self.rule, work),
            Kernel::Reference(reference) => reference.run(&self.rule, work),
        }
        self.samples.push(work as f64 / (processor_time() - start).as_secs_f64() / 1e9);
    }

    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2]
    }
}

/// What is required of f16 and bf16 with the widest instructions: `mma.sync`, then `wgmma`.
const REQUIRED: [(Precision, [f64; 2]); 2] = [(Precision::Exact, [3.0, 6.0]), (Precision::Fast, [10.0, 25.0])];

fn rows() -> Vec<Row> {
    let rules = [
        ("f16", Rule::F16_K16, true),
        ("bf16", Rule::BF16_K16, true),
        ("tf32", Rule::TF32_K8, true),
        ("f16 into f16", Rule::F16_K16_F16, true),
        ("e4m3", Rule::E4M3_K32, false),
    ];
    let mut rows = vec![];
    for (name, rule, has_sync) in rules {
        let mut bits = source(rule.operand);
        let first = rows.len();
        for (index, level) in Level::available().into_iter().enumerate() {
            for (precision, [sync, group]) in REQUIRED {
                let row = |shape: &str, kernel, required| Row {
                    name: format!("{shape} {name}, {precision:?}, {}", level.name()),
                    rule,
                    kernel,
                    required: (index == 0 && ["f16", "bf16"].contains(&name)).then_some(required),
                    samples: vec![],
                };
                if has_sync {
                    rows.push(row("mma.sync", Kernel::Sync(Box::new(Sync::new(level, precision, &mut bits))), sync));
                }
                rows.push(row("wgmma   ", Kernel::Group(Box::new(Group::new(level, precision, &mut bits))), group));
            }
        }
        rows[first..].sort_by_key(|row: &Row| row.name.starts_with("wgmma"));
        let kernel = Kernel::Reference(Reference::new(&rule, &mut bits));
        rows.push(Row { name: format!("Rule::dot {name}"), rule, kernel, required: None, samples: vec![] });
    }
    rows
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let mut names = arguments.iter().filter(|argument| !argument.starts_with("--"));
    let mut rows = rows();
    if let Some(name) = names.next() {
        rows.retain(|row| row.name.contains(name.as_str()));
    }
    for _ in 0..SAMPLES {
        rows.iter_mut().for_each(Row::sample);
    }
    println!("10^9 multiply-adds per second, median of {SAMPLES}");
    let mut below = false;
    for row in &mut rows {
        let median = row.median();
        let required = row.required.map_or(String::new(), |required| format!("   required {required}"));
        println!("{:44} {median:8.3}{required}", row.name);
        below |= row.required.is_some_and(|required| median < required);
    }
    if check && below { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
