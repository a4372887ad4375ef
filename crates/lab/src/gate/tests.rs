use std::fs;

use super::*;
use crate::bench::{Duel, Grid};
use crate::figures::Figure;
use crate::machine::Machine;
use crate::measure::Verdict;
use crate::verify::{Check, CheckResult, Verification};

/// All stages passed, but for one; whatever was run has the figures that a gate may ask for.
fn but(stage: Stage, state: State) -> Vec<Outcome> {
    let one = |each: Stage| {
        let outcome = Outcome::ended(each, if each == stage { state.clone() } else { State::Pass });
        match each {
            _ if matches!(outcome.state(), State::NotRun { .. }) => outcome,
            Stage::Bench => outcome.with_duels(duels(&Verdict::Faster)),
            Stage::Profile => outcome.with_measures(vec![("busy", Figure::new(80.0)), ("tensor", Figure::new(70.0))]),
            _ => outcome,
        }
    };
    Stage::ALL.map(one).into()
}

/// One verdict at every problem that `publication` asks for.
fn duels(verdict: &Verdict) -> Vec<Duel> {
    let problems = [Grid::Small, Grid::Main].into_iter().flat_map(|grid| grid.problems().unwrap());
    let duel = |problem: String| Duel { kernel: "k".into(), problem, peer: "cudnn".into(), verdict: verdict.clone() };
    problems.map(|problem| duel(problem.to_string())).collect()
}

/// The same with other comparisons.
fn with_duels(duels: &[Duel]) -> Vec<Outcome> {
    let with = |outcome: Outcome| match outcome.stage() {
        Stage::Bench => outcome.with_duels(duels.into()),
        _ => outcome,
    };
    all().into_iter().map(with).collect()
}

fn all() -> Vec<Outcome> {
    but(Stage::Bench, State::Pass)
}

fn why() -> String {
    "why".into()
}

fn undecided() -> [State; 3] {
    [State::NotRun { why: why() }, State::Ambiguous { why: why() }, State::Stale { why: why() }]
}

fn says(gate: &Gate, outcomes: &[Outcome]) -> String {
    gate.judge(outcomes, &SecondRun::NotGiven).to_string()
}

#[test]
fn merge_needs_six_stages_and_no_others() {
    assert_eq!(says(&Gate::merge(), &all()), "held");
    for stage in Stage::ALL {
        let counts = ![Stage::Bench, Stage::Profile].contains(&stage);
        let expect = |word: &str| if counts { format!("{word}{stage}") } else { "held".into() };
        assert_eq!(says(&Gate::merge(), &but(stage, State::Fail { why: why() })), expect("failed: "));
        for state in undecided() {
            assert_eq!(says(&Gate::merge(), &but(stage, state)), expect("undecided: lacks "));
        }
    }
    assert!(says(&Gate::merge(), &[]).starts_with("undecided: lacks assemble, "), "silence is no pass");
}

#[test]
fn a_failure_outweighs_what_lacks() {
    let mut outcomes = but(Stage::Stress, State::NotRun { why: why() });
    outcomes[Stage::Code as usize] = Outcome::ended(Stage::Code, State::Fail { why: why() });
    assert_eq!(says(&Gate::merge(), &outcomes), "failed: code");
}

fn machine(processor: &str) -> Machine {
    Machine {
        system: "linux".into(),
        architecture: "x86_64".into(),
        processor: processor.into(),
        threads: 2,
        ptxas: None,
        nvdisasm: None,
        gpu: None,
        program: None,
    }
}

fn verified(processor: &str, time: u64, outcomes: Vec<Outcome>) -> Verification {
    let checks = vec![Check { what: "files", result: CheckResult::Holds }];
    Verification { checks, outcomes, made: Some(Made { kernels: Vec::new(), machine: machine(processor), time }) }
}

fn publication(second: &Verification) -> GateResult {
    let first = verified("one", 1_000, all());
    Gate::publication().judge(&first.outcomes, &SecondRun::of(&first, second))
}

#[test]
fn publication_needs_a_second_run_from_another_day_or_machine() {
    let lonely = says(&Gate::publication(), &all());
    assert_eq!(
        lonely,
        "undecided: lacks a second run that agrees (on another day or machine: `--second PACK` names it)"
    );
    assert_eq!(publication(&verified("other", 1_000, all())), GateResult::Held);
    assert_eq!(publication(&verified("one", 1_000 + 86_400, all())), GateResult::Held);
    let same = publication(&verified("one", 2_000, all())).to_string();
    assert_eq!(same, "undecided: lacks a second run that agrees (its pack is of the same day (UTC) and machine)");
}

