//! Why there is no pack, or nothing to verify or to inspect. A kernel that is wrong is not an error: its stage fails.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kernel(#[from] launch::Error),
    #[error(transparent)]
    Problem(#[from] attention::Error),
    #[error("{kernel}: {message}")]
    Contract { kernel: String, message: String },
    /// The file with gates does not read.
    #[error(transparent)]
    Settings(launch::Error),
    #[error("{}: {message}", path.display())]
    Folder { path: PathBuf, message: String },
    #[error("{kernel}: {message}")]
    Assembly { kernel: String, message: String },
    #[error("{0} was not found: get it with `{install}`", install = crate::tools::INSTALL)]
    MissingTool(&'static str),
    #[error(
        "{}: no compiler for CUDA C++ was found: `pip install nvidia-cuda-nvrtc==13.0.88` gets one, `pip install \
         nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88` headers such as cuda_fp16.h and mma.h; or give the .ptx that `nvcc -ptx` makes elsewhere",
        path.display()
    )]
    NoCompiler { path: PathBuf },
    #[error("{}: {compiler} refuses it:\n{message}", path.display())]
    Compilation { path: PathBuf, compiler: String, message: String },
    #[error("{}: the pack is broken: {why}", path.display())]
    BrokenPack { path: PathBuf, why: String },
    #[error("interrupted: nothing was written")]
    Interrupted,
    /// The same of what writes nothing.
    #[error("interrupted: there is no verdict, run it again")]
    Stopped,
}

impl Error {
    /// Of a command that has nothing to write.
    pub fn of_reader(self) -> Error {
        if let Error::Interrupted = self { Error::Stopped } else { self }
    }

    pub(crate) fn folder(path: &Path, message: impl ToString) -> Error {
        Error::Folder { path: path.into(), message: message.to_string() }
    }
}
