//! What the driver's compiler says, in the buffers that it writes to.

use std::ffi::c_void;
use std::ptr;

use crate::error::Error;
use crate::sys::CUjit_option;

/// Room for what the compiler says; it cuts off what is longer.
pub const LOG_BYTES: usize = 64 << 10;

pub type Values = Vec<*mut c_void>;

/// CUDA driver API, cuModuleLoadDataEx: a value that fits a pointer is passed as one.
pub fn options(info: &mut [u8], errors: &mut [u8]) -> (Vec<CUjit_option>, Values) {
    let number = |value: usize| ptr::without_provenance_mut::<c_void>(value);
    let pairs = [
        (CUjit_option::CU_JIT_INFO_LOG_BUFFER, info.as_mut_ptr().cast()),
        (CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, number(info.len())),
        (CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast()),
        (CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(errors.len())),
        (CUjit_option::CU_JIT_GENERATE_LINE_INFO, number(1)),
        (CUjit_option::CU_JIT_LOG_VERBOSE, number(1)),
    ];
    pairs.into_iter().unzip()
}

pub fn log_text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_string()
}

pub fn with_log(error: Error, file: &str, log: String) -> Error {
    let (call, name, text) = match error {
        Error::Driver { call, name, text } => (call, name, text),
        other => return other,
    };
    let too_new = name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    let cure = if too_new { "; update the driver, or write PTX of an older `.version`" } else { "" };
    match log.is_empty() {
        true => Error::Driver { call, name, text: text + cure },
        false => Error::Jit { file: file.into(), name, log: log + cure },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_code_carries_the_log() {
        let refused =
            || Error::Driver { call: "cuModuleLoadDataEx", name: "CUDA_ERROR_INVALID_PTX".into(), text: "bad".into() };
        let log = log_text(b"ptxas application ptx input, line 7; error\n\0\0");
        let error = with_log(refused(), "add.ptx", log).to_string();
        assert_eq!(
            error,
            "the driver refuses add.ptx (CUDA_ERROR_INVALID_PTX):\nptxas application ptx input, line 7; error"
        );
        assert!(matches!(with_log(refused(), "add.ptx", log_text(&[0; 8])), Error::Driver { .. }));
    }

    #[test]
    fn ptx_that_is_too_new_says_to_update_the_driver() {
        let (name, text) = ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION".to_string(), "unsupported toolchain".to_string());
        for log in ["", "Unsupported .version 99.0"] {
            let refused = Error::Driver { call: "cuModuleLoadDataEx", name: name.clone(), text: text.clone() };
            let error = with_log(refused, "new.ptx", log.into()).to_string();
            assert!(error.ends_with("; update the driver, or write PTX of an older `.version`"), "{error}");
        }
    }
}
