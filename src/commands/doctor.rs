//! `doctor`: what this machine has, and the command that installs what is missing.

use super::Exit;
use super::output::{Format, print_json};
use lab::tools::{self, Tool};
use serde_json::{Value, json};

/// Lists the optional tools, the driver and the GPU that veriflash finds, and how to install what is missing
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  veriflash doctor\n  veriflash doctor --require ptxas,nvdisasm      exits 1 if one of them is missing\n  veriflash doctor --require gpu,torch           what measuring beside torch needs"
)]
pub struct Arguments {
    /// What must be there: names of the list
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    require: Vec<String>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Something optional.
struct Wanted {
    name: &'static str,
    /// What needs it.
    purpose: &'static str,
    /// The command that installs it.
    install: &'static str,
}

/// Of the CUDA toolkit, and of Python. pip has everything but Nsight Compute.
#[rustfmt::skip] // One row per line.
const TOOLS: [Wanted; 8] = [
    wanted("ptxas", "stages `assemble` and `resources` of `prove`, `inspect`, and proofs of `mutate`", tools::INSTALL),
    wanted("nvdisasm", "stage `code` of `prove`, and `inspect`", tools::INSTALL),
    wanted("compute-sanitizer", "a second opinion on a GPU", "pip install nvidia-cuda-sanitizer-api"),
    wanted("ncu", "profiles on a GPU", "apt-get install cuda-nsight-compute-13-0  # from NVIDIA's CUDA repository"),
    wanted("nvcc", "kernels in CUDA C++ (`--kernel my.cu`)", tools::INSTALL),
    wanted("nvrtc", "kernels in CUDA C++ (`--kernel my.cu`)", "pip install nvidia-cuda-nvrtc==13.0.88"),
    wanted("python3", "finds what pip installed, and measures beside peers", "apt-get install python3-venv"),
    wanted("torch", "peers: FlashAttention-2 and cuDNN", "pip install torch"),
];

const DRIVER: Wanted =
    wanted("driver", "everything on a GPU", "apt-get install nvidia-open  # from NVIDIA's CUDA repository");
const GPU: &str = "gpu";

const fn wanted(name: &'static str, purpose: &'static str, install: &'static str) -> Wanted {
    Wanted { name, purpose, install }
}

/// What this machine has, in the order of the list.
struct Found {
    tools: Vec<(&'static Wanted, Option<Tool>)>,
    /// The GPU and its driver, or why there is none.
    gpu: Result<String, cuda::Error>,
}

pub fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let names: Vec<&str> = TOOLS.iter().map(|wanted| wanted.name).chain([DRIVER.name, GPU]).collect();
    if let Some(unknown) = arguments.require.iter().find(|name| !names.contains(&name.as_str())) {
        anyhow::bail!("`--require {unknown}`: no such tool; expected one of {}", names.join(", "));
    }
    let found = Found::here();
    let exit = Exit::of_findings(arguments.require.iter().any(|name| found.lacks(name)));
    match arguments.format {
        Format::Json => print_json("doctor", exit.verdict(), exit, found.json()),
        Format::Text => found.print(),
    }
    Ok(exit)
}

impl Found {
    fn here() -> Found {
        let (python, torch) = tools::find_python();
        let find = |wanted: &Wanted| match wanted.name {
            "nvrtc" => tools::find_nvrtc(),
            "python3" => python.clone(),
            "torch" => torch.clone(),
            name => tools::find(name),
        };
        let gpu = cuda::Cuda::open(0).map(|backend| backend.device().to_string());
        Found { tools: TOOLS.iter().map(|wanted| (wanted, find(wanted))).collect(), gpu }
    }

    /// A driver that is too old or sees no GPU is one.
    fn has_driver(&self) -> bool {
        !matches!(self.gpu, Err(cuda::Error::NoDriver))
    }

    fn lacks(&self, name: &str) -> bool {
        let lacking = self.tools.iter().filter(|(_, tool)| tool.is_none()).map(|(wanted, _)| wanted.name);
        let driver = (!self.has_driver()).then_some(DRIVER.name);
        lacking.chain(driver).chain(self.gpu.is_err().then_some(GPU)).any(|one| one == name)
    }

    fn print(&self) {
        for (Wanted { name, purpose, install }, tool) in &self.tools {
            match tool {
                Some(tool) => println!("found    {name:<17} {} at {}", tool.version, tool.path.display()),
                None => println!("missing  {name:<17} needed by {purpose}; install with `{install}`"),
            }
        }
        let Wanted { name, purpose, install } = DRIVER;
        match self.has_driver() {
            true => println!("found    {name:<17} libcuda.so.1"),
            false => println!("missing  {name:<17} needed by {purpose}; install with `{install}`"),
        }
        match &self.gpu {
            Ok(device) => println!("found    {GPU:<17} {device}"),
            Err(why) => println!("missing  {GPU:<17} {why}"),
        }
        if let Some(note) = veriflash::cache_note() {
            println!("unused   {:<17} {note}", "cache");
        }
        let (checks, forms) = (emulator::checks::ALL.len(), ptx::forms::FORMS.len());
        println!("found    {:<17} {checks} checks, {forms} instruction forms", "emulator");
    }

    fn json(&self) -> Value {
        let tool = |(wanted, tool): &(&Wanted, Option<Tool>)| {
            json!({
                "tool": wanted.name,
                "purpose": wanted.purpose,
                "version": tool.as_ref().map(|tool| &tool.version),
                "path": tool.as_ref().map(|tool| tool.path.display().to_string()),
                "install": wanted.install,
            })
        };
        json!({
            "tools": self.tools.iter().map(tool).collect::<Vec<_>>(),
            "driver": { "found": self.has_driver(), "install": DRIVER.install },
            "gpu": { "device": self.gpu.as_ref().ok(), "why": self.gpu.as_ref().err().map(ToString::to_string) },
            "cache": { "note": veriflash::cache_note() },
            "emulator": { "checks": emulator::checks::ALL.len(), "forms": ptx::forms::FORMS.len() },
        })
    }
}
