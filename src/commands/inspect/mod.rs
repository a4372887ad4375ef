//! `inspect`: what ptxas makes of a kernel: registers, shared memory, occupancy, loops, machine code; of two, the difference.

mod difference;
mod json;
mod listing;
mod table;

use super::Exit;
use super::input::{BuiltIn, math, splits, told};
use super::output::{Format, print_json};
use attention::Problem;
use attention::configs::Math;
use attention::planner::Gpu;
use difference::Difference;
use lab::{BlockShape, Inspection, Toolbox};
use launch::{Kernel, Recipe, header, module_text};
use ptx::Target;
use std::path::{Path, PathBuf};

/// Threads in a block on every GPU, and shared memory on the one that has most of it, sm_90: CUDA C++ Programming Guide, compute
/// capabilities.
const MOST_THREADS: i64 = 1024;
const MOST_SHARED_BYTES: i64 = 227 * 1024;

/// Shows what ptxas makes of a kernel: registers, shared memory, occupancy, what its loops are made of, its machine code; and how two kernels differ
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash inspect kernel.ptx\n  veriflash inspect kernel.ptx --arch sm_80,sm_90 --sass      machine code with its marks\n  veriflash inspect old.ptx new.ptx                          resources and loops side by side\n  veriflash inspect old.ptx new.ptx --sass                   and a diff of the machine code\n  veriflash inspect --problem 'B2 H8 S512 D64' --config 9\n  veriflash inspect --problem 'B2 H8 S512 D64' --against-debug\n  veriflash inspect --problem 'B2 H8 S512 D64' --config 5 --against-config 9\n\nptxas and nvdisasm are needed; `veriflash doctor` says how to get them. Without them the exit code is 4."
)]
pub struct Arguments {
    /// A `.ptx` or `.cu`, with a recipe or without one, or a `.toml`; a second one is compared with the first
    #[arg(value_name = "KERNEL", required_unless_present = "problem", conflicts_with = "problem", num_args = 1..=2)]
    files: Vec<PathBuf>,

    /// A kernel of ours instead, for this problem, such as `B2 H8 S512 D64 causal`
    #[arg(long, value_name = "PROBLEM")]
    problem: Option<Problem>,

    /// The number of its configuration; unless given, the planner chooses for the first of `--arch`
    #[arg(long, requires = "problem", conflicts_with = "files")]
    config: Option<u32>,

    /// What multiplies: `tensor` cores, or `scalar`, the baseline of configs 1 to 5
    #[arg(long, value_parser = math, requires = "problem", conflicts_with = "files")]
    math: Option<Math>,

    /// With assertions compiled in
    #[arg(long, requires = "problem", conflicts_with = "files")]
    debug: bool,

    /// With `--config`: into how many blocks the keys of one block of queries are split
    #[arg(long, value_name = "N", requires = "config", value_parser = splits)]
    splits: Option<u32>,

    /// Compare with the kernel in this file
    #[arg(long, value_name = "KERNEL")]
    against: Option<PathBuf>,

    /// Compare with this configuration of the same problem
    #[arg(long, value_name = "CONFIG", requires = "problem", conflicts_with_all = ["files", "against", "against_debug"])]
    against_config: Option<u32>,

    /// Compare with the same kernel with assertions compiled in
    #[arg(long, requires = "problem", conflicts_with_all = ["files", "against", "debug"])]
    against_debug: bool,

    /// Targets that ptxas assembles for, such as `sm_80,sm_90`; the kernel's own unless given. `sm_90` stands for the `sm_90a` of a
    /// kernel that is made for that alone
    #[arg(long, value_delimiter = ',', value_name = "TARGET", value_parser = target)]
    arch: Vec<Target>,

