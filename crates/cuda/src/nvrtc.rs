//! NVRTC, the compiler of CUDA C++ that is a library: found and loaded at run time, like the driver.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;

use libloading::Library;

/// What `nvrtcProgram` points to.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

type Program = *mut Opaque;

/// What a call answers: an `nvrtcResult`, zero where all is well.
type Status = c_int;

/// Why there is no PTX.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    #[error("{path} cannot be loaded as NVRTC: {message}")]
    Library { path: String, message: String },
    #[error("the {0} has a zero byte, which CUDA C++ cannot have: remove it")]
    Zero(&'static str),
    #[error("{0}")]
    Refused(String),
    #[error("{call} answers {status}")]
    Call { call: &'static str, status: Status },
}

/// PTX, and what the compiler said about the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    pub ptx: String,
    pub log: String,
}

/// One row per function, as nvrtc.h declares it.
macro_rules! functions {
    ($($name:ident($($type:ty),*);)*) => {
        /// The library.
        #[allow(non_snake_case, reason = "NVRTC's names")]
        pub struct Nvrtc {
            $($name: unsafe extern "C" fn($($type),*) -> Status,)*
            /// Dropped after the functions' own.
            _libraries: (Library, Vec<Library>),
        }

        impl Nvrtc {
            /// Loads the library at a path.
            pub fn open(path: &Path) -> Result<Nvrtc, NvrtcError> {
                let fail = |error: libloading::Error| NvrtcError::Library {
                    path: path.display().to_string(),
                    message: error.to_string(),
                };
                let helpers = helpers(path);
                // SAFETY: NVRTC's initialisers are written to be loaded so.
                let library = unsafe { Library::new(path) }.map_err(fail)?;
                Ok(Nvrtc {
                    // SAFETY: the symbol has that type, and is used only while the library is loaded, which is as long as
                    // this value lives.
                    $($name: *unsafe { library.get(stringify!($name).as_bytes()) }.map_err(fail)?,)*
                    _libraries: (library, helpers),
                })
            }
        }
    };
}

functions! {
    nvrtcCreateProgram(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    nvrtcCompileProgram(Program, c_int, *const *const c_char);
    nvrtcGetProgramLogSize(Program, *mut usize);
    nvrtcGetProgramLog(Program, *mut c_char);
    nvrtcGetPTXSize(Program, *mut usize);
    nvrtcGetPTX(Program, *mut c_char);
    nvrtcDestroyProgram(*mut Program);
    nvrtcVersion(*mut c_int, *mut c_int);
}

/// NVRTC opens `libnvrtc-builtins.so.13.0` by that name alone, wherever itself was found: once it is loaded, it is found.
fn helpers(path: &Path) -> Vec<Library> {
    let entries = path.parent().and_then(|folder| folder.read_dir().ok());
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let named =
        |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins."));
    // SAFETY: as for NVRTC itself, which would load it; its functions are not called from here.
    files.filter(|file| named(file)).filter_map(|file| unsafe { Library::new(file) }.ok()).collect()
}

fn check(call: &'static str, status: Status) -> Result<(), NvrtcError> {
    if status == 0 { Ok(()) } else { Err(NvrtcError::Call { call, status }) }
}

impl Nvrtc {
    /// As in `13.4`; nothing if it does not say.
    pub fn version(&self) -> Option<String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both outlive the call.
        let status = unsafe { (self.nvrtcVersion)(&raw mut major, &raw mut minor) };
        (status == 0).then(|| format!("{major}.{minor}"))
    }

    /// Compiles a source; `name` is what messages and `.file` call it.
    pub fn compile(&self, name: &str, source: &str, options: &[String]) -> Result<Compiled, NvrtcError> {
        let text = |what, text: &str| CString::new(text).map_err(|_| NvrtcError::Zero(what));
        let (name, source) = (text("name", name)?, text("source", source)?);
        let options = options.iter().map(|option| text("option", option)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = OnePass { nvrtc: self, program: ptr::null_mut() };
        // SAFETY: texts end with a zero and outlive the call; no headers are given.
        let created = unsafe {
            let (headers, names) = (ptr::null(), ptr::null());
            (self.nvrtcCreateProgram)(&raw mut program.program, source.as_ptr(), name.as_ptr(), 0, headers, names)
        };
        check("nvrtcCreateProgram", created)?;
        // SAFETY: the program is alive, and the options end with a zero each and outlive the call.
        let status = unsafe { (self.nvrtcCompileProgram)(program.program, pointers.len() as c_int, pointers.as_ptr()) };
        let log = program.text("nvrtcGetProgramLog", self.nvrtcGetProgramLogSize, self.nvrtcGetProgramLog)?;
        match check("nvrtcCompileProgram", status) {
            Err(_) if !log.trim().is_empty() => Err(NvrtcError::Refused(log.trim().into())),
            Err(error) => Err(error),
            Ok(()) => {
                let ptx = program.text("nvrtcGetPTX", self.nvrtcGetPTXSize, self.nvrtcGetPTX)?;
                Ok(Compiled { ptx, log: log.trim().into() })
            }
        }
    }
}

/// A program of the library, which is given back.
struct OnePass<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl OnePass<'_> {
    /// A text that the library has, asked for by its size first.
    fn text(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        read: unsafe extern "C" fn(Program, *mut c_char) -> Status,
    ) -> Result<String, NvrtcError> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and `bytes` outlives the call.
        check(call, unsafe { size(self.program, &raw mut bytes) })?;
        // One more, so that there is an end in any case.
        let mut buffer = vec![0u8; bytes + 1];
        // SAFETY: the buffer has as many bytes as the library asked for.
        check(call, unsafe { read(self.program, buffer.as_mut_ptr().cast()) })?;
        let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }
}

impl Drop for OnePass<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: it was made by the same library and is not used again.
            unsafe { (self.nvrtc.nvrtcDestroyProgram)(&raw mut self.program) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_library_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.13");
        std::fs::write(&path, "no library").unwrap();
        let refused = Nvrtc::open(&path).err().unwrap().to_string();
        assert!(refused.contains("libnvrtc.so.13 cannot be loaded as NVRTC: "), "{refused}");
    }
}
