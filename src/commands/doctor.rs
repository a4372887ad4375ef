//! `doctor`: what this machine has, and the command that installs what is missing.

use super::Exit;
use super::output::{Format, print_json};
use lab::tools::{self, Tool};
use serde_json::{Value, json};

/// Lists the optional tools and the GPU that veriflash finds, and how to install what is missing
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash doctor\n  veriflash doctor --require ptxas,nvdisasm      exits 1 if one of them is missing"
)]
pub struct Arguments {
    /// Tools that must be there
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    require: Vec<String>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A tool, what needs it, and where it is.
struct Found {
    name: &'static str,
    purpose: &'static str,
    tool: Option<Tool>,
}

/// Name and what needs it.
const TOOLS: [(&str, &str); 2] = [
    ("ptxas", "stages `assemble` and `resources` of `prove`, and proofs of `mutate`"),
    ("nvdisasm", "stage `code` of `prove`"),
];

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(unknown) = arguments.require.iter().find(|name| !TOOLS.iter().any(|(tool, _)| tool == name)) {
        let names = TOOLS.map(|(name, _)| name).join(", ");
        anyhow::bail!("`--require {unknown}`: no such tool; expected one of {names}");
    }
    let found = TOOLS.map(|(name, purpose)| Found { name, purpose, tool: tools::find(name) });
    let gpu = cuda::Cuda::open(0).map(|backend| backend.device().to_string()).map_err(|error| error.to_string());
    let required = |one: &&Found| arguments.require.iter().any(|name| name == one.name);
    let exit = Exit::of_findings(found.iter().filter(required).any(|one| one.tool.is_none()));
    match arguments.format {
        Format::Json => print_json("doctor", exit.verdict(), exit, found_json(&found, &gpu)),
        Format::Text => print_found(&found, &gpu),
    }
    Ok(exit)
}

fn print_found(found: &[Found], gpu: &Result<String, String>) {
    for Found { name, purpose, tool } in found {
        match tool {
            Some(tool) => println!("found    {name:<9} {} at {}", tool.version, tool.path.display()),
            None => println!("missing  {name:<9} needed by {purpose}; install with `{}`", tools::INSTALL),
        }
    }
    match gpu {
        Ok(device) => println!("found    {:<9} {device}", "GPU"),
        Err(why) => println!("missing  {:<9} {why}", "GPU"),
    }
    if let Some(note) = veriflash::cache_note() {
        println!("unused   {:<9} {note}", "cache");
    }
    let (checks, forms) = (emulator::checks::ALL.len(), ptx::forms::FORMS.len());
    println!("found    {:<9} {checks} checks, {forms} instruction forms", "emulator");
}

fn found_json(found: &[Found], gpu: &Result<String, String>) -> Value {
    let tool = |one: &Found| {
        json!({
            "tool": one.name,
            "purpose": one.purpose,
            "version": one.tool.as_ref().map(|tool| &tool.version),
            "path": one.tool.as_ref().map(|tool| tool.path.display().to_string()),
            "install": tools::INSTALL,
        })
    };
    json!({
        "tools": found.iter().map(tool).collect::<Vec<_>>(),
        "gpu": { "device": gpu.as_ref().ok(), "why": gpu.as_ref().err() },
        "cache": { "note": veriflash::cache_note() },
        "emulator": { "checks": emulator::checks::ALL.len(), "forms": ptx::forms::FORMS.len() },
    })
}
