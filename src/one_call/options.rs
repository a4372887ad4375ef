//! How attention is computed, beyond Q, K and V.

use super::Error;
use attention::configs::Config;
use attention::planner::{self, Gpu};
use attention::problem::Problem;
use attention::visibility::MaskKind;
use cuda::Stream;

/// What to compute besides the plain product, and where. The default: no mask, scale 1/√D, the planner's kernel, the default
/// stream of the thread's context.
///
/// ```
/// let options = veriflash::Options::new().causal().scale(0.1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    pub(super) mask: MaskKind,
    pub(super) scale: Option<f32>,
    config: Option<u32>,
    pub(super) stream: Option<&'a Stream>,
    pub(super) emulator: bool,
}

impl<'a> Options<'a> {
    /// The defaults.
    pub fn new() -> Options<'a> {
        Options::default()
    }

    /// The last query sees the last key, and each earlier one a key less (as FlashAttention has it).
    pub fn causal(self) -> Self {
        self.mask(MaskKind::CausalBottomRight)
    }

    /// Each query sees the key at its own place, `left` before it and `right` behind it; the last query stands at the last
    /// key.
    pub fn window(self, left: u32, right: u32) -> Self {
        self.mask(MaskKind::Window { left, right })
    }

    /// Any of the built-in masks.
    pub fn mask(mut self, mask: MaskKind) -> Self {
        self.mask = mask;
        self
    }

    /// What Q·K is multiplied with before the softmax, instead of one over the square root of the head dimension.
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// A configuration of [`attention::configs::CONFIGS`] by its number, instead of the planner's.
    pub fn config(mut self, id: u32) -> Self {
        self.config = Some(id);
        self
    }

    /// The stream that the launch goes into; its context is the one that computes, and becomes the thread's.
    pub fn stream(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Computes host tensors on the emulator, with all its checks: slow, but needs no GPU.
    pub fn emulator(mut self) -> Self {
        self.emulator = true;
        self
    }

    pub(super) fn config_for(&self, problem: &Problem, gpu: &Gpu) -> Result<Config, Error> {
        match self.config {
            Some(id) => Config::by_id(id).ok_or(Error::Config { id }),
            None => Ok(planner::plan(problem, gpu)?),
        }
    }
}
