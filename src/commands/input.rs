//! The kernel a command works on: a file, with its recipe in it, beside it, or in flags.

use anyhow::Context;
use attention::Problem;
use attention::configs::{BASELINE, Config, Math};
use attention::kernels::MAX_SPLITS;
use attention::planner::{self, Gpu};
use clap::Args;
use lab::Translation;
use launch::argument::Flags;
use launch::{Kernel, header};
use ptx::Target;
use std::path::{Path, PathBuf};

/// A kernel of ours.
#[derive(Args)]
pub struct BuiltIn {
    /// What to compute, such as `B2 H8 S512 D64 causal` or `f16 B2 H8/2 Sq97 Sk161 D192/128 window64/0`: D is the columns
    /// of Q and K, then of V and O where they differ, multiples of 8 from 16 to 256. Besides a mask (`full`, `causal`,
    /// `causal-top-left`, `window64/0`) it may have a score (`softcap30` or `alibi`), `sinks` and
    /// `documents`; `Sq97,33 Sk161,40` are sequences of these lengths, one behind the other
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Option<Problem>,

    /// How to compute it: the number of a configuration, 1 to 9 and 20 to 23 (few queries, and heads that share keys) for sm_80 and
    /// later, 10 to 19 for sm_90a alone (the emulator runs all of them). Config 6 takes heads of any width, the others what has room in shared memory and registers; a refusal names
    /// those that have. Unless given, the planner chooses for `--arch`
    #[arg(long)]
    pub config: Option<u32>,

    /// What multiplies: `tensor` cores (unless given), or `scalar`, plain cores, which configs 1 to 5 have as a baseline.
    /// With `scalar` and without `--config` it is config 1
    #[arg(long, value_parser = math)]
    pub math: Option<Math>,

    /// Compiles in assertions (finite scores, sums that never shrink, stages in their turn, …): one that fails ends the
    /// launch and is reported with its block and lane
    #[arg(long)]
    pub debug: bool,

    /// With `--config`: into how many blocks the keys of one block of queries are split, 1 to 32 (1 unless given). For few
    /// queries and many keys; a second kernel, `attention_combine`, joins what they find
    #[arg(long, value_name = "N", requires = "config", value_parser = splits)]
    pub splits: Option<u32>,

    /// The GPU that the planner chooses for, `sm_80` (unless given), `sm_86`, `sm_89`, `sm_90`, `sm_100` or `sm_120`: its
    /// number of processors and its shared memory decide, by thresholds measured on sm_90 alone. The text itself says
    /// `.target sm_80`, which every later GPU runs, but for kernels that are made for sm_90a. A `.cu` is compiled for it, `sm_90a` included
    #[arg(long, value_parser = arch)]
    pub arch: Option<Arch>,
}

/// An architecture: what a compiler makes code for, and the GPU that the planner has in mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    pub target: Target,
    pub gpu: Gpu,
}

impl From<Gpu> for Arch {
    fn from(gpu: Gpu) -> Arch {
        let (major, minor) = gpu.capability;
        Arch { target: Target { sm: major * 10 + minor, specific: false }, gpu }
    }
}

/// Reads `--arch`.
pub fn arch(name: &str) -> Result<Arch, String> {
    let known = || Gpu::BY_ARCH.map(|(name, _)| name).join(", ");
    let gpu = Gpu::by_arch(name.strip_suffix('a').unwrap_or(name));
    let both = gpu.zip(name.parse().ok()).map(|(gpu, target)| Arch { target, gpu });
    both.ok_or_else(|| format!("expected one of {}, or sm_90a", known()))
}

pub fn math(name: &str) -> Result<Math, String> {
    let known = || Math::BY_NAME.map(|(name, _)| name).join(", ");
    Math::by_name(name).ok_or_else(|| format!("expected one of {}", known()))
}

pub fn splits(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|splits| (1..=MAX_SPLITS).contains(splits));
    number.ok_or_else(|| format!("expected 1 to {MAX_SPLITS}"))
}

