//! Runs the stages and writes the pack.

use std::collections::BTreeMap;
use std::time::Instant;

use launch::Finding;
use rayon::prelude::*;

use crate::assembly;
use crate::bench::Ahead;
use crate::case::Case;
use crate::code_files::{self, MachineCode};
use crate::cost::Cost;
use crate::figures::Subject;
use crate::kept::Kept;
use crate::machine::{self, Machine};
use crate::outcome::Outcome;
use crate::pack::manifest::{Claim, Manifest};
use crate::pack::{
    Files, MANIFEST, PAGE, Pack, REPORT, SAMPLES, SUMS, kernel_path, recipe_text, squeezed, sums, write,
};
use crate::report::{self, Facts};
use crate::stages::half::{GpuLog, Half};
use crate::stages::{Evidence, Log, Record, Stage, Subjects, assemble, code, parity, resources, sanitize, stress};
use crate::timeline;
use crate::{Error, Hardware, Progress, Request, Settings, Toolbox};

/// Runs every stage on every kernel and writes a pack.
///
/// A kernel that is wrong gives a pack with a failed stage; an error means that there is no pack.
pub fn prove(request: &Request, progress: &dyn Progress) -> Result<Pack, Error> {
    write::check_target(&request.folder)?;
    let bench = Bench::of(request, progress);
    let mut gathered = bench.gather(&request.tools, Kept::open(request).as_ref())?;
    gathered.cost.rate = request.rate.clone();
    let kernels = gathered.kernel_files(request);
    let (files, outcomes) = files(request, &gathered.evidence, kernels, &gathered.cost);
    if progress.interrupted() {
        return Err(Error::Interrupted);
    }
    write::write(&request.folder, &files)?;
    Ok(Pack { folder: request.folder.clone(), outcomes, findings: gathered.findings, cost: gathered.cost })
}

/// Everything in the pack: logs, what follows from them, and the files under `kernels/`.
pub(crate) fn files(request: &Request, evidence: &Evidence, kernels: Files, cost: &Cost) -> (Files, Vec<Outcome>) {
    let Request { cases, settings, command, tools, .. } = request;
    let measured = request.measured();
    let outcomes = evidence.outcomes(&Subjects::of(cases, measured));
    let mut files = kernels;
    files.extend(evidence.files().into_iter().map(|(path, text)| (path, text.into_bytes())));
    files.extend(samples(evidence).map(|samples| (SAMPLES.into(), samples)));
    let version = env!("CARGO_PKG_VERSION");
    let facts = Facts { version, command, cases, evidence, outcomes: &outcomes, cost };
    let page = report::html(&facts, &files);
    files.insert(PAGE.into(), page.into_bytes());
    files.insert(REPORT.into(), report::markdown(&facts).into_bytes());
    let machine = Machine::here(tools, request.hardware.as_ref().ok());
    let claim = Claim { command, settings, cases, measured, outcomes: &outcomes, machine, cost, time: machine::now() };
    files.insert(MANIFEST.into(), Manifest::new(claim, &files).text().into_bytes());
    files.insert(SUMS.into(), sums::render(&files).into_bytes());
    (files, outcomes)
}

/// Every raw sample of the stage `bench`.
pub(crate) fn samples(evidence: &Evidence) -> Option<Vec<u8>> {
    let Record::Ran(log) = &evidence.bench else { return None };
    Some(squeezed::squeeze(crate::bench::csv(&log.points).as_bytes()))
}

/// What stages left: their logs, and what they made on the way.
pub(crate) struct Gathered {
    pub evidence: Evidence,
    pub cost: Cost,
    findings: Vec<Finding>,
    machine_code: MachineCode,
}

impl Gathered {
    /// Everything under `kernels/`.
    pub fn kernel_files(&self, request: &Request) -> Files {
        let mut files = Files::new();
        for case in &request.cases {
            let text = case.kernel.parsed.source.text.clone();
            files.insert(kernel_path(&case.name, "kernel.ptx"), text.into_bytes());
            files.insert(kernel_path(&case.name, "kernel.toml"), recipe_text(case).into_bytes());
            files.extend(self.machine_code.files(case));
            files.extend(self.machine_code.driver_files(case));
        }
        for case in request.measured_only() {
            let text = squeezed::squeeze(case.kernel.parsed.source.text.as_bytes());
            files.insert(kernel_path(&case.name, "kernel.ptx.gz"), text);
            files.insert(kernel_path(&case.name, "kernel.toml"), recipe_text(case).into_bytes());
            files.extend(self.machine_code.driver_files(case));
        }
        files
    }
}

