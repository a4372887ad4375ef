//! `sanitize`: a kernel on the emulator, with all checks, under several schedules.

use super::github::Job;
use super::heartbeat::Heartbeat;
use super::input::Input;
use super::output::{findings_json, print_findings, print_json, verdict};
use super::sarif;
use super::severity::{Denied, Tally, counted};
use super::trace::TraceTo;
use super::{Arithmetic, Exit, policies};
use emulator::{Emulator, checks};
use launch::backend::{Backend, Options};
use launch::{Finding, Kernel, Limits, Memory, OperandSite, Operands, Policy};
use serde_json::{Value, json};

/// Runs a kernel on the emulator under several schedules and reports races, missing waits and their like; it compares no results
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash sanitize kernel.ptx\n  veriflash sanitize kernel.ptx --seed 17          repeats one schedule\n  veriflash sanitize kernel.ptx --seeds 50 --policy spurious --policy one-last\n  veriflash sanitize kernel.ptx --algebra          results without rounding: schedules must agree to the bit\n  veriflash sanitize add.ptx --grid 8 --block 128 --arg 'x=f32[1024]:normal(1)' --arg 'n=u32:1024'\n  veriflash sanitize kernel.ptx --format sarif --deny-warnings\n  veriflash sanitize kernel.ptx --format github      annotations of a pull request\n  veriflash sanitize kernel.ptx --trace trace.json   a timeline for https://ui.perfetto.dev"
)]
pub struct Arguments {
    #[command(flatten)]
    input: Input,

    /// How many schedules to run: seeds from 0 on, each with a policy of its own
    #[arg(long, default_value_t = emulator::DEFAULT_SEEDS, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Run this schedule alone
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,

    /// What the adversary is after, instead of what a seed stands for; several: each seed with each of them
    #[arg(long = "policy", value_name = "POLICY", value_parser = policies())]
    policies: Vec<Policy>,

    /// Fills buffers whose `init` has no seed of its own
    #[arg(long, default_value_t = 0)]
    data_seed: u64,

    /// Most instructions that the warps of one launch may execute
    #[arg(long, default_value_t = Options::default().instruction_budget)]
    budget: u64,

    /// How matrices are multiplied: findings seldom depend on it, results do
    #[arg(long, value_enum, default_value_t)]
    arithmetic: Arithmetic,

    /// Computes with exact numbers in place of floats, so that schedules differ only where data went astray
    #[arg(long, conflicts_with_all = ["arithmetic", "asked_for"])]
    algebra: bool,

    /// Also run a check that must be asked for; lane by lane, which is slow
    #[arg(long = "check", value_name = "CHECK", value_parser = [checks::nan_birth::CHECK.name])]
    asked_for: Option<String>,

    /// Also count every byte that instructions move, and compare with what the checks look at: exit 4 if they differ
    #[arg(long)]
    audit: bool,

    /// Leave out the lints, which tell of costs
    #[arg(long, conflicts_with = "deny_lints")]
    no_lints: bool,

    #[command(flatten)]
    denied: Denied,

    #[command(flatten)]
    trace: TraceTo,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How findings are written.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    #[default]
    Text,
    Json,
    /// SARIF 2.1.0, which code-hosting sites show on the line
    Sarif,
    /// Annotations of a pull request on GitHub, and a summary of the job
    Github,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.audit && matches!(arguments.format, Format::Sarif | Format::Github) {
        anyhow::bail!("`--audit` needs `--format text` or `--format json`: others have no place for its counts");
    }
    let kernel = arguments.input.kernel()?;
    super::check_module(&kernel)?;
    kernel.resolve(&Limits::default())?;
    let schedules = arguments.schedules();
    let heartbeat = Heartbeat::new("sanitize", String::new);
    let sanitized = emulator::sanitize_under(&kernel, &schedules, arguments.data_seed)?;
    drop(heartbeat);
    let findings = &sanitized.findings;
    let (operands, tally) = (sanitized.operands(), Tally::of(findings));
    let exit = audited(arguments.denied.exit(findings), operands.as_ref());
    arguments.draw(&kernel, findings, &schedules)?;
    match arguments.format {
        Format::Json => {
            let mut own = json!({ "counts": tally.json(), "findings": findings_json(findings) });
            if let Some(operands) = &operands {
                own["operands"] = operands_json(operands);
                own["unseen"] = json!(operands.faults());
            }
            print_json("sanitize", verdict(exit), exit, own);
        }
        Format::Sarif => println!("{:#}", sarif::document(&kernel, findings, exit)),
        Format::Github => Job::new("sanitize").findings(findings).finish(&tally.to_string()),
        Format::Text => {
            print_findings(&kernel, findings, &arguments.repeat());
            let seen = sanitized.runs.iter().flat_map(|(_, run, _)| &run.witness);
            let launches: u64 = seen.map(|witness| u64::from(witness.count)).sum();
            let (launches, schedules) =
                (counted(launches, "launch", "es"), counted(schedules.len() as u64, "schedule", "s"));
            println!("{tally}; {launches} ran under {schedules}");
            operands.iter().for_each(print_operands);
            if findings.is_empty() && is_judged(&kernel) {
                println!("results were not compared with what the recipe expects: `veriflash run` does that");
            }
        }
    }
    Ok(exit)
}