impl BuiltIn {
    /// The kernel for the problem; the standard problem unless one is given.
    pub fn kernel(&self) -> anyhow::Result<Kernel> {
        self.kernel_of(None)
    }

    /// The same, for a problem that came in another way.
    pub fn kernel_of(&self, other: Option<Problem>) -> anyhow::Result<Kernel> {
        let problem = self.problem_or(other)?;
        let config = Config { debug: self.debug, ..self.config_for(&problem)? };
        Ok(attention::kernels::kernel(&problem, &config)?)
    }

    /// What the kernel is, and who chose it: the flags that name it again.
    pub fn chosen(&self, other: Option<Problem>) -> anyhow::Result<String> {
        let words = self.words_of(&self.problem_or(other)?);
        let asked = self.config.is_some() || self.math == Some(Math::Scalar);
        let arch = self.gpu();
        let (major, minor) = arch.capability;
        let model = if arch == Gpu::MEASURED { "" } else { " by a model: measured is sm_90 alone" };
        let planned = format!("\nnote: the planner chose it for `--arch sm_{major}{minor}`{model}");
        Ok(if asked { words } else { words + &planned })
    }

    fn gpu(&self) -> Gpu {
        self.arch.map_or(Gpu::A100, |arch| arch.gpu)
    }

    fn problem_or(&self, other: Option<Problem>) -> anyhow::Result<Problem> {
        let standard = || Problem::builder().build();
        Ok(other.or_else(|| self.problem.clone()).map_or_else(standard, Ok)?)
    }

    /// The configuration that was asked for, or the planner's.
    pub fn config_for(&self, problem: &Problem) -> anyhow::Result<Config> {
        let math = self.math.unwrap_or(Math::Tensor);
        let baseline = (math == Math::Scalar).then_some(BASELINE);
        let Some(id) = self.config.or(baseline) else {
            return Ok(planner::plan(problem, &self.gpu())?);
        };
        self.config_of(id)
    }

    /// The configuration of that number, as the other flags have it.
    pub fn config_of(&self, id: u32) -> anyhow::Result<Config> {
        let unknown = || format!("there is no config {id}: expected one of {}", Config::ids());
        let config = Config::by_id(id).with_context(unknown)?;
        let math = self.math.unwrap_or(Math::Tensor);
        Ok(Config { splits: self.splits.unwrap_or(config.splits), ..config.with_math(math)? })
    }

