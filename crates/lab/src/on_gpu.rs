//! The stages, and halves of stages, that a GPU runs.

use crate::case::Case;
use crate::code_files::{self, MachineCode};
use crate::figures::Subject;
use crate::gpu::{Driven, drive};
use crate::outcome::Outcome;
use crate::prove::Bench;
use crate::stages::half::{GpuLog, Half};
use crate::stages::{Record, bench, code, launched, parity, profile, resources, sanitize, stress};
use crate::{Error, Hardware, Toolbox};

impl Bench<'_> {
    /// Runs a half where there is a GPU.
    fn half<L: GpuLog>(
        &self,
        cases: &[&Case],
        steps: usize,
        run: impl FnOnce(&Hardware) -> Result<L, String>,
    ) -> Result<Half<L>, Error> {
        let Ok(hardware) = self.hardware else { return Ok(Half::NoGpu) };
        self.progress.begin(L::STAGE, steps);
        let half = Half::from(run(hardware));
        let subjects: Vec<Subject> = cases.iter().map(|case| case.subject()).collect();
        self.progress.end(&Outcome::of_half(&half, &subjects));
        if self.progress.interrupted() { Err(Error::Interrupted) } else { Ok(half) }
    }

    /// Every kernel, emulated or measured; the bits of the former beside the emulator's.
    pub(crate) fn parity_gpu(&self, emulated: &Record<parity::Report>) -> Result<Half<parity::gpu::Report>, Error> {
        let cases = self.all();
        let emulated = if let Record::Ran(log) = emulated { Some(log) } else { None };
        self.half(&cases, cases.len(), |hardware| {
            let one = |case: &&Case| {
                let entry = parity::gpu::run(&hardware.cuda, case, self.settings.data_seed, emulated);
                self.progress.step();
                self.unless_stopped(entry)
            };
            Ok(parity::gpu::Report { kernels: cases.iter().map(one).collect::<Result<_, String>>()? })
        })
    }

    pub(crate) fn sanitize_gpu(&self) -> Result<Half<sanitize::gpu::Report>, Error> {
        let cases: Vec<&Case> = self.cases.iter().collect();
        self.half(&cases, sanitize::gpu::steps(cases.len()), |hardware| {
            sanitize::gpu::run(hardware, self.cases, &|| self.progress.step())
        })
    }

    pub(crate) fn stress_gpu(&self) -> Result<Half<stress::gpu::Report>, Error> {
        let cases = launched(self.cases, self.measured);
        self.half(&cases, cases.len(), |hardware| {
            let one = |case: &&Case| {
                let entry = stress::gpu::run(&hardware.cuda, case, self.settings);
                self.progress.step();
                self.unless_stopped(entry)
            };
            Ok(stress::gpu::Report { kernels: cases.iter().map(one).collect::<Result<_, String>>()? })
        })
    }

    /// Leaves what the driver makes of every kernel, emulated or measured.
    pub(crate) fn resources_gpu(&self, driven: &mut Vec<Driven>) -> Result<Half<resources::gpu::Report>, Error> {
        let cases = self.all();
        self.half(&cases, 0, |hardware| {
            *driven = drive(&hardware.cuda, &cases)?;
            resources::gpu::run(&cases, driven, hardware.cuda.device().capability)
        })
    }

    /// Leaves cubins and disassemblies for the pack.
    pub(crate) fn code_gpu(
        &self,
        driven: &[Driven],
        tools: &Toolbox,
        machine_code: &mut MachineCode,
    ) -> Result<Half<code::gpu::Report>, Error> {
        let cases = self.all();
        self.half(&cases, 0, |_| {
            let nvdisasm = tools.nvdisasm.as_ref().ok_or_else(|| code::missing("nvdisasm"))?;
            let firsts = code::gpu::firsts(&cases, driven);
            let cubins: Vec<_> = firsts.values().map(|(_, driven)| &driven.cubin).collect();
            machine_code.disassembly.extend(code_files::disassemble(&cubins, nvdisasm));
            machine_code.driven = firsts.values().map(|(case, one)| (case.name.clone(), one.cubin.clone())).collect();
            let text = |cubin: &str| machine_code.disassembly.get(cubin).map(String::as_str);
            code::gpu::run(&cases, driven, &nvdisasm.version, text)
        })
    }

    /// Every kernel, emulated or measured.
    fn all(&self) -> Vec<&Case> {
        self.cases.iter().chain(self.measured).collect()
    }

    pub(crate) fn bench(&self) -> Result<Record<bench::Report>, Error> {
        let hardware = match self.hardware {
            Ok(hardware) => hardware,
            Err(why) => return self.watch(&[], 0, || Ok(Record::without_gpu("peers to compare with", why))),
        };
        let subjects: Vec<Subject> = self.measured.iter().map(Case::subject).collect();
        self.watch(&subjects, self.measured.len(), || {
            let (step, interrupted) = (|| self.progress.step(), || self.progress.interrupted());
            Ok(Record::from(bench::run(hardware, self.measured, &step, &interrupted)))
        })
    }

    pub(crate) fn profile(&self) -> Result<Record<profile::Report>, Error> {
        let hardware = match self.hardware {
            Ok(hardware) => hardware,
            Err(why) => return self.watch(&[], 0, || Ok(Record::without_gpu("Nsight Compute", why))),
        };
        let chosen = profile::chosen(self.measured);
        let subjects: Vec<Subject> = chosen.iter().map(|(case, _)| case.subject()).collect();
        self.watch(&subjects, chosen.len(), || {
            Ok(Record::from(profile::run(hardware, self.measured, &|| self.progress.step())))
        })
    }

    fn unless_stopped<T>(&self, result: Result<T, String>) -> Result<T, String> {
        if self.progress.interrupted() { Err("interrupted".into()) } else { result }
    }
}
