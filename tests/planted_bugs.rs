//! Seven synchronisation bugs planted into an attention kernel for Hopper, and what the checks say about each.
//!
//! `cargo test --test planted_bugs -- --nocapture` prints the table. A bug is a few lines of the corpus kernel
//! `hop_f64_n64w2` left out or moved; the others keep their numbers.

use emulator::{Sanitized, sanitize_under};
use launch::backend::Options;
use launch::{Finding, Kernel, Policy, Recipe};
use std::path::PathBuf;

/// One bug: what is done to the text, and what every schedule alone must find.
struct Planted {
    name: &'static str,
    what: &'static str,
    /// Lines that are left out, each with what it holds.
    without: &'static [(usize, &'static str)],
    /// What is put behind a line.
    with: &'static [(usize, &'static str)],
    finds: Option<Finds>,
}

struct Finds {
    check: &'static str,
    /// The two lines, in the order of the report, with what they hold.
    lines: [(usize, &'static str); 2],
    /// How the missing edge is told.
    missing: &'static str,
}

const WAIT_FOR_KEYS: &str = "mbarrier.try_wait.parity.shared::cta.b64 %pw, [%ba], %kph;";
const WAIT_FOR_VALUES: &str = "mbarrier.try_wait.parity.shared::cta.b64 %pw, [%ba], %vph;";
const WARPGROUP_BARRIER: &str = "bar.sync %barwg, 128;";
const FENCE: &str = "fence.proxy.async.shared::cta;";
const RELEASE_VALUES: &str = "@%pl0 mbarrier.arrive.shared::cta.b64 _, [%t0];";
const LOAD_KEYS: &str = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%t1], [%tmk,";
const LOAD_VALUES: &str = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%t1], [%tmv,";
const STORE_OUTPUT: &str = "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%tmo,";
const PRODUCT: &str = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16";
const OUTPUT: &str = "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16";
const SPOILT: &str = "@%pl0 st.shared.u32 [%sb+65664], %tidx;";

const BUGS: [Planted; 7] = [
    Planted {
        name: "keys not waited for",
        what: "consumers multiply keys without a look at the barrier of their stage",
        without: &[
            (279, WAIT_FOR_KEYS),
            (280, "@%pw bra $WD_16;"),
            (281, "bra $W_15;"),
            (535, WAIT_FOR_KEYS),
            (536, "@%pw bra $WD_25;"),
            (537, "bra $W_24;"),
        ],
        with: &[],
        finds: Some(Finds {
            check: "missing-wait",
            lines: [(153, LOAD_KEYS), (290, PRODUCT)],
            missing: "a wait for phase 0 of the mbarrier at `smem`+65568 between (1) and (2)",
        }),
    },
    Planted {
        name: "stages not waited for",
        what: "the producer fills stages again before they are given back",
        without: &[
            (142, WAIT_FOR_KEYS),
            (143, "@%pw bra $WD_7;"),
            (144, "bra $W_6;"),
            (161, WAIT_FOR_VALUES),
            (162, "@%pw bra $WD_9;"),
            (163, "bra $W_8;"),
        ],
        with: &[],
        finds: Some(Finds {
            check: "early-release",
            lines: [(153, LOAD_KEYS), (153, LOAD_KEYS)],
            missing: "a wait for phase 0 of the mbarrier at `smem`+65568 between (1) and (2)",
        }),
    },
    Planted {
        name: "no proxy fence",
        what: "the output is stored by a bulk copy that need not see it",
        without: &[(826, FENCE), (1029, FENCE)],
        with: &[],
        finds: Some(Finds {
            check: "proxy-fence",
            lines: [(783, OUTPUT), (835, STORE_OUTPUT)],
            missing: "`fence.proxy.async`, or `fence.proxy.async.shared::cta`, on the way from (1) to (2)",
        }),
    },
    Planted {
        name: "no barrier before the store",
        what: "one thread stores the output of four warps that may not have written it",
        without: &[(827, WARPGROUP_BARRIER), (1030, WARPGROUP_BARRIER)],
        with: &[],
        finds: Some(Finds { check: "race-shared", lines: [(783, OUTPUT), (835, STORE_OUTPUT)], missing: "a barrier" }),
    },
    // No bug: the products that read the queries were waited for, and a wait is for all four warps of a warpgroup; a warp
    // that computes its scores again reads the queries with the lanes that overwrite them.
    Planted {
        name: "no barrier before the output",
        what: "the output overwrites queries, which nobody reads any more",
        without: &[(769, WARPGROUP_BARRIER), (972, WARPGROUP_BARRIER)],
        with: &[],
        finds: None,
    },
    Planted {
        name: "values given back early",
        what: "consumers give the stage back while their products of it are in flight",
        without: &[(755, RELEASE_VALUES), (875, RELEASE_VALUES)],
        with: &[(586, "shl.b32 %t0, %vi, 3; add.u32 %t0, %t0, %sb; add.u32 %t0, %t0, 65616;"), (586, RELEASE_VALUES)],
        finds: Some(Finds {
            check: "early-release",
            lines: [(575, PRODUCT), (172, LOAD_VALUES)],
            missing: "`wgmma.wait_group.sync.aligned 0` between (1) and `@%pl0 mbarrier.arrive.shared::cta.b64 _, [%t0]` \
                      at line 586, which tells warp 0 to go on",
        }),
    },
    Planted {
        name: "one word for all warps",
        what: "eight warps store one word",
        without: &[],
        with: &[(825, SPOILT), (1028, SPOILT)],
        finds: Some(Finds { check: "race-shared", lines: [(825, SPOILT), (825, SPOILT)], missing: "a barrier" }),
    },
];

struct Example {
    path: PathBuf,
    text: String,
    recipe: String,
}

impl Example {
    fn open() -> Example {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
        let path = corpus.join("ptx/hop_f64_n64w2.sm_90a.ptx.gz");
        let recipe = std::fs::read_to_string(corpus.join("hop_f64_n64w2.sm_90a.toml")).expect("a recipe");
        Example { text: launch::module_text::read(&path).expect("a kernel"), path, recipe }
    }

    /// The text with a bug; every other line keeps its number.
    fn with(&self, bug: &Planted) -> String {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        for (number, held) in bug.without {
            assert_eq!(lines[number - 1].trim(), *held, "line {number}");
            lines[number - 1].clear();
        }
        bug.with.iter().for_each(|(number, new)| lines[number - 1] += &format!(" {new}"));
        lines.join("\n")
    }

    /// One run of a text under each policy, scores as wide as asked.
    fn runs(&self, text: &str, deviation: &str) -> Vec<(Policy, Sanitized)> {
        let recipe = self.recipe.replace("normal(1.0)", &format!("normal({deviation})"));
        let recipe = Recipe::parse("planted.toml", &recipe).expect("a recipe");
        let kernel = Kernel::with_text(&self.path.display().to_string(), text, recipe).expect("a kernel");
        let under = |policy| {
            let options = Options { policy: Some(policy), instruction_budget: 2_000_000, ..Options::default() };
            (policy, sanitize_under(&kernel, &[options], 0).expect("a run"))
        };
        Policy::ALL.into_iter().map(under).collect()
    }
}

fn lines(finding: &Finding) -> [u32; 2] {
    [finding.first.line, finding.primary().line]
}

/// The finding that a bug must cause.
fn named<'a>(finds: &Finds, text: &str, run: &'a Sanitized) -> Option<&'a Finding> {
    for (number, held) in finds.lines {
        let line = text.lines().nth(number - 1).expect("a line");
        assert!(line.contains(held), "line {number} holds {line}");
    }
    let numbers = finds.lines.map(|(number, _)| number as u32);
    let is_it = |finding: &&Finding| finding.check == finds.check && lines(finding) == numbers;
    let tells = |finding: &&Finding| finding.missing.as_ref().is_some_and(|told| told.starts_with(finds.missing));
    run.findings.iter().filter(is_it).find(tells)
}

