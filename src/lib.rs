//! FlashAttention for NVIDIA GPUs in Rust, with evidence.
//!
//! The crates behind the command line, for programs that want them:
//!
//! ```
//! use veriflash::attention::{Problem, configs::Config, kernels};
//!
//! let problem: Problem = "f16 B1 H2 Sq5 Sk70 D64 causal".parse()?;
//! let kernel = kernels::kernel(&problem, Config::by_id(1).expect("config 1 exists"))?;
//! let sanitized = veriflash::emulator::sanitize(&kernel, &[0], 0, &Default::default())?;
//! assert!(sanitized.findings.is_empty());
//! assert!(veriflash::lab::Case::new(kernel)?.judge(&sanitized.runs[0].2)?.passes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use {attention, cuda, emulator, lab, launch, ptx, tile};

pub mod filetests;
pub mod support;
