//! A small case, and tools that say what a test wants.
#![cfg(unix)]

use attention::Problem;
use lab::{Case, Request, Settings, Tool, Toolbox};
use launch::Kernel;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Two key tiles and ragged tails: small, and every role works.
pub const PROBLEM: &str = "f16 B1 H2 Sq33 Sk130 D64 causal";

/// The text of the built-in kernel on the small problem, a complete case.
pub fn kernel_text() -> String {
    let problem: Problem = PROBLEM.parse().unwrap();
    let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap();
    kernel.parsed.source.text
}

pub fn case(text: &str) -> Case {
    Case::new(Kernel::parse("case.ptx", text).unwrap()).unwrap()
}

/// Without tools, under three seeds and, of each policy, one.
pub fn request(text: &str, folder: &Path) -> Request {
    Request {
        cases: vec![case(text)],
        measured: vec![],
        hardware: Err("no GPU was asked for".into()),
        folder: folder.into(),
        settings: Settings { seeds: vec![0, 1, 2], rounds: 1, ..Settings::default() },
        tools: Toolbox::none(),
        command: "veriflash prove --kernel case.ptx".into(),
        fresh: false,
        rate: None,
    }
}

/// What ptxas says of a kernel that fits.
pub const SAID: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'attention_forward' for 'sm_80'
ptxas info    : Function properties for attention_forward
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 476 bytes cmem[0]
ptxas info    : Compile time = 42.509 ms";

/// Machine code as it should be.
pub const CODE: &str = "        .target sm_80
.L_x_0:
        /*0000*/                   LDGSTS.E.BYPASS.128 [R23], [R12.64], !P0 ;
        /*0010*/                   HMMA.16816.F32 R56, R16.reuse, R68, RZ ;
        /*0020*/              @!P0 BRA `(.L_x_0) ;
        /*0030*/                   EXIT ;";

/// Scripts in the place of ptxas and nvdisasm: one says `said`, the other prints `code`.
///
/// The scripts are never written, only linked to: a file that is open for writing cannot be run.
pub fn tools(folder: &Path, said: &str, code: &str) -> Toolbox {
    let tool = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(path.with_extension("txt"), text).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(name), &path).unwrap();
        Some(Tool { path, version: "0.0.1".into() })
    };
    Toolbox { ptxas: tool("ptxas", said), nvdisasm: tool("nvdisasm", code) }
}
