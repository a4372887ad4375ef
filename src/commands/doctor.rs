//! `doctor`: what this machine has, and the command that installs what is missing.

use super::Exit;
use lab::tools;

/// Lists the optional tools and the GPU that veriflash finds, and how to install what is missing
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash doctor\n  veriflash doctor --require ptxas,nvdisasm      exits 1 if one of them is missing"
)]
pub struct Arguments {
    /// Tools that must be there
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    require: Vec<String>,
}

/// Name and what needs it.
const TOOLS: [(&str, &str); 2] =
    [("ptxas", "stages `assemble` and `resources` of `prove`"), ("nvdisasm", "stage `code` of `prove`")];

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(unknown) = arguments.require.iter().find(|name| !TOOLS.iter().any(|(tool, _)| tool == name)) {
        let names = TOOLS.map(|(name, _)| name).join(", ");
        anyhow::bail!("`--require {unknown}`: no such tool; expected one of {names}");
    }
    let found = TOOLS.map(|(name, purpose)| (name, purpose, tools::find(name)));
    for (name, purpose, tool) in &found {
        match tool {
            Some(tool) => println!("found    {name:<9} {} at {}", tool.version, tool.path.display()),
            None => println!("missing  {name:<9} needed by {purpose}; install with `{}`", tools::INSTALL),
        }
    }
    match cuda::Cuda::open(0) {
        Ok(backend) => println!("found    {:<9} {}", "GPU", backend.device()),
        Err(error) => println!("missing  {:<9} {error}", "GPU"),
    }
    println!(
        "found    {:<9} {} checks, {} instruction forms",
        "emulator",
        emulator::checks::ALL.len(),
        ptx::forms::FORMS.len()
    );
    let missing = found.iter().any(|(name, _, tool)| tool.is_none() && arguments.require.iter().any(|one| one == name));
    Ok(Exit::of_findings(missing))
}