    /// Threads in a block, for occupancy; what the recipe says unless given
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=MOST_THREADS))]
    block: Option<u32>,

    /// Dynamic shared memory of a block in bytes; what the recipe says unless given
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=MOST_SHARED_BYTES))]
    shared: Option<u32>,

    /// Prints the machine code too, every line with its mark and its loops; of two kernels, a diff
    #[arg(long)]
    sass: bool,

    /// In a diff, instructions that differ in the numbers of registers alone differ
    #[arg(long, requires = "sass")]
    registers: bool,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|()| "expected an architecture such as sm_80 or sm_90a".into())
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (kernel, against) = (arguments.kernel()?, arguments.against()?);
    let tools = Toolbox::find();
    let shape = BlockShape { threads: arguments.block, shared_bytes: arguments.shared };
    let inspect = |kernel: &Kernel| lab::inspect(kernel, &arguments.arch, shape, &tools);
    let mut inspections = vec![inspect(&kernel)?];
    if let Some(against) = &against {
        inspections.push(inspect(against)?);
    }
    let difference = match &inspections[..] {
        [left, right] => Some(Difference::new(left, right, arguments.registers)),
        _ => None,
    };
    match arguments.format {
        Format::Json => {
            let document = json::document(&inspections, difference.as_ref(), arguments.sass);
            print_json("inspect", Exit::Clean.verdict(), Exit::Clean, document);
        }
        Format::Text => arguments.print(&inspections, difference.as_ref()),
    }
    Ok(Exit::Clean)
}

impl Arguments {
    fn kernel(&self) -> anyhow::Result<Kernel> {
        match self.files.first() {
            Some(file) => self.open(file),
            None => self.built_in(self.config, self.debug),
        }
    }

    fn against(&self) -> anyhow::Result<Option<Kernel>> {
        let second = self.files.get(1);
        anyhow::ensure!(second.is_none() || self.against.is_none(), "`--against` and a second kernel: leave one out");
        if let Some(file) = second.or(self.against.as_ref()) {
            return self.open(file).map(Some);
        }
        if self.against_debug {
            return self.built_in(self.config, true).map(Some);
        }
        self.against_config.map(|config| self.built_in(Some(config), self.debug)).transpose()
    }

    fn built_in(&self, config: Option<u32>, debug: bool) -> anyhow::Result<Kernel> {
        let (problem, math, splits) = (self.problem.clone(), self.math, self.splits);
        let arch = self.arch.first().and_then(|target| Gpu::by_arch(&format!("sm_{}", target.sm)));
        BuiltIn { problem, config, math, debug, splits, arch: arch.map(Into::into) }.kernel()
    }

    /// A kernel in a file; one in CUDA C++ is compiled for the first target.
    fn open(&self, file: &Path) -> anyhow::Result<Kernel> {
        if !lab::is_source(file) {
            return open(file);
        }
        let text = module_text::read(file)?;
        let recipe = lab::recipe(file, &text)?.unwrap_or_default();
        Ok(told(lab::translate(file, &text, self.arch.first().copied(), recipe)?))
    }

    fn print(&self, inspections: &[Inspection], difference: Option<&Difference>) {
        let Some(difference) = difference else {
            anstream::print!("{}", table::kernel(&inspections[0]));
            if self.sass {
                anstream::print!("\n{}", listing::kernel(&inspections[0]));
            }
            return;
        };
        anstream::print!("{}", difference.table());
        if self.sass {
            anstream::print!("\n{}", difference.code());
        }
    }
}

/// A kernel in a file; machine code needs no recipe.
fn open(file: &Path) -> anyhow::Result<Kernel> {
    let is_recipe = |file: &Path| file.extension().is_some_and(|extension| extension == "toml");
    if is_recipe(file) || module_text::unpacked_name(file).with_extension("toml").is_file() {
        return Ok(Kernel::open(file)?);
    }
    let (name, text) = (file.display().to_string(), module_text::read(file)?);
    match header::read(&name, &text)? {
        Some(_) => Ok(Kernel::open(file)?),
        None => Ok(Kernel::with_text(&name, &text, Recipe::default())?),
    }
}