fn caught(bug: &Planted, finds: &Finds, example: &Example) {
    let text = example.with(bug);
    let runs = example.runs(&text, "1.0");
    for (policy, run) in &runs {
        assert!(named(finds, &text, run).is_some(), "{}: under {policy} found {:#?}", bug.name, run.findings);
    }
    let finding = named(finds, &text, &runs[0].1).expect("it was found");
    println!("{:<29} {}", bug.name, bug.what);
    println!("{:<29} {}: {}", "", finding.check, finding.message);
    println!("{:<29} lines {} and {}", "", finding.first.line, finding.primary().line);
    println!("{:<29} missing: {}", "", finding.missing.as_deref().unwrap_or_default());
}

/// The same findings as the kernel without the change, and the same results, whatever the scores.
fn harmless(bug: &Planted, example: &Example) {
    for deviation in ["1.0", "8.0"] {
        let (right, changed) = (example.runs(&example.text, deviation), example.runs(&example.with(bug), deviation));
        for ((policy, right), (_, changed)) in right.iter().zip(&changed) {
            let places =
                |run: &Sanitized| -> Vec<_> { run.findings.iter().map(|one| (one.check, lines(one))).collect() };
            assert_eq!(places(right), places(changed), "{} under {policy}", bug.name);
            let bytes = |run: &Sanitized| run.runs[0].2.buffer("o").cloned();
            assert_eq!(bytes(right), bytes(changed), "{} under {policy}", bug.name);
        }
    }
    println!("{:<29} {}", bug.name, bug.what);
    println!("{:<29} no bug: nothing new is found, nor other results, with scores near and far apart", "");
}

#[test]
fn every_planted_bug_is_named() {
    let example = Example::open();
    let clean = example.runs(&example.text, "1.0");
    assert!(clean.iter().all(|(_, run)| run.findings.is_empty()));
    for bug in &BUGS {
        match &bug.finds {
            Some(finds) => caught(bug, finds, &example),
            None => harmless(bug, &example),
        }
    }
}