/// Does the recipe say what is right?
fn is_judged(kernel: &Kernel) -> bool {
    kernel.recipe.attention.is_some() || kernel.recipe.buffers.iter().any(|buffer| buffer.expect.is_some())
}

/// Without a finding, nothing is decided by checks that did not see everything.
fn audited(exit: Exit, operands: Option<&Operands>) -> Exit {
    let unseen = operands.is_some_and(|operands| !operands.faults().is_empty());
    if unseen && exit == Exit::Clean { Exit::Undecided } else { exit }
}

fn print_operands(operands: &Operands) {
    println!("operands: {operands}");
    let private: Vec<&str> = emulator::PRIVATE.iter().map(|(what, _)| *what).collect();
    println!("not for the race detector: {}", private.join("; "));
    let faults = operands.faults();
    if !faults.is_empty() {
        println!(
            "the checks did not see everything, which is a bug of veriflash; what they did not find is undecided:"
        );
        faults.iter().for_each(|fault| println!("  {fault}"));
    }
}

fn operands_json(operands: &Operands) -> Value {
    let site = |site: &OperandSite| {
        let OperandSite { line, mnemonic, read, written, barriers, private, .. } = site;
        json!({ "line": line, "instruction": mnemonic, "read": read, "written": written, "mbarriers": barriers,
                "private": private, "unseen": site.fault() })
    };
    json!(operands.sites.values().map(site).collect::<Vec<_>>())
}

impl Arguments {
    pub fn annotates(&self) -> bool {
        self.format == Format::Github
    }

    fn schedules(&self) -> Vec<Options> {
        let seeds: Vec<u64> = self.seed.map_or_else(|| (0..self.seeds).collect(), |seed| vec![seed]);
        let policies: Vec<Option<Policy>> = match self.policies.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let (precision, nan_birth) = (self.arithmetic.into(), self.asked_for.is_some());
        let (instruction_budget, algebra, audit) = (self.budget, self.algebra, self.audit);
        let options = Options { instruction_budget, precision, algebra, nan_birth, audit, ..Options::default() };
        let under = |seed| policies.iter().map(move |policy| Options { seed, policy: *policy, ..options });
        let mut schedules: Vec<Options> = seeds.into_iter().flat_map(under).collect();
        // What an access costs is the same under every schedule.
        schedules.iter_mut().take(1).for_each(|first| first.lints = !self.no_lints);
        schedules
    }

    /// Runs one schedule again for its timeline: the one that the first finding names, else the first.
    fn draw(&self, kernel: &Kernel, findings: &[Finding], schedules: &[Options]) -> anyhow::Result<()> {
        let traced_blocks = self.trace.blocks();
        if traced_blocks == 0 {
            return Ok(());
        }
        let found = |finding: &Finding| Options { seed: finding.seed, policy: Some(finding.policy), ..schedules[0] };
        let options = Options { traced_blocks, ..findings.first().map_or(schedules[0], found) };
        let mut loaded = Emulator.load(kernel)?;
        let mut memory = Memory::new(loaded.resolved(), self.data_seed)?;
        self.trace.write(Emulator.run(&mut loaded, &mut memory, &options)?.trace.as_ref())
    }

    /// The command that does the same again, up to the seed.
    fn repeat(&self) -> String {
        let mut repeat = self.input.repeat("sanitize");
        let flags = [("data-seed", self.data_seed, 0), ("budget", self.budget, Options::default().instruction_budget)];
        for (flag, value, _) in flags.iter().filter(|(_, value, default)| value != default) {
            repeat.push_str(&format!(" --{flag} {value}"));
        }
        if self.algebra {
            repeat.push_str(" --algebra");
        }
        if self.arithmetic == Arithmetic::Fast {
            repeat.push_str(" --arithmetic fast");
        }
        self.asked_for.iter().for_each(|check| repeat.push_str(&format!(" --check {check}")));
        repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::Orphans;

    #[test]
    fn bytes_past_the_checks_leave_a_clean_kernel_undecided() {
        let site = OperandSite { unseen: Some(("4 bytes".into(), 1)), ..OperandSite::default() };
        let unseen = Operands { sites: [((0, 0), site)].into(), ..Operands::default() };
        let orphans = Operands { orphans: Orphans { first: Some(("4 bytes".into(), 1)) }, ..Operands::default() };
        for (operands, exit) in
            [(Operands::default(), Exit::Clean), (unseen, Exit::Undecided), (orphans, Exit::Undecided)]
        {
            assert_eq!(audited(Exit::Clean, Some(&operands)), exit, "{operands}");
            assert_eq!(audited(Exit::Findings, Some(&operands)), Exit::Findings, "{operands}");
        }
        assert_eq!(audited(Exit::Clean, None), Exit::Clean);
    }
}
