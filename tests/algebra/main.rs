//! Attention kernels on exact numbers (`--algebra`): every tiling, mask, type and schedule must give the bits of the
//! formula. `cargo test --test algebra -- --nocapture` prints the table.

mod formula;

use attention::configs::{CONFIGS, Config, HOPPER, Heads};
use attention::problem::{DType, Layout};
use attention::visibility::MaskKind;
use attention::{Problem, kernels};
use emulator::Emulator;
use formula::{Buffers, Formula};
use launch::backend::{Backend, Options};
use launch::{Kernel, Memory, Recipe, hash};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Bytes as late as they may; at once, the last warp first; everything at random.
const SEEDS: [u64; 3] = [0, 3, 4];

const MASKS: [MaskKind; 4] =
    [MaskKind::None, MaskKind::CausalBottomRight, MaskKind::CausalTopLeft, MaskKind::Window { left: 20, right: 2 }];

/// A kernel and what it should compute.
struct Case {
    name: String,
    kernel: Kernel,
    formula: Formula,
}

fn run(kernel: &Kernel, seed: u64) -> Memory {
    let options = Options { algebra: true, checks: false, seed, ..Options::default() };
    let mut loaded = Emulator.load(kernel).unwrap();
    let mut memory = Memory::new(loaded.resolved(), 0).unwrap();
    Emulator.run(&mut loaded, &mut memory, &options).unwrap();
    memory
}

/// Runs the cases under every schedule, prints a line each, and returns the names of those that are not equal.
fn compare(cases: &[Case]) -> Vec<String> {
    let runs: Vec<(&Case, u64)> = cases.iter().flat_map(|case| SEEDS.map(|seed| (case, seed))).collect();
    let memories: Vec<Memory> = runs.par_iter().map(|(case, seed)| run(&case.kernel, *seed)).collect();
    let mut unequal = vec![];
    for (case, memories) in cases.iter().zip(memories.chunks(SEEDS.len())) {
        let equal = memories.iter().filter(|memory| case.formula.differences(memory) == 0).count();
        let output = memories[0].buffer(case.formula.buffers.o).unwrap();
        let digest = &hash::of(&output.contents)[..16];
        let what = match equal == memories.len() {
            true => "equal".to_string(),
            false => format!("{} elements differ", case.formula.differences(&memories[0])),
        };
        println!("{:<40} {:<44} {} schedules  {digest}  {what}", case.name, case.formula.to_string(), memories.len());
        unequal.extend((equal < memories.len()).then(|| case.name.clone()));
    }
    unequal
}

fn ours(problem: &Problem) -> Vec<Case> {
    cases(problem, CONFIGS)
}

fn cases(problem: &Problem, configs: impl IntoIterator<Item = Config>) -> Vec<Case> {
    let case = |config: Config| Case {
        name: format!("config {} {:?} {} in {}", config.id, config.math, problem.dtype(), config.splits),
        kernel: kernels::kernel(problem, &config).unwrap(),
        formula: Formula::of(problem, Buffers::LOWER),
    };
    configs.into_iter().filter(|config| config.serves(problem)).map(case).collect()
}

