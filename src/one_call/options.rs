//! How attention is computed, beyond Q, K and V.

use super::call::Call;
use super::extras::{Array, Extra, Extras, Words};
use super::{Backend, Custom, Error};
use attention::configs::{BASELINE, Config, Math};
use attention::kernels::parts::masks::Mask;
use attention::kernels::parts::scores::Score;
use attention::planner::{self, Gpu};
use attention::problem::Problem;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use cuda::{DeviceSlice, DeviceSliceMut, Stream};

/// What to compute besides the plain product, and where. The default: no mask, scale 1/√D, the planner's kernel, the default
/// stream of the thread's context.
///
/// ```
/// let options = veriflash::Options::new().causal().scale(0.1);
/// ```
///
/// Arrays ([`Array`]) lie where Q, K and V do. Their places, alignment and lengths are checked in every call, and that no
/// output overlaps them. Their contents are read on the host alone: on a GPU a slope that is NaN makes its head NaN, and of
/// cumulative lengths that are wrong the kernel takes what is inside of the tensors.
#[derive(Clone, Debug, Default)]
pub struct Options<'a> {
    pub(super) mask: MaskKind,
    pub(super) custom_mask: Option<&'a Custom<dyn Mask + 'a>>,
    pub(super) softcap: Option<f32>,
    pub(super) custom_score: Option<&'a Custom<dyn Score + 'a>>,
    pub(super) extras: Extras<Words<'a>>,
    pub(super) longest: Option<u32>,
    pub(super) scale: Option<f32>,
    config: Option<u32>,
    math: Option<Math>,
    pub(super) debug: bool,
    pub(super) stream: Option<&'a Stream>,
    pub(super) workspace: Option<DeviceSlice<'a>>,
    pub(super) backend: Backend,
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
        // No sequence is longer, so that more is the same.
        let [left, right] = [left, right].map(|keys| keys.min(i32::MAX as u32));
        self.mask(MaskKind::Window { left, right })
    }

    /// Any of the built-in masks.
    pub fn mask(mut self, mask: MaskKind) -> Self {
        self.mask = mask;
        self
    }

    /// A mask of the user's own, instead of the built-in ones. It is compiled into the kernel; plain cores ask it in every call.
    /// [`Custom`] has an example.
    ///
    /// What it promises is checked neither on a GPU nor on plain cores: run it once with [`Options::emulator`], which does. Where it
    /// contradicts itself, plain cores believe `seen_by_some` and `seen_by_all` for single queries before they ask `sees`.
    pub fn mask_with<M: Mask>(mut self, mask: &'a Custom<M>) -> Self {
        self.custom_mask = Some(mask);
        self
    }

    /// Queries see only keys of their own document, and of those what the mask shows: a number for each query and each key,
    /// as (batch, rows).
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let zeros = vec![f16::ZERO; 5 * 16];
    /// let tensor = HostTensor::new(&zeros, [1, 1, 5, 16]);
    /// let ids = [7, 7, 8, 8, 8];
    /// let options = Options::new().causal().documents(&ids, &ids).emulator();
    /// let output = attention(&tensor, &tensor, &tensor, &options)?;
    /// let seen: Vec<f32> = output.lse.iter().map(|lse| lse.exp().round()).collect();
    /// assert_eq!(seen, [1.0, 2.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn documents(mut self, q_ids: impl Into<Array<'a, u32>>, k_ids: impl Into<Array<'a, u32>>) -> Self {
        self.extras.set(Extra::QIds, q_ids.into().into());
        self.extras.set(Extra::KIds, k_ids.into().into());
        self
    }

    /// Sequences of different lengths, one behind the other (`flash_attn_varlen_func` has the same): where each of them
    /// begins among the rows of Q and of K, and where the last one ends. Q, K, V and O are (rows, heads, columns), as
    /// [`HostTensor::packed`](super::HostTensor::packed) and [`DeviceTensor::packed`](super::DeviceTensor::packed) make them;
    /// the log-sum-exp is (heads, rows). Each sequence has its own diagonal, where the mask has one.
    ///
    /// On the host the numbers must begin with 0, never go backwards, and end at the rows of `q` and of `k`. On a GPU they
    /// are not read before the kernel does, which never leaves the tensors; queries that belong to no sequence are not
    /// written there.
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let zeros = vec![f16::ZERO; 5 * 16];
    /// let tensor = HostTensor::packed(&zeros, [5, 1, 16]); // rows, heads, columns
    /// let begins = [0, 2, 5]; // a sequence of two rows, and one of three
    /// let options = Options::new().causal().packed(&begins, &begins).emulator();
    /// let output = attention(&tensor, &tensor, &tensor, &options)?;
    /// let seen: Vec<f32> = output.lse.iter().map(|lse| lse.exp().round()).collect();
    /// assert_eq!(seen, [1.0, 2.0, 1.0, 2.0, 3.0]);
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn packed(mut self, cu_q: impl Into<Array<'a, u32>>, cu_k: impl Into<Array<'a, u32>>) -> Self {
        self.extras.set(Extra::CuQ, cu_q.into().into());
        self.extras.set(Extra::CuK, cu_k.into().into());
        self
    }

    /// The most queries that a packed sequence on a GPU has (`max_seqlen_q`): blocks are launched for that many. Queries
    /// beyond are not computed. Without it there are blocks for sequences as long as all together, most of which have nothing
    /// to do, and kernels for sm_90a are not chosen. On the host the lengths are known, and this only checked.
    ///
    /// ```no_run
    /// use veriflash::attention::problem::DType;
    /// use veriflash::cuda::{Context, DeviceBuffer};
    /// use veriflash::{DeviceTensor, Options, attention};
    ///
    /// let (rows, heads, columns, sequences) = (10_000, 8, 128, 32);
    /// let context = Context::here()?;
    /// let memory = DeviceBuffer::new(&context, (rows * heads * columns * 2) as usize)?;
    /// let begins = DeviceBuffer::new(&context, (sequences + 1) * 4)?; // u32, or i32 from 0 on
    /// let qkv = DeviceTensor::packed(memory.slice(), DType::Bf16, [rows, heads, columns]);
    /// let output = attention(&qkv, &qkv, &qkv, &Options::new().causal().packed(&begins, &begins).longest(512))?;
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn longest(mut self, queries: u32) -> Self {
        self.longest = Some(queries);
        self
    }

    /// `cap · tanh(score / cap)`: no score is beyond the cap, which is a constant of the kernel.
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let large = vec![f16::from_f32(10.0); 16];
    /// let tensor = HostTensor::new(&large, [1, 1, 1, 16]);
    /// let output = attention(&tensor, &tensor, &tensor, &Options::new().softcap(30.0).emulator())?;
    /// assert!((output.lse[0] - 30.0).abs() < 1e-3, "of a score of 400");
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn softcap(mut self, cap: f32) -> Self {
        self.softcap = Some(cap);
        self
    }

    /// ALiBi: scores lose `slope · |query + keys − queries − key|`, with a slope for each head (as FlashAttention has it).
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let zeros = vec![f16::ZERO; 2 * 2 * 16];
    /// let tensor = HostTensor::new(&zeros, [1, 2, 2, 16]);
    /// let slopes = [0.5, 0.25];
    /// let output = attention(&tensor, &tensor, &tensor, &Options::new().causal().alibi(&slopes).emulator())?;
    /// assert!((output.lse[1] - (1.0 + (-0.5f32).exp()).ln()).abs() < 1e-6, "the second query of the first head");
    /// assert!((output.lse[3] - (1.0 + (-0.25f32).exp()).ln()).abs() < 1e-6, "and of the second");
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn alibi(mut self, slopes: impl Into<Array<'a, f32>>) -> Self {
        self.extras.set(Extra::Slopes, slopes.into().into());
        self
    }

    /// A score of the user's own. It is compiled into the kernel; plain cores ask it for every score.
    ///
    /// ```
    /// use veriflash::attention::kernels::parts::scores::Head;
    /// use veriflash::half::f16;
    /// use veriflash::tile::prelude::*;
    /// use veriflash::{Custom, HostTensor, Options, Score, attention};
    ///
    /// /// Every score is the same, whatever query and key are.
    /// struct Same(f32);
    ///
    /// impl Score for Same {
    ///     fn apply(&self, _: F32, _: Coordinate, _: Coordinate, _: Head) -> F32 {
    ///         self.0.into()
    ///     }
    /// }
    ///
    /// let ones = vec![f16::ONE; 16];
    /// let tensor = HostTensor::new(&ones, [1, 1, 1, 16]);
    /// let same = Custom::new(Same(2.0));
    /// let output = attention(&tensor, &tensor, &tensor, &Options::new().score_with(&same).emulator())?;
    /// assert!((output.lse[0] - 2.0).abs() < 1e-6);
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn score_with<S: Score>(mut self, score: &'a Custom<S>) -> Self {
        self.custom_score = Some(score);
        self
    }

    /// What a score of the user's own reads for each head, where its [`Score::numbers`] says so.
    ///
    /// ```
    /// use veriflash::attention::kernels::parts::scores::Head;
    /// use veriflash::half::f16;
    /// use veriflash::tile::prelude::*;
    /// use veriflash::{Custom, HostTensor, Options, Score, attention};
    ///
    /// /// Every head has a temperature of its own.
    /// struct Temperature;
    ///
    /// impl Score for Temperature {
    ///     fn apply(&self, score: F32, _: Coordinate, _: Coordinate, head: Head) -> F32 {
    ///         score * head.number
    ///     }
    ///
    ///     fn numbers(&self) -> Option<&'static str> {
    ///         Some("temperatures") // the name of the kernel's parameter
    ///     }
    /// }
    ///
    /// let ones = vec![f16::ONE; 2 * 16];
    /// let tensor = HostTensor::new(&ones, [1, 2, 1, 16]);
    /// let temperature = Custom::new(Temperature);
    /// let options = Options::new().score_with(&temperature).score_numbers(&[0.5, 2.0]).emulator();
    /// let output = attention(&tensor, &tensor, &tensor, &options)?;
    /// assert_eq!(output.lse, [0.5 * 4.0, 2.0 * 4.0], "of scores 16/√16");
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn score_numbers(mut self, numbers: impl Into<Array<'a, f32>>) -> Self {
        self.extras.set(Extra::ScoreNumbers, numbers.into().into());
        self
    }

    /// Attention sinks: a logit for each head that the sum of the softmax counts, as if there were one more key with a value
    /// of zeros. −∞ is no sink.
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let (zeros, ones) = (vec![f16::ZERO; 16], vec![f16::ONE; 16]);
    /// let (query, value) = (HostTensor::new(&zeros, [1, 1, 1, 16]), HostTensor::new(&ones, [1, 1, 1, 16]));
    /// let output = attention(&query, &query, &value, &Options::new().sinks(&[0.0]).emulator())?;
    /// assert_eq!(output.o[0].to_f32(), 0.5, "the sink has as much weight as the only key");
    /// # Ok::<(), veriflash::Error>(())
    /// ```
    pub fn sinks(mut self, sinks: impl Into<Array<'a, f32>>) -> Self {
        self.extras.set(Extra::Sinks, sinks.into().into());
        self
    }

    /// What Q·K is multiplied with before the softmax, instead of one over the square root of the head dimension.
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = Some(scale);
        self
    }

    /// A configuration of [`attention::configs`] by its number, instead of the planner's: 10 to 19 on sm_90 alone, others on every GPU.
    pub fn config(mut self, id: u32) -> Self {
        self.config = Some(id);
        self
    }

    /// What multiplies; plain cores are the baseline of configs 1 to 5, of config 1 unless another is given.
    pub fn math(mut self, math: Math) -> Self {
        self.math = Some(math);
        self
    }

    /// The kernel with assertions that its own steps are sound: slower, with the same results, for a call whose results are
    /// doubted. A failed assertion is an error that names it, its line, the block and the lane.
    ///
    /// On a GPU such a call waits for the kernel, so that it cannot be recorded in a graph, and a failed assertion ends the
    /// context: nothing runs on the GPU any more in this process. On the emulator nothing is lost:
    ///
    /// ```
    /// use veriflash::half::f16;
    /// use veriflash::{HostTensor, Options, attention};
    ///
    /// let (ones, infinite) = (vec![f16::ONE; 16], vec![f16::INFINITY; 16]);
    /// let [q, k] = [&ones, &infinite].map(|values| HostTensor::new(values, [1, 1, 1, 16]));
    /// let error = attention(&q, &k, &q, &Options::new().debug().emulator()).unwrap_err();
    /// assert!(error.to_string().contains("assertion `scores are finite` failed in CTA (0,0,0), warp 0"), "{error}");
    /// ```
    pub fn debug(mut self) -> Self {
        self.debug = true;
        self
    }

    /// The stream that the launch goes into; its context is the one that computes.
    pub fn stream(mut self, stream: &'a Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Memory for the parts of split keys, with which [`attention_into`](super::attention_into) splits them as
    /// [`attention`](super::attention) does: [`workspace_bytes`](super::workspace_bytes) of it or more, on the GPU of the
    /// tensors, 16-byte aligned. Its contents mean nothing between calls. Calls in one stream may share it; calls in several
    /// streams that do would destroy each other's parts.
    pub fn workspace(mut self, memory: DeviceSliceMut<'a>) -> Self {
        self.workspace = Some(memory.into());
        self
    }

    /// Who computes host tensors; see [`Backend`].
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// The first option that only kernels have.
    pub(super) fn of_kernels(&self) -> Option<&'static str> {
        let (config, math, stream) = (self.config.is_some(), self.math.is_some(), self.stream.is_some());
        let given = [("config", config), ("math", math), ("stream", stream), ("debug", self.debug)];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Whether the config exists, and has the math.
    pub(super) fn check_config(&self) -> Result<(), Error> {
        if let Some(id) = self.config {
            let config = Config::by_id(id).ok_or(Error::Config { id })?;
            config.with_math(self.math.unwrap_or(config.math))?;
        }
        Ok(())
    }

    /// Computes host tensors on the emulator, with all its checks: slow, but needs no GPU.
    pub fn emulator(self) -> Self {
        self.backend(Backend::Emulator)
    }

    pub(super) fn config_for(&self, call: &Call, gpu: &Gpu) -> Result<Config, Error> {
        let baseline = (self.math == Some(Math::Scalar)).then_some(BASELINE);
        let config = match self.config.or(baseline) {
            Some(id) => Config::by_id(id).ok_or(Error::Config { id })?,
            None => planner::plan_unsplit(&call.problem, &call.features, gpu)?,
        };
        let config = config.with_math(self.math.unwrap_or(config.math))?;
        if !config.runs_on(gpu.capability) {
            return Err(attention::Error::Architecture { id: config.id, gpu: gpu.to_string() }.into());
        }
        Ok(Config { debug: self.debug, ..config })
    }

    /// The same where there can be memory for the parts of split keys. Of packed sequences the host does not know how long they
    /// are.
    pub(super) fn split_config_for(&self, call: &Call, gpu: &Gpu) -> Result<Config, Error> {
        match (self.config, self.math, call.sequences) {
            (None, None | Some(Math::Tensor), None) => {
                Ok(Config { debug: self.debug, ..planner::plan_features(&call.problem, &call.features, gpu)? })
            }
            _ => self.config_for(call, gpu),
        }
    }

    /// The same with its arrays elsewhere.
    pub(super) fn with_extras(mut self, extras: Extras<Words<'a>>) -> Self {
        self.extras = extras;
        self
    }

    /// The built-in score that the options name; one of the user's own takes its place.
    pub(super) fn score_kind(&self) -> ScoreKind {
        match self.softcap {
            Some(cap) => ScoreKind::SoftCap { cap },
            None if self.extras.get(Extra::Slopes).is_some() => ScoreKind::Alibi,
            None => ScoreKind::Plain,
        }
    }

    /// Whether scores stay as they are.
    pub(super) fn is_plain(&self) -> bool {
        match self.custom_score {
            Some(score) => score.is_plain(),
            None => self.score_kind() == ScoreKind::Plain,
        }
    }

    /// Builds something with mask and score: the user's own, or those that the problem names.
    pub(super) fn with_parts<R>(&self, problem: &Problem, build: impl FnOnce(&dyn Mask, &dyn Score) -> R) -> R {
        let (mask, score) = (problem.mask().mask(), problem.score().score());
        let mask: &dyn Mask = self.custom_mask.map_or(&*mask, |custom| &**custom);
        let score: &dyn Score = self.custom_score.map_or(&*score, |custom| &**custom);
        build(mask, score)
    }
}
