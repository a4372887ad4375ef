//! What ptxas and nvdisasm make of kernels, made once and kept in the pack.

use launch::hash;
use rayon::prelude::*;

use crate::Tool;
use crate::assembly::{self, Assembly};
use crate::case::Case;
use crate::pack::{Files, code_path, squeezed};
use crate::stages::code::Disassembly;

/// Cubins and disassemblies, made once.
#[derive(Default)]
pub(crate) struct MachineCode {
    pub assembly: Assembly,
    pub disassembly: Disassembly,
}

impl MachineCode {
    pub fn files(&self, case: &Case) -> Files {
        let module = case.kernel.hash();
        let mut files = Files::new();
        for ((_, target), made) in self.assembly.iter().filter(|((of, _), _)| *of == module) {
            let Some(cubin) = &made.cubin else { continue };
            files.insert(code_path(&case.name, target, "cubin"), squeezed::squeeze(cubin));
            let sass = self.disassembly.get(&hash::hex(cubin));
            let path = code_path(&case.name, target, "sass");
            files.extend(sass.map(|text| (path, squeezed::squeeze(text.as_bytes()))));
        }
        files
    }
}

/// What nvdisasm refuses is missing, and the stage `code` says so.
pub(crate) fn disassemble(assembly: &Assembly, nvdisasm: &Tool) -> Disassembly {
    let cubins: Vec<&Vec<u8>> = assembly.values().filter_map(|made| made.cubin.as_ref()).collect();
    let text = |cubin: &&Vec<u8>| Some((hash::hex(cubin), assembly::disassemble(cubin, nvdisasm).ok()?));
    cubins.par_iter().filter_map(text).collect()
}