    /// A kernel in a file is what it is, and has its assertions, or has none; one in CUDA C++ is compiled for an architecture.
    pub fn refuse_beside_file(&self, file: &Path) -> anyhow::Result<()> {
        let help = "print one with `veriflash ptx --debug`, or give a `--problem`";
        anyhow::ensure!(!self.debug, "`--debug` compiles assertions into kernels of ours, not into a file: {help}");
        let BuiltIn { config, math, splits, arch, .. } = self;
        let given = [
            ("config", config.is_some()),
            ("math", math.is_some()),
            ("splits", splits.is_some()),
            ("arch", arch.is_some() && !lab::is_source(file)),
        ];
        let Some((flag, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        anyhow::bail!(
            "`--{flag}` asks for a kernel of ours, and this one is in a file: leave it out, or give a `--problem`"
        )
    }

    /// The flags that name this kernel again; none if no problem was given.
    pub fn words(&self) -> Option<String> {
        self.problem.as_ref().map(|problem| self.words_of(problem))
    }

    fn words_of(&self, problem: &Problem) -> String {
        let planned = self.config_for(problem).ok();
        let config = self.config.or(planned.map(|config| config.id));
        let config = config.map_or(String::new(), |id| format!(" --config {id}"));
        let math = if self.math == Some(Math::Scalar) { " --math scalar" } else { "" };
        let splits = self.splits.or(planned.map(|config| config.splits)).filter(|splits| *splits > 1);
        let splits = splits.map_or(String::new(), |splits| format!(" --splits {splits}"));
        let debug = if self.debug { " --debug" } else { "" };
        format!("--problem {}{config}{math}{splits}{debug}", quoted(&problem.to_string()))
    }
}

#[derive(Args)]
pub struct Input {
    /// A `.ptx` whose header is its recipe, a `.ptx` with a `.toml` of the same name beside it, or such a `.toml`; or a `.cu` in
    /// place of the `.ptx`, which nvcc or NVRTC compiles
    #[arg(required_unless_present = "problem", conflicts_with = "problem")]
    file: Option<PathBuf>,

    #[command(flatten)]
    built_in: BuiltIn,

    #[command(flatten)]
    flags: RecipeFlags,
}

/// The recipe of a kernel that has none, in flags.
#[derive(Args)]
pub struct RecipeFlags {
    /// An argument: `x=bf16[1024,128]:normal(1.0)` is a buffer, `n=u32:1024` a number; in the order of the parameters
    #[arg(long = "arg", value_name = "NAME=TYPE…", conflicts_with = "problem")]
    args: Vec<String>,

    /// Blocks, such as `8` or `8,2,1`, one unless given; expressions may use the names of `--arg`
    #[arg(long, conflicts_with = "problem")]
    grid: Option<String>,

    /// Threads per block, such as `128` or `32,4,1`, one unless given
    #[arg(long, conflicts_with = "problem")]
    block: Option<String>,

    /// Blocks per cluster, such as `2` or `2,1,1`; no clusters unless given
    #[arg(long, conflicts_with = "problem")]
    cluster: Option<String>,

    /// Dynamic shared memory in bytes
    #[arg(long, conflicts_with = "problem")]
    shared: Option<String>,

    /// The entry to launch; not needed when the module has one
    #[arg(long, conflicts_with = "problem")]
    entry: Option<String>,
}

impl Input {
    /// The command line that names this kernel again.
    pub fn repeat(&self, command: &str) -> String {
        let mut words = vec!["veriflash".to_string(), command.to_string()];
        words.extend(self.file.as_ref().map(|file| quoted(&file.display().to_string())));
        words.extend(self.built_in.words());
        words.extend(self.flags.words());
        words.join(" ")
    }

    /// Problem and configuration of a kernel of ours; nothing of one in a file.
    pub fn design(&self) -> anyhow::Result<Option<(Problem, Config)>> {
        if self.file.is_some() {
            return Ok(None);
        }
        let problem = self.built_in.problem_or(None)?;
        let config = Config { debug: self.built_in.debug, ..self.built_in.config_for(&problem)? };
        Ok(Some((problem, config)))
    }

    pub fn kernel(&self) -> anyhow::Result<Kernel> {
        let Some(file) = &self.file else { return self.built_in.kernel() };
        self.built_in.refuse_beside_file(file)?;
        self.flags.open(file, self.built_in.arch)
    }
}

/// The kernel of a source in CUDA C++; what the compiler has to say is said, as it would say it itself.
pub fn told(translation: Translation) -> Kernel {
    let Translation { kernel, compiler, warnings } = translation;
    warnings.iter().for_each(|warnings| eprintln!("{compiler}: {warnings}"));
    kernel
}

impl RecipeFlags {
    /// The kernel in a file, with the recipe that belongs to it, or that of the flags.
    pub fn open(&self, file: &Path, arch: Option<Arch>) -> anyhow::Result<Kernel> {
        let target = arch.map(|arch| arch.target);
        if self.args.is_empty() && self.single().next().is_none() {
            return if lab::is_source(file) {
                Ok(told(lab::open_source(file, target)?))
            } else {
                Ok(Kernel::open(file)?)
            };
        }
        let name = file.display().to_string();
        let recipe = file.with_extension("toml");
        if recipe.is_file() {
            let recipe = recipe.display();
            anyhow::bail!(
                "{recipe} is the recipe of this kernel: leave out `--arg`, `--grid` and `--block`, or remove it"
            );
        }
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        if header::read(&name, &text)?.is_some() {
            anyhow::bail!(
                "{name} carries a recipe: leave out `--arg`, `--grid` and `--block`, or remove its `//@` lines"
            );
        }
        let flags = Flags {
            entry: self.entry.clone(),
            grid: self.grid.clone().unwrap_or("1".into()),
            block: self.block.clone().unwrap_or("1".into()),
            cluster: self.cluster.clone(),
            shared: self.shared.clone(),
            args: self.args.clone(),
        };
        let recipe = flags.recipe()?;
        if lab::is_source(file) {
            return Ok(told(lab::translate(file, &text, target, recipe)?));
        }
        Ok(Kernel::with_text(&name, &text, recipe)?)
    }

    /// Those that stand once.
    fn single(&self) -> impl Iterator<Item = (&str, &String)> {
        let RecipeFlags { entry, grid, block, cluster, shared, .. } = self;
        let all = [("entry", entry), ("grid", grid), ("block", block), ("cluster", cluster), ("shared", shared)];
        all.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)))
    }

    /// The flags as a shell reads them back.
    fn words(&self) -> impl Iterator<Item = String> {
        let flags = self.single().chain(self.args.iter().map(|value| ("arg", value)));
        flags.map(|(flag, value)| format!("--{flag} {}", quoted(value)))
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./,=:".contains(letter);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_has_its_flags() {
        let flags = |args: &[&str]| Input {
            file: Some("a b.ptx".into()),
            built_in: BuiltIn { problem: None, config: None, math: None, debug: false, splits: None, arch: None },
            flags: RecipeFlags {
                args: args.iter().map(ToString::to_string).collect(),
                grid: Some("8,2,1".into()),
                block: None,
                cluster: Some("2".into()),
                shared: None,
                entry: None,
            },
        };
        assert_eq!(flags(&["n=u32:4"]).repeat("run"), "veriflash run 'a b.ptx' --grid 8,2,1 --cluster 2 --arg n=u32:4");
        assert_eq!(
            flags(&["x=f32[4]"]).repeat("run"),
            "veriflash run 'a b.ptx' --grid 8,2,1 --cluster 2 --arg 'x=f32[4]'"
        );
    }

    #[test]
    fn the_command_that_repeats_a_planned_kernel_names_its_configuration() {
        let named = |config, math, debug, arch| {
            let problem = "B1 H32 S1024 D64".parse().ok();
            BuiltIn { problem, config, math: Some(math), debug, splits: None, arch: Some(Arch::from(arch)) }.words()
        };
        let words = |config, arch| named(config, Math::Tensor, false, arch);
        assert_eq!(words(None, Gpu::A100).unwrap(), "--problem 'f16 B1 H32 S1024 D64 full' --config 8");
        assert_eq!(words(None, Gpu::H200).unwrap(), "--problem 'f16 B1 H32 S1024 D64 full' --config 11");
        assert_eq!(words(Some(5), Gpu::H200).unwrap(), "--problem 'f16 B1 H32 S1024 D64 full' --config 5");
        let scalar = |config| named(config, Math::Scalar, false, Gpu::H200).unwrap();
        assert_eq!(scalar(None), "--problem 'f16 B1 H32 S1024 D64 full' --config 1 --math scalar");
        assert_eq!(scalar(Some(5)), "--problem 'f16 B1 H32 S1024 D64 full' --config 5 --math scalar");
        let debug = named(Some(5), Math::Tensor, true, Gpu::H200).unwrap();
        assert_eq!(debug, "--problem 'f16 B1 H32 S1024 D64 full' --config 5 --debug");
        let problem = "B1 H8 Sq1 Sk8192 D128".parse().ok();
        let split = BuiltIn {
            problem,
            config: Some(5),
            math: None,
            debug: false,
            splits: Some(16),
            arch: Some(Gpu::H200.into()),
        };
        assert_eq!(split.words().unwrap(), "--problem 'f16 B1 H8 Sq1 Sk8192 D128 full' --config 5 --splits 16");
        let planned = BuiltIn { config: None, splits: None, ..split };
        assert_eq!(planned.words().unwrap(), "--problem 'f16 B1 H8 Sq1 Sk8192 D128 full' --config 21 --splits 16");
    }
}
