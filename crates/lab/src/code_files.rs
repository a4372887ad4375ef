//! What ptxas, the driver and nvdisasm make of kernels, made once and kept in the pack.

use std::collections::BTreeMap;

use launch::hash;
use rayon::prelude::*;

use crate::Tool;
use crate::assembly::{self, Assembly};
use crate::case::Case;
use crate::pack::{DRIVER, Files, code_path, squeezed};
use crate::stages::code::Disassembly;

/// Cubins and disassemblies, made once.
#[derive(Default)]
pub(crate) struct MachineCode {
    pub assembly: Assembly,
    pub disassembly: Disassembly,
    /// What the driver made, by the name of the first kernel that is this code.
    pub driven: BTreeMap<String, Vec<u8>>,
}

impl MachineCode {
    pub fn files(&self, case: &Case) -> Files {
        let module = case.kernel.hash();
        let mut files = Files::new();
        for ((_, target), made) in self.assembly.iter().filter(|((of, _), _)| *of == module) {
            files.extend(made.cubin.iter().flat_map(|cubin| self.with_listing(&case.name, target, cubin)));
        }
        files
    }

    /// None of a kernel whose code another one's folder has.
    pub fn driver_files(&self, case: &Case) -> Files {
        self.driven.get(&case.name).map(|cubin| self.with_listing(&case.name, DRIVER, cubin)).unwrap_or_default()
    }

    fn with_listing(&self, kernel: &str, target: &str, cubin: &[u8]) -> Files {
        let sass = self.disassembly.get(&hash::hex(cubin)).map(String::as_bytes);
        let contents = [("cubin", Some(cubin)), ("sass", sass)];
        let file =
            |(kind, bytes): (&str, Option<&[u8]>)| Some((code_path(kernel, target, kind), squeezed::squeeze(bytes?)));
        contents.into_iter().filter_map(file).collect()
    }
}

/// What nvdisasm refuses is missing, and the stage `code` says so.
pub(crate) fn disassemble(cubins: &[&Vec<u8>], nvdisasm: &Tool) -> Disassembly {
    let text = |cubin: &&Vec<u8>| Some((hash::hex(cubin), assembly::disassemble(cubin, nvdisasm).ok()?));
    cubins.par_iter().filter_map(text).collect()
}