/// The place where stages run.
pub(crate) struct Bench<'a> {
    pub cases: &'a [Case],
    pub measured: &'a [Case],
    pub hardware: Result<&'a Hardware, &'a str>,
    pub settings: &'a Settings,
    pub progress: &'a dyn Progress,
}

/// Runs stages or keeps them, and writes down what that took.
struct Ledger<'a> {
    bench: &'a Bench<'a>,
    kept: Option<&'a Kept>,
    cost: Cost,
}

impl Ledger<'_> {
    fn stage<L: Log>(
        &mut self,
        of: fn(&Evidence) -> &Record<L>,
        run: impl FnOnce() -> Result<Record<L>, Error>,
    ) -> Result<Record<L>, Error> {
        if let Some((kept, record)) = self.kept.and_then(|kept| Some((kept, kept.record(of)?))) {
            self.cost.keep(L::STAGE, kept.cost());
            return self.bench.watch_all(0, || Ok(record.clone()));
        }
        let start = Instant::now();
        let record = run()?;
        self.cost.add(L::STAGE, start.elapsed());
        Ok(record)
    }

    /// What a GPU shows is never kept.
    fn half<L: GpuLog>(&mut self, run: impl FnOnce() -> Result<Half<L>, Error>) -> Result<Half<L>, Error> {
        let start = Instant::now();
        let half = run()?;
        if half != Half::NoGpu {
            self.cost.add(L::STAGE, start.elapsed());
        }
        Ok(half)
    }
}

/// Why a stage has no log.
enum Stop {
    Interrupted,
    Died(String),
}

impl<'a> Bench<'a> {
    fn of(request: &'a Request, progress: &'a dyn Progress) -> Bench<'a> {
        let hardware = request.hardware.as_ref().map_err(String::as_str);
        let Request { cases, settings, .. } = request;
        Bench { cases, measured: request.measured(), hardware, settings, progress }
    }

    /// Without a GPU.
    pub fn emulated(cases: &'a [Case], settings: &'a Settings, progress: &'a dyn Progress) -> Bench<'a> {
        Bench { cases, measured: &[], hardware: Err("no GPU was asked for"), settings, progress }
    }
}

