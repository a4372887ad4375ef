//! Tools of the CUDA toolkit, found at run time: nothing of them is needed to build, and each is optional.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What to run where a tool is missing.
pub const INSTALL: &str = "pip install nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm";

/// Prints where the active Python keeps its packages, one folder a line.
const SITES: &str = "import site, sysconfig\n\
    sites = [sysconfig.get_path('purelib'), *site.getsitepackages(), site.getusersitepackages()]\n\
    print(*dict.fromkeys(sites), sep='\\n')";

/// A program that was found and said its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub path: PathBuf,
    /// As in `13.0.88`.
    pub version: String,
}

/// The tools that stages use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolbox {
    pub ptxas: Option<Tool>,
    pub nvdisasm: Option<Tool>,
}

impl Toolbox {
    pub fn find() -> Toolbox {
        Toolbox { ptxas: find("ptxas"), nvdisasm: find("nvdisasm") }
    }

    /// As on a machine that has none.
    pub fn none() -> Toolbox {
        Toolbox::default()
    }
}

/// Looks in `VERIFLASH_TOOLS`, `PATH`, `CUDA_HOME/bin`, and `nvidia/*/bin` of the active Python's packages.
pub fn find(name: &str) -> Option<Tool> {
    let near = folders().into_iter().find_map(|folder| open(&folder.join(name)));
    // Python takes a while to start: it is asked last.
    near.or_else(|| python_folders().into_iter().find_map(|folder| open(&folder.join(name))))
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("VERIFLASH_TOOLS").map(PathBuf::from).into_iter().collect();
    folders.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
    folders.extend(env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin")));
    folders
}

fn python_folders() -> Vec<PathBuf> {
    let asked = Command::new("python3").args(["-c", SITES]).output();
    let Some(sites) = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok()) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = sites
        .lines()
        .filter_map(|site| Path::new(site).join("nvidia").read_dir().ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path().join("bin")))
        .collect();
    folders.sort();
    folders
}

fn open(path: &Path) -> Option<Tool> {
    if !path.is_file() {
        return None;
    }
    let output = Command::new(path).arg("--version").output().ok()?;
    let version = version(&String::from_utf8_lossy(&output.stdout))?;
    Some(Tool { path: path.into(), version })
}

/// `Cuda compilation tools, release 13.0, V13.0.88` says 13.0.88.
fn version(text: &str) -> Option<String> {
    let words = text.split_whitespace();
    let mut versions = words.filter_map(|word| word.strip_prefix('V'));
    versions.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(String::from)
}

impl Tool {
    /// Runs it; an error is one that kept it from running.
    pub(crate) fn run(&self, arguments: &[&std::ffi::OsStr]) -> Result<Output, String> {
        let output = Command::new(&self.path).args(arguments).output();
        output.map_err(|error| format!("{} did not run: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_tools_say() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nBuilt on Wed_Aug_20\n\
                    Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(version(text).as_deref(), Some("13.0.88"));
        assert_eq!(version("Version unknown"), None);
    }

    #[test]
    fn a_tool_that_does_not_exist_is_not_found() {
        assert_eq!(find("veriflash-no-such-tool"), None);
    }
}
