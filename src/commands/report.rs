//! `report`: what a pack says, as a page or as a summary.

use super::{Exit, file};
use lab::ReportFormat;
use std::path::PathBuf;

/// Prints the report of a pack: a page with verdict, evidence, charts, findings and machine code, or its summary
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash report pack --out report.html     one file, to open in any browser\n  veriflash report pack --format md           the summary, as Markdown\n  veriflash report pack --format md >> \"$GITHUB_STEP_SUMMARY\"\n\nThe pack is checked first as by `veriflash verify --no-rerun`; a pack that is broken has no report, and the exit code is 4.\nLinks of the page name files of the pack: they lead somewhere where it lies in the pack's folder, as `report.html` there does."
)]
pub struct Arguments {
    /// The folder of the pack
    pack: PathBuf,

    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    /// Write it into this file; a file that is there is replaced
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    /// One page with everything, which loads nothing
    #[default]
    Html,
    /// The summary, as Markdown
    Md,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let format = match arguments.format {
        Format::Html => ReportFormat::Html,
        Format::Md => ReportFormat::Markdown,
    };
    arguments.out.iter().try_for_each(|path| file::check("--out", path))?;
    let text = lab::report(&arguments.pack, format)?;
    match &arguments.out {
        None => print!("{text}"),
        Some(path) => file::write("--out", path, &text)?,
    }
    Ok(Exit::Clean)
}
