//! `--trace`: where the timeline of a run goes.

use anyhow::Context;
use launch::backend::Trace;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct TraceTo {
    /// Write a timeline of one schedule, for <https://ui.perfetto.dev>: warps, their waits, copies and products in
    /// flight. `sanitize` draws the schedule of its first finding, else its first. At most 500,000 events
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// How many blocks of each launch the timeline shows, the first ones; a cluster is shown whole
    #[arg(long, value_name = "N", default_value_t = 4, requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    trace_blocks: u64,
}

impl TraceTo {
    /// How many blocks are traced; zero: nobody asked.
    pub fn blocks(&self) -> u64 {
        if self.trace.is_some() { self.trace_blocks } else { 0 }
    }

    /// Writes the timeline, and says so beside the result.
    pub fn write(&self, trace: Option<&Trace>) -> anyhow::Result<()> {
        let (Some(path), Some(trace)) = (&self.trace, trace) else { return Ok(()) };
        replace(path, &trace.json).with_context(|| format!("cannot write the trace to {}", path.display()))?;
        let cut = if trace.cut { "; later ones are left out" } else { "" };
        let (blocks, events) = (trace.blocks, trace.events);
        eprintln!("trace: {} (blocks: {blocks}, events: {events}{cut})", path.display());
        Ok(())
    }
}

/// A file is there whole, or as it was before.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // What is left of it, if anything, is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    written
}