/// Ragged and even lengths, more queries than keys and fewer, rows that see no key, groups of heads.
#[test]
fn our_configs_compute_the_formula() {
    let mut cases = vec![];
    for (queries, keys) in [(97, 161), (128, 128), (1, 130), (70, 5)] {
        for mask in MASKS {
            let builder = Problem::builder().batch(1).heads(2).kv_heads(1).queries(queries).keys(keys);
            cases.extend(ours(&builder.mask(mask).build().unwrap()));
        }
    }
    for (layout, dtype) in [(Layout::Bshd, DType::F16), (Layout::Bhsd, DType::Bf16)] {
        let builder = Problem::builder().batch(2).heads(2).queries(65).keys(100).layout(layout).dtype(dtype);
        cases.extend(ours(&builder.mask(MaskKind::CausalBottomRight).build().unwrap()));
    }
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// Heads above 128 columns, and values with columns of their own.
#[test]
fn heads_of_any_width_compute_the_formula() {
    let problems = [
        "f16 B1 H2/1 Sq35 Sk70 D136 causal",
        "bf16 B1 H1 Sq65 Sk33 D192 full",
        "f16 B1 H2/1 Sq33 Sk70 D256 causal",
        "f16 B1 H2/1 Sq35 Sk70 D192/128 causal",
        "bf16 B1 H2/1 Sq35 Sk70 D64/128 full bshd",
        "f16 B1 H2/1 Sq35 Sk70 D40/72 window20/2",
        "f16 B1 H1 Sq35 Sk70 D72/40 causal-top-left",
        "f16 B1 H1 Sq35 Sk70 D16/256 full",
        "f16 B1 H1 Sq35 Sk70 D256/16 causal",
    ];
    let cases: Vec<Case> = problems.iter().flat_map(|problem| ours(&problem.parse().unwrap())).collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// On plain cores: every mask, both types and layouts, narrow, wide and unequal heads, rows that see no key.
#[test]
fn scalar_configs_compute_the_formula() {
    let problems = [
        "f16 B1 H2/1 Sq35 Sk70 D64 full",
        "bf16 B1 H2 Sq65 Sk97 D64 causal bshd",
        "f16 B1 H1 Sq35 Sk70 D128 causal-top-left",
        "f16 B1 H1 Sq35 Sk70 D40/72 window20/2",
        "f16 B1 H1 Sq70 Sk5 D16 causal",
    ];
    let scalar = || CONFIGS.into_iter().filter_map(Config::scalar);
    let cases: Vec<Case> = problems.iter().flat_map(|problem| cases(&problem.parse().unwrap(), scalar())).collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// Joined in another kernel, the parts are what one block finds: to the bit.
#[test]
fn shares_of_the_keys_compute_the_formula() {
    let problems = [
        "f16 B1 H2/1 Sq1 Sk449 D64 full",
        "f16 B1 H2/1 Sq97 Sk161 D64 causal",
        "bf16 B2 H1 Sq35 Sk300 D64 window150/3 bshd",
        "f16 B1 H1 Sq70 Sk5 D64 causal",
        "bf16 B1 H1 Sq3 Sk161 D40/72 full",
        "f16 B1 H1 Sq17 Sk161 D256 causal",
    ];
    let each = |problem: &&str| {
        [2, 3, 7].map(|splits| cases(&problem.parse().unwrap(), CONFIGS.map(|config| Config { splits, ..config })))
    };
    let cases: Vec<Case> = problems.iter().flat_map(each).flatten().collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// Groups of heads that do not divide a tile, whole and in shares.
#[test]
fn heads_that_share_keys_compute_the_formula_together() {
    let problems = [
        "f16 B2 H8/2 Sq1 Sk300 D64 full",
        "f16 B1 H7/1 Sq9 Sk161 D128 causal",
        "bf16 B1 H6/2 Sq40 Sk161 D40/72 window20/2 bshd",
        "f16 B1 H3/1 Sq30 Sk7 D64 causal-top-left",
    ];
    let together = || CONFIGS.into_iter().filter(|config| config.heads == Heads::Together);
    let each = |problem: &&str| {
        [1, 3].map(|splits| cases(&problem.parse().unwrap(), together().map(|config| Config { splits, ..config })))
    };
    let cases: Vec<Case> = problems.iter().flat_map(each).flatten().collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// For sm_90a, whole and in shares: the same bits as the others.
#[test]
fn configs_for_hopper_compute_the_formula() {
    let problems = [
        "f16 B1 H2/1 Sq97 Sk161 D64 full",
        "f16 B1 H2/1 Sq300 Sk300 D64 causal",
        "bf16 B2 H2 Sq65 Sk100 D64 causal bshd",
        "f16 B1 H1 Sq70 Sk5 D64 causal-top-left",
        "f16 B1 H2 Sq300 Sk400 D64 window20/2",
        "bf16 B1 H1 Sq130 Sk270 D128 causal",
        "f16 B1 H1 Sq35 Sk70 D40/72 full",
        "f16 B1 H1 Sq35 Sk70 D72/40 causal",
        "f16 B1 H2/1 Sq130 Sk90 D256 causal",
        "bf16 B1 H1 Sq97 Sk230 D192/128 full",
    ];
    let each = |problem: &&str| {
        [1, 3].map(|splits| cases(&problem.parse().unwrap(), HOPPER.map(|config| Config { splits, ..config })))
    };
    let cases: Vec<Case> = problems.iter().flat_map(each).flatten().collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

fn corpus(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(file)
}

fn hopper(name: &str) -> Case {
    let kernel = Kernel::open(&corpus(&format!("{name}.sm_90a.toml"))).unwrap();
    let problem = lab::Case::new(kernel.clone()).unwrap().problem;
    Case { name: name.into(), kernel, formula: Formula::of(&problem, Buffers::LOWER) }
}

/// Tiles of 64, 80 and 128 keys, one to four stages, 64 to 256 queries of a block, persistent and not, values from
/// shared memory and through registers: one formula.
#[test]
fn hopper_kernels_compute_the_formula() {
    let names = [
        "hop_f64_n64w2",
        "hop_f64_n128w1",
        "hop_f64_n128w1_wide",
        "hop_f64_n64w4",
        "hop_f64_n64w4_wide",
        "hop_f64_n64w4v",
        "hop_f64_n64w4v_wide",
        "hop_f128_n128",
        "hop_f128_n128v",
        "hop_f128_n80w3",
        "hop_c64_n128w1",
        "hop_c64_n64w4",
        "hop_c64_n64w4s",
        "hop_c64_n64w4s_wide",
        "hop_c128_n128",
        "hop_c128_n64s",
        "hop_c128_n64s_wide",
        "hop_b64_n64w4",
        "hop_b128_n128",
        "hop_bc64_n64w4s",
        "hop_bc128_n128",
    ];
    let cases: Vec<Case> = names.into_iter().map(hopper).collect();
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// A kernel of the corpus without a contract: heads, rows and columns of its tensors.
fn other(file: &str, [heads, rows, dim]: [u32; 3], mask: MaskKind, buffers: Buffers) -> Case {
    let dtype = if file.starts_with("fa") || file.contains("sm_75") { DType::F16 } else { DType::Bf16 };
    let builder = Problem::builder().batch(1).heads(heads).queries(rows).keys(rows).head_dim(dim);
    let problem = builder.mask(mask).dtype(dtype).build().unwrap();
    let kernel = Kernel::open(&corpus(&format!("{file}.toml"))).unwrap();
    Case { name: file.into(), kernel, formula: Formula::of(&problem, buffers) }
}

/// Triton and nvcc, with `mma.sync`, `wgmma`, `wmma` and without tensor cores. Their logarithms are polynomials, or none.
#[test]
fn kernels_by_triton_and_nvcc_compute_the_formula() {
    let (full, causal) = (MaskKind::None, MaskKind::CausalTopLeft);
    let triton = Buffers { lse: None, ..Buffers::LOWER };
    let without_logarithm = Buffers { lse: None, ..Buffers::UPPER };
    let mut cases = vec![];
    for target in ["sm_75", "sm_80", "sm_90a"] {
        cases.push(other(&format!("tri_fa_fwd.{target}"), [2, 80, 64], full, triton));
        cases.push(other(&format!("tri_fa_fwd_causal.{target}"), [2, 80, 64], causal, triton));
        cases.push(other(&format!("fa_scalar_c0_fm.{target}"), [2, 72, 64], full, Buffers::UPPER));
        cases.push(other(&format!("fa_scalar_c1_fm.{target}"), [2, 72, 64], causal, Buffers::UPPER));
        cases.push(other(&format!("fa_scalar_c0.{target}"), [2, 72, 64], full, without_logarithm));
        cases.push(other(&format!("fa_scalar_c1.{target}"), [2, 72, 64], causal, without_logarithm));
    }
    for file in ["tri_fa_fwd_d128.sm_80", "tri_fa_fwd_d128.sm_90a", "tri_fa_fwd_tma.sm_90a", "tri_fa_fwd_tma_ws.sm_90a"]
    {
        cases.push(other(file, [1, 256, 128], causal, triton));
    }
    for target in ["sm_75", "sm_80"] {
        for (file, mask) in [("fa_wmma_c0", full), ("fa_wmma_c0_fm", full), ("fa_wmma_c1", causal)] {
            let mut case = other(&format!("{file}.{target}"), [1, 128, 64], mask, without_logarithm);
            // Scores are scaled, and then differences of scores.
            case.formula.scales = vec![0.125, std::f32::consts::LOG2_E];
            cases.push(case);
        }
    }
    assert_eq!(compare(&cases), Vec::<String>::new());
}

/// The kernel with one line changed.
fn planted(kernel: &Kernel, is_line: impl Fn(&[&str], usize) -> bool, new: impl Fn(&str) -> String) -> Kernel {
    let lines: Vec<&str> = kernel.parsed.source.text.lines().collect();
    let at = (0..lines.len()).find(|at| is_line(&lines, *at)).expect("the line is there");
    let mut text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    text[at] = new(lines[at]);
    assert_ne!(text[at], lines[at]);
    let recipe = Recipe::clone(&kernel.recipe);
    Kernel::with_text(kernel.file(), &text.join("\n"), recipe).unwrap()
}

/// What a stage index that stands still, a wrong slice of an operand, another ring's stage and a forgotten factor do.
#[test]
fn errors_of_dataflow_change_the_bits() {
    let problem = Problem::builder().batch(1).heads(1).queries(64).keys(192).build().unwrap();
    let own = &ours(&problem)[0];
    let stage = |line: &str| line.contains(", %keys_stage;");
    let ring = |lines: &[&str], at: usize| stage(lines[at]) && stage(lines[at + 1]);
    let [hop, lazy] = ["hop_f64_n64w4", "hop_c64_n128w1"].map(hopper);
    let nth = |text: &'static str, nth: usize| {
        move |lines: &[&str], at: usize| {
            lines[at].trim() == text && lines[..at].iter().filter(|line| line.trim() == text).count() == nth
        }
    };
    let bugs = [
        (
            "the stage of the keys stands still",
            own,
            planted(&own.kernel, ring, |line| line.replace("%keys_stage", "0")),
        ),
        (
            "the last columns of the keys are others",
            &hop,
            planted(&hop.kernel, nth("add.u32 %t1, %klo, 6;", 1), |line| line.replace('6', "4")),
        ),
        (
            "the stage of the values is that of the keys",
            &hop,
            planted(&hop.kernel, nth("mad.lo.u32 %vlo, %vi, 512, %vd;", 0), |line| line.replace("%vi", "%ki")),
        ),
        (
            "a sum does not shrink with its outputs",
            &lazy,
            planted(&lazy.kernel, nth("mul.f32 %l1, %l1, %a1;", 0), |_| String::new()),
        ),
    ];
    for (what, case, kernel) in &bugs {
        let differences = case.formula.differences(&run(kernel, 0));
        println!("{:<40} {what}: {differences} elements differ", case.name);
        assert!(differences > 0, "{what}");
        assert_eq!(case.formula.differences(&run(&case.kernel, 0)), 0, "{}", case.name);
    }
}