#[test]
fn a_second_run_must_be_of_the_same_kernels_accepted_and_agree() {
    let mut other = verified("other", 1_000, all());
    let subject =
        |name: &str| crate::figures::Subject { kernel: name.into(), module: "module".into(), recipe: "recipe".into() };
    other.made.as_mut().unwrap().kernels.push(subject("another"));
    assert!(publication(&other).to_string().contains("undecided: lacks a second run that agrees (its pack is about"));

    let mut broken = verified("other", 1_000, all());
    broken.checks[0].result = CheckResult::Broken { why: "a byte changed".into() };
    let result = publication(&broken).to_string();
    assert_eq!(result, "failed: a second run that agrees (its pack is rejected: a byte changed)");

    let slower = verified("other", 1_000, but(Stage::Bench, State::Fail { why: why() }));
    assert_eq!(publication(&slower).to_string(), "failed: a second run that agrees (it failed bench)");
    for state in undecided() {
        let result = publication(&verified("other", 1_000, but(Stage::Profile, state))).to_string();
        assert_eq!(result, "undecided: lacks a second run that agrees (it lacks profile)");
    }
}

/// The gates of a file, or what is wrong with it, without the folder.
fn settings(text: &str) -> Result<Vec<Gate>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SETTINGS);
    fs::write(&path, text).unwrap();
    let folder = format!("{}/", folder.path().display());
    gates_of(&path).map_err(|error| error.to_string().replace(&folder, ""))
}

#[test]
fn a_gate_of_ones_own_may_allow_what_was_not_run_and_nothing_else() {
    let gates = settings("[gate.nightly]\nrequire = ['parity']\nallow_not_run = ['profile']\n").unwrap();
    let [nightly] = gates.as_slice() else { panic!("{gates:?}") };
    assert_eq!((nightly.name(), nightly.wants_second_run()), ("nightly", false));
    let [not_run, ambiguous, stale] = undecided();
    assert_eq!(says(nightly, &but(Stage::Profile, not_run.clone())), "held");
    assert_eq!(says(nightly, &but(Stage::Profile, ambiguous)), "undecided: lacks profile");
    assert_eq!(says(nightly, &but(Stage::Profile, stale)), "undecided: lacks profile");
    assert_eq!(says(nightly, &but(Stage::Profile, State::Fail { why: why() })), "failed: profile");
    assert_eq!(says(nightly, &but(Stage::Parity, not_run)), "undecided: lacks parity");
    assert_eq!(says(nightly, &but(Stage::Code, State::Fail { why: why() })), "held");
    assert!(settings("[gate.a]\nrequire = ['code']\nsecond_run = true").unwrap()[0].wants_second_run());
    assert_eq!(settings(""), Ok(Vec::new()));
}

