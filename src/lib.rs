//! FlashAttention for NVIDIA GPUs in Rust, with evidence.
//!
//! Attention is one call, on tensors of the host or of a GPU:
//!
//! ```
//! use half::f16;
//! use veriflash::{HostTensor, Options, attention};
//!
//! let numbers: Vec<f16> = (0..2 * 40 * 64).map(|index| f16::from_f32((index % 7) as f32)).collect();
//! let tensor = HostTensor::new(&numbers, [1, 2, 40, 64]); // batch, heads, rows, columns
//! let output = attention(&tensor, &tensor, &tensor, &Options::new().causal())?;
//! assert_eq!(output.o.len(), numbers.len());
//! println!("computed by {:?}", output.backend); // a GPU where there is one, plain cores elsewhere
//! # Ok::<(), veriflash::Error>(())
//! ```
//!
//! The crates behind it and behind the command line, for programs that want them (`lab` comes with the feature `cli`, which is on
//! unless `default-features = false` asks for attention alone):
//!
//! ```
//! use veriflash::attention::{Problem, configs::Config, kernels};
//!
//! let problem: Problem = "f16 B1 H2 Sq5 Sk70 D64 causal".parse()?;
//! let kernel = kernels::kernel(&problem, &Config::by_id(1).expect("config 1 exists"))?;
//! let sanitized = veriflash::emulator::sanitize(&kernel, &[0], 0, &Default::default())?;
//! assert!(sanitized.findings.is_empty());
//! assert!(veriflash::lab::Case::new(kernel)?.judge(&sanitized.runs[0].2)?.passes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use ::attention;
pub use {cuda, emulator, half, launch, ptx, tile};

#[cfg(feature = "cli")]
pub use lab;

#[cfg(feature = "cli")]
pub mod filetests;
mod one_call;
#[cfg(feature = "cli")]
pub mod support;

pub use ::attention::kernels::parts::{masks::Mask, scores::Score};
pub use one_call::{
    Array, Backend, Custom, DeviceOutput, DeviceTensor, DeviceTensorMut, Error, HostOutput, HostTensor, Number,
    Options, Tensor, attention, attention_into, attention_into_host, cache_counts, cache_note, workspace_bytes,
};
