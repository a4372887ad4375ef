//! Kernels in CUDA C++: nvcc makes PTX of them, or NVRTC where nvcc is missing or fails. The PTX is the kernel and what is
//! hashed; the recipe stands in `//@` lines at the head of the source, or in a `.toml` of the same name beside it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cuda::{Compiled, Nvrtc, NvrtcError};
use launch::{Kernel, Recipe, header, module_text};
use ptx::Target;

use crate::Error;
use crate::tools::{self, Tool};

/// A source, compiled.
#[derive(Clone, Debug)]
pub struct Translation {
    pub kernel: Kernel,
    /// As in `nvcc 13.0.88`.
    pub compiler: String,
    /// What the compiler said about the source, if anything.
    pub warnings: Option<String>,
}

/// Is it one that must be compiled?
pub fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "cu")
}

/// Compiles a source with its recipe, for the target, or the recipe's, or sm_80.
pub fn open_source(path: &Path, target: Option<Target>) -> Result<Translation, Error> {
    let text = module_text::read(path)?;
    let Some(recipe) = recipe(path, &text)? else {
        let message = "no recipe: expected leading lines that begin with `//@ `, or a .toml of the same name beside it";
        return Err(launch::Error::File { path: path.into(), message: message.into() }.into());
    };
    translate(path, &text, target, recipe)
}

/// The recipe that belongs to a source, if one does.
pub fn recipe(path: &Path, text: &str) -> Result<Option<Recipe>, Error> {
    if let Some(recipe) = header::read(&path.display().to_string(), text)? {
        return Ok(Some(recipe));
    }
    let beside = path.with_extension("toml");
    if !beside.is_file() {
        return Ok(None);
    }
    Ok(Some(Recipe::parse(&beside.display().to_string(), &module_text::read(&beside)?)?))
}

/// Compiles a source for a recipe that was read elsewhere.
pub fn translate(path: &Path, text: &str, target: Option<Target>, recipe: Recipe) -> Result<Translation, Error> {
    let target = target.or(recipe.target).unwrap_or(Target::SM_80);
    let made = compile(path, text, target)?;
    // The module is compiled for its target: nothing is left to replace.
    let recipe = Recipe { target: None, ptx: None, ..recipe };
    let name = path.with_extension("ptx").display().to_string();
    let kernel = Kernel::with_text(&name, &with_short_files(&made.compiled.ptx, path), recipe)?;
    let warnings = (!made.compiled.log.is_empty()).then_some(made.compiled.log);
    Ok(Translation { kernel, compiler: made.compiler, warnings })
}

struct Made {
    compiled: Compiled,
    compiler: String,
}

/// By nvcc, else by NVRTC.
fn compile(path: &Path, text: &str, target: Target) -> Result<Made, Error> {
    let by_nvcc = match tools::find("nvcc").map(|nvcc| with_nvcc(&nvcc, path, target)) {
        Some(Ok(made)) => return Ok(made),
        Some(Err(error)) => Some(error),
        None => None,
    };
    match tools::find_nvrtc().map(|nvrtc| with_nvrtc(&nvrtc, path, text, target)) {
        Some(Ok(made)) => Ok(made),
        Some(Err(error)) => Err(both(by_nvcc, error)),
        None => Err(by_nvcc.unwrap_or_else(|| Error::NoCompiler { path: path.into() })),
    }
}

/// nvcc may lack headers that NVRTC has, or the reverse: what each says is shown.
fn both(nvcc: Option<Error>, nvrtc: Error) -> Error {
    match (nvcc, nvrtc) {
        (
            Some(Error::Compilation { path, compiler, message }),
            Error::Compilation { compiler: other, message: more, .. },
        ) => Error::Compilation { path, compiler, message: format!("{message}\n{other} refuses it, too:\n{more}") },
        (_, nvrtc) => nvrtc,
    }
}

fn refused(path: &Path, compiler: &str, message: impl ToString) -> Error {
    Error::Compilation { path: path.into(), compiler: compiler.into(), message: message.to_string() }
}