impl Bench<'_> {
    /// The records of all stages: those that `kept` has, and those that run now.
    pub fn gather(&self, tools: &Toolbox, kept: Option<&Kept>) -> Result<Gathered, Error> {
        let ahead = self.hardware.ok().map(|hardware| Ahead::begin(&hardware.workers, &hardware.peers, self.measured));
        let (mut ledger, mut findings) = (Ledger { bench: self, kept, cost: Cost::default() }, Vec::new());
        let mut machine_code = MachineCode::default();
        let assemble = ledger.stage(
            |evidence| &evidence.assemble,
            || {
                let (record, made) = self.assemble(tools)?;
                machine_code = made;
                Ok(record)
            },
        )?;
        if let (Some(kept), true, Record::Ran(log)) = (kept, ledger.cost.is_kept(Stage::Assemble), &assemble) {
            let (assembly, disassembly) = kept.machine_code(log);
            machine_code = MachineCode { assembly, disassembly, ..MachineCode::default() };
        }
        let parity = ledger.stage(|evidence| &evidence.parity, || self.parity())?;
        let parity_gpu = ledger.half(|| self.parity_gpu(&parity))?;
        let sanitize = ledger.stage(
            |evidence| &evidence.sanitize,
            || {
                let (record, found) = self.sanitize()?;
                findings = found;
                Ok(record)
            },
        )?;
        let sanitize_gpu = ledger.half(|| self.sanitize_gpu())?;
        let stress = ledger.stage(|evidence| &evidence.stress, || self.stress())?;
        let stress_gpu = ledger.half(|| self.stress_gpu())?;
        let resources =
            ledger.stage(|evidence| &evidence.resources, || self.watch_all(0, || Ok(self.resources(&assemble))))?;
        let mut driven = Vec::new();
        let resources_gpu = ledger.half(|| self.resources_gpu(&mut driven))?;
        let code = ledger.stage(
            |evidence| &evidence.code,
            || {
                let cubins: Vec<_> = machine_code.assembly.values().filter_map(|made| made.cubin.as_ref()).collect();
                let made = tools.nvdisasm.as_ref().map(|nvdisasm| code_files::disassemble(&cubins, nvdisasm));
                machine_code.disassembly = made.unwrap_or_default();
                self.watch_all(0, || Ok(self.code(&assemble, tools, &machine_code)))
            },
        )?;
        let code_gpu = ledger.half(|| self.code_gpu(&driven, tools, &mut machine_code))?;
        let bench = ledger.stage(
            |evidence| &evidence.bench,
            || {
                ahead.into_iter().for_each(Ahead::wait);
                self.bench()
            },
        )?;
        let profile = ledger.stage(|evidence| &evidence.profile, || self.profile())?;
        let evidence = Evidence {
            assemble,
            parity,
            parity_gpu,
            sanitize,
            sanitize_gpu,
            stress,
            stress_gpu,
            resources,
            resources_gpu,
            code,
            code_gpu,
            bench,
            profile,
        };
        Ok(Gathered { evidence, cost: ledger.cost, findings, machine_code })
    }

    /// Tells progress how a stage of all cases that are emulated begins and ends.
    fn watch_all<L: Log>(
        &self,
        steps: usize,
        run: impl FnOnce() -> Result<Record<L>, Error>,
    ) -> Result<Record<L>, Error> {
        let subjects: Vec<Subject> = self.cases.iter().map(Case::subject).collect();
        self.watch(&subjects, steps, run)
    }

    /// Tells progress how a stage begins and ends.
    pub(crate) fn watch<L: Log>(
        &self,
        subjects: &[Subject],
        steps: usize,
        run: impl FnOnce() -> Result<Record<L>, Error>,
    ) -> Result<Record<L>, Error> {
        self.progress.begin(L::STAGE, steps);
        let record = run()?;
        self.progress.end(&Outcome::of(&record, subjects));
        if self.progress.interrupted() { Err(Error::Interrupted) } else { Ok(record) }
    }

    pub fn assemble(&self, tools: &Toolbox) -> Result<(Record<assemble::Report>, MachineCode), Error> {
        let mut machine_code = MachineCode::default();
        let targets = self.settings.targets();
        let record = self.watch_all(0, || {
            let Some(ptxas) = &tools.ptxas else {
                return Ok(Record::Ran(assemble::run(self.cases, &targets, None)));
            };
            Ok(Record::from(assembly::assemble(self.cases, &targets, ptxas).map(|assembly| {
                let report = assemble::run(self.cases, &targets, Some((&ptxas.version, &assembly)));
                machine_code.assembly = assembly;
                report
            })))
        })?;
        Ok((record, machine_code))
    }

    pub fn parity(&self) -> Result<Record<parity::Report>, Error> {
        self.watch_all(parity::steps(self.cases), || {
            let Settings { data_seed, instruction_budget, .. } = *self.settings;
            let one = |case: &Case| parity::run(case, data_seed, instruction_budget, &|| self.progress.step());
            let kernels = self.cases.par_iter().map(|case| self.unless_interrupted(|| one(case))).collect();
            record(kernels).map(|kernels| map(kernels, |kernels| parity::Report { kernels }))
        })
    }

    pub fn sanitize(&self) -> Result<(Record<sanitize::Report>, Vec<Finding>), Error> {
        let Settings { data_seed, instruction_budget, ref seeds, .. } = *self.settings;
        let mut findings = Vec::new();
        let jobs: Vec<(&Case, u64)> =
            self.cases.iter().flat_map(|case| seeds.iter().map(move |seed| (case, *seed))).collect();
        let record = self.watch_all(jobs.len(), || {
            let one = |&(case, seed): &(&Case, u64)| {
                let run = sanitize::run(case, data_seed, seed, instruction_budget);
                self.progress.step();
                run
            };
            let runs = jobs.par_iter().map(|job| self.unless_interrupted(|| one(job))).collect();
            let runs: Record<Vec<_>> = record(runs)?;
            Ok(map(runs, |runs| {
                let (runs, found): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
                findings = distinct(found.into_iter().flatten());
                sanitize_report(self.cases, self.settings, runs)
            }))
        })?;
        Ok((record, findings))
    }

    pub fn stress(&self) -> Result<Record<stress::Report>, Error> {
        let schedules = stress::schedules(self.settings);
        let jobs: Vec<(&Case, stress::Schedule)> =
            self.cases.iter().flat_map(|case| schedules.iter().map(move |schedule| (case, *schedule))).collect();
        let modules = stress::by_module(self.cases);
        self.watch_all(jobs.len() + modules.len(), || record(self.stressed(&jobs, modules)))
    }

    /// Launches of every case, and then injected faults where these went well: only there does a mutant tell anything.
    fn stressed(
        &self,
        jobs: &[(&Case, stress::Schedule)],
        modules: Vec<(String, Vec<&Case>)>,
    ) -> Result<stress::Report, Stop> {
        let one = |&(case, schedule): &(&Case, stress::Schedule)| {
            let shown = stress::shown(case, schedule, self.settings);
            self.progress.step();
            shown
        };
        let runs: Vec<Vec<stress::Shown>> =
            jobs.par_iter().map(|job| self.unless_interrupted(|| one(job))).collect::<Result<_, Stop>>()?;
        let mut report = stress::Report::new(self.cases, runs);
        let interrupted = || self.progress.interrupted();
        for (module, cases) in modules {
            if !report.is_clean(&module) {
                continue;
            }
            let mutation = stress::mutate(module, &cases, self.settings, &interrupted).map_err(Stop::Died)?;
            report.mutations.push(mutation.ok_or(Stop::Interrupted)?);
            self.progress.step();
        }
        Ok(report)
    }

    pub fn resources(&self, assembled: &Record<assemble::Report>) -> Record<resources::Report> {
        match assembled {
            Record::Ran(assembled) => Record::from(resources::run(self.cases, assembled)),
            Record::NotRun { why } => Record::NotRun { why: why.clone() },
        }
    }

    fn code(&self, assembled: &Record<assemble::Report>, tools: &Toolbox, made: &MachineCode) -> Record<code::Report> {
        match (assembled, &tools.ptxas, &tools.nvdisasm) {
            (Record::NotRun { why }, ..) => Record::NotRun { why: why.clone() },
            (_, None, _) => Record::NotRun { why: code::missing("ptxas") },
            (_, _, None) => Record::NotRun { why: code::missing("nvdisasm") },
            (Record::Ran(assembled), _, Some(nvdisasm)) => {
                Record::from(code::run(self.cases, assembled, &nvdisasm.version, &made.disassembly))
            }
        }
    }

    fn unless_interrupted<T>(&self, run: impl FnOnce() -> Result<T, String>) -> Result<T, Stop> {
        if self.progress.interrupted() { Err(Stop::Interrupted) } else { run().map_err(Stop::Died) }
    }
}

