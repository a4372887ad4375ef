//! The kernel a command works on: a file, with its recipe in it, beside it, or in flags.

use clap::Args;
use launch::argument::Flags;
use launch::{Kernel, header};
use std::path::PathBuf;

#[derive(Args)]
pub struct Input {
    /// A `.ptx` whose header is its recipe, a `.ptx` with a `.toml` of the same name beside it, or such a `.toml`
    pub file: PathBuf,

    /// An argument: `x=bf16[1024,128]:normal(1.0)` is a buffer, `n=u32:1024` a number; in the order of the parameters
    #[arg(long = "arg", value_name = "NAME=TYPE…")]
    pub args: Vec<String>,

    /// Blocks, such as `8` or `8,2,1`, one unless given; expressions may use the names of `--arg`
    #[arg(long)]
    pub grid: Option<String>,

    /// Threads per block, such as `128` or `32,4,1`, one unless given
    #[arg(long)]
    pub block: Option<String>,

    /// Dynamic shared memory in bytes
    #[arg(long)]
    pub shared: Option<String>,

    /// The entry to launch; not needed when the module has one
    #[arg(long)]
    pub entry: Option<String>,
}

impl Input {
    pub fn kernel(&self) -> anyhow::Result<Kernel> {
        let flags = [&self.grid, &self.block, &self.shared, &self.entry].iter().any(|flag| flag.is_some());
        if self.args.is_empty() && !flags {
            return Ok(Kernel::open(&self.file)?);
        }
        let text =
            std::fs::read_to_string(&self.file).map_err(|error| anyhow::anyhow!("{}: {error}", self.file.display()))?;
        let name = self.file.display().to_string();
        if header::read(&name, &text)?.is_some() {
            anyhow::bail!(
                "{name} carries a recipe: leave out `--arg`, `--grid` and `--block`, or remove its `//@` lines"
            );
        }
        let flags = Flags {
            entry: self.entry.clone(),
            grid: self.grid.clone().unwrap_or("1".into()),
            block: self.block.clone().unwrap_or("1".into()),
            shared: self.shared.clone(),
            args: self.args.clone(),
        };
        Ok(Kernel::with_text(&name, &text, flags.recipe()?)?)
    }
}
