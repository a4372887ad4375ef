//! Every stage can pass, and every stage can fail.
#![cfg(unix)]

mod support;

use lab::{Gate, Pack, Request, Silent, Stage, State, Toolbox, prove};
use support::{CODE, SAID, case, kernel_text, request, tools};

fn pack_of(text: &str) -> Pack {
    let folder = tempfile::tempdir().unwrap();
    prove(&request(text, &folder.path().join("pack")), &Silent).unwrap()
}

fn pack_with(said: &str, code: &str) -> Pack {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&kernel_text(), &folder.path().join("pack"));
    request.tools = tools(folder.path(), said, code);
    prove(&request, &Silent).unwrap()
}

/// Why a stage failed.
fn why(pack: &Pack, stage: &str) -> String {
    let outcome = pack.outcomes.iter().find(|outcome| outcome.stage().name() == stage).unwrap();
    assert!(matches!(outcome.state(), State::Fail { .. }), "{stage}: {:?}", outcome.state());
    outcome.sentence().into()
}

/// The text with one part replaced, which must be there.
fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// Values with columns of their own are judged by them, and only if the contract says so.
#[test]
fn values_may_have_columns_of_their_own() {
    let problem: attention::Problem = "bf16 B1 H2/1 Sq33 Sk40 D192/128 causal".parse().unwrap();
    let config = attention::configs::Config::by_id(6).unwrap();
    let text = attention::kernels::kernel(&problem, &config).unwrap().parsed.source.text;
    assert_eq!(case(&text).problem, problem);
    let pack = pack_of(&text);
    assert_eq!(pack.tally().to_string(), "4 passed, 0 failed, 4 not run", "{}", pack.table());
    let silent = launch::Kernel::parse("case.ptx", &edited(&text, ", value_dim = \"dv\"", "")).unwrap();
    let refused = lab::Case::new(silent).unwrap_err().to_string();
    assert!(refused.contains("buffer `v` holds 5120 bf16: expected 7680 bf16 for bf16 B1 H2/1"), "{refused}");
}

#[test]
fn a_bare_machine_proves_four_stages_and_says_how_to_get_more() {
    let pack = pack_of(&kernel_text());
    assert_eq!(pack.tally().to_string(), "4 passed, 0 failed, 4 not run", "{}", pack.table());
    for stage in [Stage::Resources, Stage::Code] {
        let outcome = &pack.outcomes[stage as usize];
        assert!(outcome.sentence().contains("pip install nvidia-cuda-nvcc"), "{}", outcome.sentence());
    }
    assert!(pack.outcomes[0].figures().contains("ptxas was not found"));
    assert_eq!(pack.gate(&Gate::merge()).to_string(), "undecided: lacks resources, code");
}

#[test]
fn with_tools_six_stages_pass_and_the_gate_holds() {
    let pack = pack_with(SAID, CODE);
    assert_eq!(pack.tally().to_string(), "6 passed, 0 failed, 2 not run", "{}", pack.table());
    assert_eq!(pack.gate(&Gate::merge()).to_string(), "held");
}

#[test]
fn the_standard_request_passes_with_the_tools_that_are_here() {
    let folder = tempfile::tempdir().unwrap();
    let request = Request::standard(folder.path().join("pack")).unwrap();
    let complete = matches!(request.tools, Toolbox { ptxas: Some(_), nvdisasm: Some(_) });
    let expected = if complete { "6 passed, 0 failed, 2 not run" } else { "4 passed, 0 failed, 4 not run" };
    let pack = prove(&request, &Silent).unwrap();
    assert_eq!(pack.tally().to_string(), expected, "{}", pack.table());
    let names: Vec<&str> = request.cases[4..].iter().map(|case| case.name.as_str()).collect();
    let planned = ["full", "causal"].map(|mask| format!("attention_config9_f16_B1_H2_Sq33_Sk321_D64_{mask}"));
    assert_eq!(names, planned);
    let assembled = pack.outcomes[Stage::Assemble as usize].figures();
    assert!(!complete || assembled.ends_with("for sm_80, sm_89, sm_90, sm_90a"), "{assembled}");
}

#[test]
fn a_wrong_scale_fails_parity() {
    let load = "ld.param.f32 %scale_log2, [scale_log2];";
    // 1.01
    let wrong = format!("{load}\n    mul.f32 %scale_log2, %scale_log2, 0f3F8147AE;");
    let pack = pack_of(&edited(&kernel_text(), load, &wrong));
    assert!(why(&pack, "parity").contains("is wrong"), "{}", pack.table());
    assert!(why(&pack, "sanitize").contains("result is wrong"), "{}", pack.table());
    assert_eq!(pack.gate(&Gate::merge()).to_string(), "failed: parity, sanitize, stress");
}

/// The kernel with statements before its first, and a variable of the module.
fn with_counter(statements: &str) -> String {
    let text = edited(&kernel_text(), ".visible .entry", ".global .u32 calls = 0;\n.visible .entry");
    edited(&text, "    ld.param", &format!("    {{\n{statements}\n    }}\n    ld.param"))
}

#[test]
fn a_second_call_that_dies_fails_stress_alone() {
    let case = case(&kernel_text());
    let launch = &case.kernel.resolve(&launch::Limits::default()).unwrap().launches[0];
    let threads = launch.grid.iter().product::<u32>() * launch.block.iter().product::<u32>();
    let pack = pack_of(&with_counter(&format!(
        "    .reg .b32 %call;\n    .reg .pred %late;\n    atom.global.add.u32 %call, [calls], 1;\n    \
         setp.ge.u32 %late, %call, {threads};\n    @%late trap;"
    )));
    let said = why(&pack, "stress");
    assert!(said.contains("called again on the same buffers with policy") && said.contains("error[trap]"), "{said}");
    assert_eq!(pack.gate(&Gate::merge()).to_string(), "failed: stress", "{}", pack.table());
}