fn record<T>(result: Result<T, Stop>) -> Result<Record<T>, Error> {
    match result {
        Ok(value) => Ok(Record::Ran(value)),
        Err(Stop::Died(why)) => Ok(Record::NotRun { why }),
        Err(Stop::Interrupted) => Err(Error::Interrupted),
    }
}

fn map<T, U>(record: Record<T>, with: impl FnOnce(T) -> U) -> Record<U> {
    match record {
        Record::Ran(value) => Record::Ran(with(value)),
        Record::NotRun { why } => Record::NotRun { why },
    }
}

fn sanitize_report(cases: &[Case], settings: &Settings, runs: Vec<sanitize::Run>) -> sanitize::Report {
    let (seeds, timeline) = (settings.seeds.len(), cases.first().and_then(|case| timeline::of(case, settings)));
    let mut runs = runs.into_iter();
    let entry = |case: &Case| sanitize::Entry { subject: case.subject(), runs: runs.by_ref().take(seeds).collect() };
    sanitize::Report { kernels: cases.iter().map(entry).collect(), timeline }
}

/// The first of each pair of lines and check: seeds repeat what one of them found.
fn distinct(findings: impl Iterator<Item = Finding>) -> Vec<Finding> {
    let mut distinct: BTreeMap<(String, u32, u32, &str), Finding> = BTreeMap::new();
    for finding in findings {
        let lines = (finding.first.line, finding.second.as_ref().map_or(0, |second| second.line));
        let key = (finding.first.file.clone(), lines.0.min(lines.1), lines.0.max(lines.1), finding.check);
        distinct.entry(key).or_insert(finding);
    }
    distinct.into_values().collect()
}
