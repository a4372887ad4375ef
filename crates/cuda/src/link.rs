//! PTX to machine code, by the linker in the driver: unlike loading, it hands out what it made.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use crate::sys::{self, CUjitInputType, CUlinkState};

use crate::compiler_log::{LOG_BYTES, log_text, options, with_log};
use crate::context::Context;
use crate::driver::check;
use crate::error::Error;

/// Machine code for the context's GPU, and what the compiler said; `file` is the text's name in errors.
pub fn compile(context: &Arc<Context>, file: &str, text: &str) -> Result<(Vec<u8>, String), Error> {
    let _entered = context.enter()?;
    let image = zero_ended(file, text)?;
    let (mut info, mut errors) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
    let (mut names, mut values) = options(&mut info, &mut errors);
    let mut handle = ptr::null_mut();
    // SAFETY: names and values are equally long; they and the log buffers live until after the linker is destroyed.
    let status =
        unsafe { sys::cuLinkCreate_v2(names.len() as u32, names.as_mut_ptr(), values.as_mut_ptr(), &mut handle) };
    check("cuLinkCreate_v2", status)?;
    let linker = Linker(handle);
    let cubin = linker.link(&image);
    drop(linker);
    match cubin {
        Ok(cubin) => Ok((cubin, log_text(&info))),
        Err(error) => Err(with_log(error, file, log_text(&errors))),
    }
}

/// The text as the driver reads it.
pub fn zero_ended(file: &str, text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Jit {
        file: file.into(),
        name: "not compiled".into(),
        log: "the text contains a zero byte: remove it".into(),
    })
}

struct Linker(CUlinkState);

impl Linker {
    fn link(&self, image: &CString) -> Result<Vec<u8>, Error> {
        let bytes = image.as_bytes_with_nul();
        let (none, no_values) = (ptr::null_mut(), ptr::null_mut());
        let (kind, data) = (CUjitInputType::CU_JIT_INPUT_PTX, bytes.as_ptr().cast_mut().cast());
        // SAFETY: the linker is alive; the driver only reads the text, which ends with a zero byte, and copies it.
        let status =
            unsafe { sys::cuLinkAddData_v2(self.0, kind, data, bytes.len(), c"kernel".as_ptr(), 0, none, no_values) };
        check("cuLinkAddData_v2", status)?;
        let (mut cubin, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the linker is alive; both places outlive the call.
        check("cuLinkComplete", unsafe { sys::cuLinkComplete(self.0, &mut cubin, &mut size) })?;
        // SAFETY: the driver made that many bytes at that place; they stay until the linker is destroyed.
        Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: nobody else holds the handle; what it made was copied.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}