#[test]
fn what_is_wrong_with_settings_is_said_with_its_place() {
    let stages = "`assemble`, `parity`, `sanitize`, `stress`, `resources`, `code`, `bench`, `profile`";
    let cases = [
        ("[gates.a]\n", "veriflash.toml:1:2: unknown field `gates`, expected `gate`".into()),
        (
            "[gate.a]\nrequire = ['code']\nrequires = []\n",
            "veriflash.toml:3:1: unknown field `requires`, expected one of `require`, `allow_not_run`, `least`, `second_run`"
                .into(),
        ),
        (
            "[gate.a]\nrequire = ['code', 'spped']\n",
            format!("veriflash.toml:2:20: unknown variant `spped`, expected one of {stages}"),
        ),
        ("[gate.a]\nsecond_run = true\n", "veriflash.toml:1:1: missing field `require`".into()),
        (
            "[gate.a]\nrequire = []\n",
            "veriflash.toml:2:11: the gate `a` requires nothing, and would always hold: expected stages".into(),
        ),
        (
            "[gate.a]\nrequire = ['code']\nallow_not_run = ['code']\n",
            "veriflash.toml:3:18: the gate `a` names the stage `code` twice: expected once".into(),
        ),
        (
            "\n[gate.merge]\nrequire = ['code']\n",
            "veriflash.toml:2:7: the gate `merge` is built in: expected another name".into(),
        ),
        (
            "[gate.a]\nrequire = ['code']\nleast = { busy = 170.0 }\n",
            "veriflash.toml:3:11: least `busy`: expected one of busy, tensor, and a percentage above 0 and up to 100"
                .into(),
        ),
        (
            "[gate.\"a b\"]\nrequire = ['code']\n",
            "veriflash.toml:1:7: gate name \"a b\": expected letters, digits, `-` and `_`".into(),
        ),
    ];
    for (text, expected) in cases {
        let said: String = settings(text).unwrap_err();
        assert_eq!(said, expected, "{text}");
    }
    let missing = gates_of(std::path::Path::new("nowhere.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("nowhere.toml: "), "{missing}");
}

/// A threshold asks for the stage that has its figure, whether or not the gate names it.
#[test]
fn a_figure_that_nobody_measured_lacks() {
    let gate = |text: &str| settings(&format!("[gate.fast]\n{text}\nleast = {{ busy = 50.0 }}")).unwrap().remove(0);
    let [not_run, ambiguous, _] = undecided();
    let unnamed = gate("require = ['parity']");
    assert_eq!(says(&unnamed, &but(Stage::Profile, not_run.clone())), "undecided: lacks profile");
    assert_eq!(says(&unnamed, &but(Stage::Profile, ambiguous)), "undecided: lacks profile");
    assert_eq!(says(&unnamed, &all()), "held");
    let passed = Stage::ALL.map(|stage| Outcome::ended(stage, State::Pass));
    assert_eq!(says(&unnamed, &passed), "undecided: lacks profile: busy is not known, expected 50 or more");
    let allowed = gate("require = ['parity']\nallow_not_run = ['profile']");
    assert_eq!(says(&allowed, &but(Stage::Profile, not_run)), "held", "that it may lack was asked for");
}

#[test]
fn publication_asks_for_the_lists_of_problems() {
    let mut fewer = duels(&Verdict::Faster);
    fewer.retain(|duel| !duel.problem.contains("S16384"));
    let said = says(&Gate::publication(), &with_duels(&fewer));
    let expected = "undecided: lacks 4 of the 26 problems of the lists `small` and `main`, which bench did not time, \
                    such as f16 B1 H32 S16384 D64 full, a second run";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(says(&Gate::merge(), &with_duels(&fewer)), "held");
    let second = publication(&verified("other", 1_000, with_duels(&fewer))).to_string();
    assert!(second.contains("a second run that agrees (it lacks 4 of the 26 problems"), "{second}");
}

#[test]
fn a_second_run_names_the_same_winners() {
    let says = |verdict: Verdict| {
        let mut again = duels(&Verdict::Faster);
        again[1].verdict = verdict;
        publication(&verified("other", 1_000, with_duels(&again))).to_string()
    };
    let at = "a second run that agrees (f16 B2 H8 S512 D64 causal against cudnn: FASTER in the first";
    assert_eq!(says(Verdict::Faster), "held");
    assert_eq!(says(Verdict::Slower), format!("failed: {at}, SLOWER in it)"));
    assert_eq!(says(Verdict::Equal), format!("undecided: lacks {at}, EQUAL in it)"));
    assert_eq!(says(Verdict::Ambiguous { why: why() }), format!("undecided: lacks {at}, AMBIGUOUS in it)"));
    let opposite = publication(&verified("other", 1_000, with_duels(&duels(&Verdict::Slower)))).to_string();
    assert!(opposite.starts_with("failed: ") && opposite.ends_with("SLOWER in it; and 25 more)"), "{opposite}");
}

/// Peers may differ from run to run: what both have measured is compared.
#[test]
fn runs_without_a_common_comparison_do_not_agree() {
    let mut others = duels(&Verdict::Faster);
    others.iter_mut().for_each(|duel| duel.peer = "fa2".into());
    let said = publication(&verified("other", 1_000, with_duels(&others))).to_string();
    assert_eq!(said, "undecided: lacks a second run that agrees (it shares no comparison with the first)");
    others.extend(duels(&Verdict::Faster));
    assert_eq!(publication(&verified("other", 1_000, with_duels(&others))), GateResult::Held);
}

#[test]
fn a_second_run_reaches_the_same_figures() {
    let idle = |outcome: Outcome| match outcome.stage() {
        Stage::Profile => outcome.with_measures(vec![("busy", Figure::new(60.4)), ("tensor", Figure::new(12.0))]),
        _ => outcome,
    };
    let said = publication(&verified("other", 1_000, all().into_iter().map(idle).collect())).to_string();
    let expected = "failed: a second run that agrees (it failed profile: busy is 60.4 %, expected 70 or more)";
    assert_eq!(said, expected);
}

/// How busy a kernel keeps the GPU is a matter of gates, not of the stage.
#[test]
fn a_figure_that_is_too_small_fails_the_gate_that_asks_for_it() {
    let outcomes = |busy: f64| -> Vec<Outcome> {
        let measures = || vec![("busy", Figure::new(busy)), ("tensor", Figure::new(12.0))];
        let with = |outcome: Outcome| match outcome.stage() {
            Stage::Profile => outcome.with_measures(measures()),
            _ => outcome,
        };
        all().into_iter().map(with).collect()
    };
    let publication = Gate::publication();
    assert!(says(&publication, &outcomes(60.4)).contains("profile: busy is 60.4 %, expected 70 or more"));
    assert!(!says(&publication, &outcomes(70.1)).contains("busy"));
    assert_eq!(says(&Gate::merge(), &outcomes(1.0)), "held");
    let own = settings("[gate.nightly]\nrequire = [\"profile\"]\nleast = { busy = 50.0, tensor = 13.0 }\n").unwrap();
    assert_eq!(says(&own[0], &outcomes(60.0)), "failed: profile: tensor is 12.0 %, expected 13 or more");
}