fn with_nvcc(nvcc: &Tool, path: &Path, target: Target) -> Result<Made, Error> {
    let compiler = format!("nvcc {}", nvcc.version);
    let fail = |message: String| refused(path, &compiler, message);
    let folder = tempfile::tempdir().map_err(|error| fail(error.to_string()))?;
    let out = folder.path().join("out.ptx");
    let arch = format!("-arch={target}");
    let arguments: [&OsStr; 6] =
        ["-ptx".as_ref(), arch.as_ref(), "-lineinfo".as_ref(), "-o".as_ref(), out.as_ref(), path.as_ref()];
    // Where the caller is: the path of the source may be relative.
    let output = nvcc.run(Path::new("."), &arguments).map_err(fail)?;
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_string());
    let log = said.join("\n").trim().to_string();
    match std::fs::read_to_string(&out) {
        Ok(ptx) if output.status.success() => Ok(Made { compiled: Compiled { ptx, log }, compiler }),
        _ => Err(fail(log)),
    }
}

fn with_nvrtc(library: &Tool, path: &Path, text: &str, target: Target) -> Result<Made, Error> {
    let open = Nvrtc::open(&library.path).map_err(|error| refused(path, "NVRTC", error))?;
    let compiler = format!("NVRTC {}", open.version().unwrap_or_else(|| library.version.clone()));
    let mut options = vec![format!("--gpu-architecture=compute_{}", &target.to_string()[3..]), "-lineinfo".into()];
    options.extend(includes(library, path).iter().map(|folder| format!("--include-path={}", folder.display())));
    match open.compile(&path.display().to_string(), text, &options) {
        Ok(compiled) => Ok(Made { compiled, compiler }),
        Err(NvrtcError::Refused(log)) => Err(refused(path, &compiler, log)),
        Err(error) => Err(refused(path, &compiler, error)),
    }
}

/// The source's own folder, and the headers beside the library: `include` beside `lib` or `lib64`.
fn includes(library: &Tool, path: &Path) -> Vec<PathBuf> {
    let own = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = library.path.parent().and_then(Path::parent).map(|root| root.join("include"));
    std::iter::once(own.to_path_buf()).chain(beside.filter(|folder| folder.is_dir())).collect()
}

/// Compilers write whole paths; a kernel is the same on every machine. The source is called as it was given, headers by their
/// names alone.
fn with_short_files(ptx: &str, path: &Path) -> String {
    let short = |line: &str| {
        let name = line.trim_start().strip_prefix(".file").and_then(|rest| rest.split('"').nth(1));
        let Some(name) = name.filter(|name| !name.is_empty()) else { return line.to_string() };
        let file = Path::new(name).file_name().unwrap_or_default();
        let new =
            if Some(file) == path.file_name() { path.display().to_string() } else { file.to_string_lossy().into() };
        line.replace(&format!("\"{name}\""), &format!("\"{new}\""))
    };
    ptx.lines().map(|line| short(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_they_were_given() {
        let ptx = "\t.file\t1 \"/home/me/kernels/add.cu\"\n\t.file\t2 \"/usr/include/crt/mma.hpp\", 17, 4\n\tret;\n";
        let short = with_short_files(ptx, Path::new("kernels/add.cu"));
        assert_eq!(short, "\t.file\t1 \"kernels/add.cu\"\n\t.file\t2 \"mma.hpp\", 17, 4\n\tret;\n");
    }

    #[test]
    fn a_source_without_a_recipe_is_refused_before_anything_is_compiled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bare.cu");
        std::fs::write(&path, "__global__ void bare() {}\n").unwrap();
        let refused = open_source(&path, None).unwrap_err().to_string();
        assert!(refused.contains("bare.cu: no recipe: expected leading lines"), "{refused}");
        std::fs::write(path.with_extension("toml"), "[[launch]]\ngrid = [1, 1, 1]\nblock = [32, 1, 1]\n").unwrap();
        assert_eq!(recipe(&path, "").unwrap().unwrap().launches.len(), 1);
    }
}