#[test]
fn faults_that_nobody_notices_fail_stress_and_are_listed() {
    // What it orders for the host is watched by nobody.
    let text = edited(&kernel_text(), "    ld.param", "    fence.acq_rel.sys;\n    ld.param");
    let pack = pack_of(&text);
    let said = why(&pack, "stress");
    assert!(said.contains("injected faults caught; missed: line") && said.contains("`fence.acq_rel.sys`"), "{said}");
    assert_eq!(pack.tally().failed, 1, "{}", pack.table());
}

#[test]
fn a_small_budget_tries_fewer_faults_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request(&kernel_text(), &folder.path().join("pack"));
    request.settings.mutation_budget = 1;
    let pack = prove(&request, &Silent).unwrap();
    let figures = pack.outcomes[Stage::Stress as usize].figures();
    assert!(figures.contains("called 3 times under each of 11 policies with 1 seed: 1 result to the bit"), "{figures}");
    assert!(figures.contains(" injected faults caught") && figures.ends_with("10 not tried"), "{figures}");
}

#[test]
fn a_removed_barrier_fails_sanitize_with_both_lines() {
    let pack = pack_of(&edited(&kernel_text(), "bar.sync 0;", ""));
    let why = why(&pack, "sanitize");
    assert!(why.contains("finding") && why.contains("at line") && why.contains("and line"), "{why}");
    assert!(!pack.findings.is_empty());
    assert!(pack.findings.iter().all(|finding| finding.first.file == "case.ptx"));
}

#[test]
fn an_endless_kernel_ends_at_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let text = kernel_text();
    let mut request = request(&text, &folder.path().join("pack"));
    request.settings.instruction_budget = 1000;
    let pack = prove(&request, &Silent).unwrap();
    assert!(why(&pack, "sanitize").contains("1000 instructions"), "{}", pack.table());
    assert!(matches!(pack.outcomes[Stage::Parity as usize].state(), State::Fail { .. }));
}

#[test]
fn a_kernel_that_writes_nothing_fails() {
    let text = kernel_text();
    let body = text.find("    ld.param").unwrap();
    let idle = format!("{}    ret;\n{}", &text[..body], &text[body..]);
    let pack = pack_of(&idle);
    assert!(why(&pack, "parity").contains("left its output `o` as it was"), "{}", pack.table());
    assert!(why(&pack, "sanitize").contains("left its output"), "{}", pack.table());
}

#[test]
fn what_ptxas_refuses_fails_assemble() {
    let pack = pack_with("ptxas error : too wide", CODE);
    assert!(why(&pack, "assemble").contains("too wide"), "{}", pack.table());
    assert!(matches!(pack.outcomes[Stage::Code as usize].state(), State::NotRun { .. }));
    assert_ne!(pack.outcomes[Stage::Resources as usize].state(), &State::Pass);
}

#[test]
fn spills_and_stack_fail_resources() {
    let pack = pack_with(&SAID.replace("0 bytes spill stores", "8 bytes spill stores"), CODE);
    assert!(why(&pack, "resources").contains("8 spilled"), "{}", pack.table());
    let pack = pack_with(&SAID.replace("0 bytes stack", "16 bytes stack"), CODE);
    assert!(why(&pack, "resources").contains("16 bytes of stack"), "{}", pack.table());
    let pack = pack_with(&SAID.replace("Used 96", "Guessed 96"), CODE);
    assert!(
        matches!(pack.outcomes[Stage::Resources as usize].state(), State::NotRun { why } if why.contains("Guessed"))
    );
}

#[test]
fn machine_code_without_tensor_cores_in_a_loop_fails_code() {
    let cases = [
        (CODE.replace("HMMA.16816.F32", "FFMA"), "no tensor-core"),
        (CODE.replace("BRA `(.L_x_0)", "NOP"), "no tensor-core"),
        (CODE.replace("LDGSTS.E.BYPASS.128", "LDG.E.128"), "asynchronous"),
        (CODE.replace("EXIT ;", "STL [R1], R5 ;"), "local memory is touched 1 times"),
    ];
    for (code, expected) in cases {
        let pack = pack_with(SAID, &code);
        assert!(why(&pack, "code").contains(expected), "{}", pack.table());
    }
}

#[test]
fn a_recipe_without_a_contract_is_refused_with_the_cure() {
    let text = kernel_text();
    let refusal = |from: &str, to: &str| {
        let kernel = launch::Kernel::parse("case.ptx", &edited(&text, from, to)).unwrap();
        lab::Case::new(kernel).unwrap_err().to_string()
    };
    let contract: String = text
        .lines()
        .skip_while(|line| *line != "//@ [attention]")
        .take_while(|line| line.starts_with("//@"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(refusal(&contract, "").contains("no [attention] table"));
    assert!(refusal("\"causal-bottom-right\"", "\"window(sq,2)\"").contains("expected two numbers"));
    assert!(refusal("//@ type = \"f16\"", "//@ type = \"f32\"").contains("expected f16 or bf16"));
    assert_eq!(case(&text).problem.to_string(), support::PROBLEM);
}
