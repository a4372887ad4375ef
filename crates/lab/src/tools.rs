//! Tools of the CUDA toolkit, found at run time: nothing of them is needed to build, and each is optional.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use crate::process;

/// What to run where a tool is missing. Every part of the compiler is pinned: nvcc takes whatever nvvm is newest, which then writes
/// PTX that the ptxas beside it refuses. pip has no older nvdisasm than 13.2, and any reads what an older ptxas wrote.
pub const INSTALL: &str =
    "pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-nvdisasm==13.4.92";

/// The variable that names a folder of tools, which is looked into first.
const TOOLS: &str = "VERIFLASH_TOOLS";

/// How long an assembler or a disassembler may take over one module: the largest of the corpus take seconds.
const LONGEST: Duration = Duration::from_secs(600);

/// Prints where the active Python keeps its packages, one folder a line.
const SITES: &str = "import site, sysconfig\n\
    sites = [sysconfig.get_path('purelib'), *site.getsitepackages(), site.getusersitepackages()]\n\
    print(*dict.fromkeys(sites), sep='\\n')";

/// Prints where the active Python is and its version, and the same of torch; fails after two lines without it.
const PYTHON: &str = "import sys, platform, importlib.metadata as metadata, importlib.util as util\n\
    print(sys.executable, platform.python_version(), sep='\\n')\n\
    print(util.find_spec('torch').origin, metadata.version('torch'), sep='\\n')";

/// A program or a library that was found and said its version.
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
    near.or_else(|| PYTHON_FOLDERS.iter().find_map(|folder| open(&folder.join("bin").join(name))))
}

/// What is wrong with `VERIFLASH_TOOLS`, where it is set: tools from elsewhere would be used without a word.
pub fn complaint() -> Option<String> {
    env::var_os(TOOLS).and_then(|folder| complaint_of(Path::new(&folder)))
}

fn complaint_of(folder: &Path) -> Option<String> {
    let named = format!("{TOOLS} names {:?}", folder.display().to_string());
    if !folder.is_dir() {
        return Some(format!("{named}, which is no folder: tools are looked for elsewhere"));
    }
    let known = ["ptxas", "nvdisasm", "nvcc", "compute-sanitizer", "ncu"];
    let works = known.into_iter().any(|name| open(&folder.join(name)).is_some());
    let expected = known.join(", ");
    (!works)
        .then(|| format!("{named}, where no tool works: expected one of {expected}; tools are looked for elsewhere"))
}

/// The library that compiles CUDA C++ at run time, in the same places; its version is what its name says.
pub fn find_nvrtc() -> Option<Tool> {
    let mut folders: Vec<PathBuf> = env::var_os("LD_LIBRARY_PATH").iter().flat_map(env::split_paths).collect();
    folders.extend(env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("lib64")));
    let near = folders.iter().find_map(|folder| nvrtc(folder));
    near.or_else(|| PYTHON_FOLDERS.iter().find_map(|folder| nvrtc(&folder.join("lib"))))
}

/// `libnvrtc.so.13` is version 13.
fn nvrtc(folder: &Path) -> Option<Tool> {
    let mut names: Vec<String> =
        folder.read_dir().ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let version = |name: &String| Some(name.strip_prefix("libnvrtc.so.")?.to_string());
    names.iter().find_map(|name| Some(Tool { path: folder.join(name), version: version(name)? }))
}

/// The active Python, and its torch.
pub fn find_python() -> (Option<Tool>, Option<Tool>) {
    let asked = Command::new("python3").args(["-c", PYTHON]).output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let mut lines = said.lines();
    let mut tool = || Some(Tool { path: lines.next()?.into(), version: lines.next()?.into() });
    (tool(), tool())
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os(TOOLS).map(PathBuf::from).into_iter().collect();
    folders.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
    folders.extend(env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin")));
    folders
}

/// `nvidia/*` of the active Python's packages.
static PYTHON_FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(python_folders);

fn python_folders() -> Vec<PathBuf> {
    let asked = Command::new("python3").args(["-c", SITES]).output();
    let Some(sites) = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok()) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = sites
        .lines()
        .filter_map(|site| Path::new(site).join("nvidia").read_dir().ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
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

/// `Cuda compilation tools, release 13.0, V13.0.88` says 13.0.88, `Version 2025.3.1.0 (build 36400806)` 2025.3.1.0.
fn version(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let after = text.split_once("Version ").and_then(|(_, rest)| rest.split_whitespace().next());
    let mut joined = text.split_whitespace().filter_map(|word| word.strip_prefix('V'));
    joined.find(is_version).or(after.filter(is_version)).map(String::from)
}

impl Tool {
    /// Runs it in a folder; an error is one that kept it from running. The folder is not the current one, because ptxas
    /// writes size and time of the files that `.file` names into the cubin, where it finds them.
    pub(crate) fn run(&self, folder: &Path, arguments: &[&std::ffi::OsStr]) -> Result<Output, String> {
        // A relative path would be looked up from that folder.
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        process::ended(Command::new(path).args(arguments).current_dir(folder), LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_tool_sees_no_files_but_those_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let pwd = Tool { path: "/bin/pwd".into(), version: String::new() };
        let output = pwd.run(folder.path(), &[]).unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(Path::new(said.trim()), folder.path().canonicalize().unwrap());
    }

    #[test]
    fn versions_are_read_from_what_tools_say() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nBuilt on Wed_Aug_20\n\
                    Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(version(text).as_deref(), Some("13.0.88"));
        assert_eq!(version("Version unknown"), None);
        let text = "NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1.0 (build 36400806) (public-release)\n";
        assert_eq!(version(text).as_deref(), Some("2025.3.1.0"));
    }

    #[test]
    fn nvrtc_is_known_by_the_name_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(nvrtc(folder.path()), None);
        for name in ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13", "libnvrtc_static.a"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(nvrtc(folder.path()).map(|tool| tool.version).as_deref(), Some("13"));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_tools_that_is_none_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (tools, file) = (folder.path().join("tools"), folder.path().join("tools/ptxas"));
        let said = |path: &Path| complaint_of(path).unwrap_or_default();
        assert!(said(&tools).contains("which is no folder"), "{}", said(&tools));
        std::fs::create_dir(&tools).unwrap();
        assert!(said(&tools).contains("where no tool works: expected one of ptxas, "), "{}", said(&tools));
        std::fs::copy("/bin/false", &file).unwrap();
        assert!(said(&tools).contains("where no tool works"), "one that says no version is none");
        // Written by another process: one that this one writes is busy for as long as a child of another test has it open, too.
        let script = "printf '#!/bin/sh\necho release 13.0, V13.0.88\n' >tools/ptxas";
        assert!(Command::new("sh").args(["-c", script]).current_dir(&folder).status().unwrap().success());
        assert_eq!(complaint_of(&tools), None);
    }

    #[test]
    fn every_part_of_the_compiler_is_pinned_to_one_version() {
        let packages: Vec<&str> = INSTALL.split(' ').skip(2).collect();
        let compiler: Vec<&str> = packages.iter().filter_map(|package| package.strip_suffix("==13.0.88")).collect();
        assert_eq!(compiler, ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt"]);
        assert!(packages.iter().all(|package| package.contains("==")), "{INSTALL}");
    }

    #[test]
    fn a_tool_that_does_not_exist_is_not_found() {
        assert_eq!(find("veriflash-no-such-tool"), None);
    }
}
