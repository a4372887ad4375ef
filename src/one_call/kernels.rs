//! Kernels that are loaded, by what their text depends on: lengths and scale are parameters, so there are few.

use super::call::Call;
use super::{Error, Options};
use attention::configs::{Config, Math};
use attention::kernels::{Parts, combine_threads, warpgroup};
use attention::problem::DType;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use cuda::{Cache, Context, Counters, Counts, Module, Prepared, TensorMaps};
use launch::Assertions;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    context: u64,
    config: Config,
    columns: [u32; 2],
    dtype: DType,
    mask: MaskKey,
    score: ScoreKey,
    sinks: bool,
    documents: bool,
    packed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MaskKey {
    Kind(MaskKind),
    /// By the id of the value.
    Custom(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ScoreKey {
    Plain,
    /// The bits of the cap, which is a constant of the kernel.
    SoftCap(u32),
    Alibi,
    /// By the id of the value.
    Custom(u64),
}

impl Key {
    pub fn new(context: u64, call: &Call, options: &Options, config: &Config) -> Key {
        let problem = &call.problem;
        Key {
            context,
            // How many splits there are is a parameter.
            config: Config { splits: config.splits.min(2), ..*config },
            columns: [problem.head_dim(), problem.value_dim()],
            dtype: problem.dtype(),
            mask: match options.custom_mask {
                Some(custom) => MaskKey::Custom(custom.id()),
                None => MaskKey::Kind(problem.mask()),
            },
            score: match (options.custom_score, problem.score()) {
                (Some(custom), _) => ScoreKey::Custom(custom.id()),
                (None, ScoreKind::Plain) => ScoreKey::Plain,
                (None, ScoreKind::SoftCap { cap }) => ScoreKey::SoftCap(cap.to_bits()),
                (None, ScoreKind::Alibi) => ScoreKey::Alibi,
            },
            sinks: problem.sinks(),
            documents: problem.documents(),
            packed: call.sequences.is_some(),
        }
    }

    fn is_of(&self, id: u64) -> bool {
        self.mask == MaskKey::Custom(id) || self.score == ScoreKey::Custom(id)
    }
}

/// What is loaded, by key.
pub struct Loaded<P>(RwLock<HashMap<Key, Arc<P>, BuildHasherDefault<Mixer>>>);

/// A rotation and a multiplication for each part of a key. Keys are our own, so that nobody chooses them to collide, and a
/// call has no time for more.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u8(&mut self, part: u8) {
        self.write_u64(part.into());
    }

    fn write_u32(&mut self, part: u32) {
        self.write_u64(part.into());
    }

    fn write_u64(&mut self, part: u64) {
        // 2⁶⁴ divided by the golden ratio: multiples of it spread evenly (Knuth, volume 3, 6.4).
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, part: isize) {
        self.write_u64(part as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<P> Loaded<P> {
    pub fn get(&self, key: &Key) -> Option<Arc<P>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Keeps it, unless another thread was faster; what is kept then.
    pub fn keep(&self, key: Key, prepared: Arc<P>) -> Arc<P> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(prepared).clone()
    }

    pub fn forget(&self, id: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|key, _| !key.is_of(id));
    }
}

impl<P> Default for Loaded<P> {
    fn default() -> Loaded<P> {
        Loaded(RwLock::default())
    }
}

/// A kernel, and the one behind it that joins the parts of split keys.
pub struct Kernel {
    pub forward: Prepared,
    pub combine: Option<Prepared>,
    /// What the first of them asserts of itself, if it is a debug kernel.
    pub assertions: Option<Assertions>,
    /// What a kernel for sm_90a needs for its launches.
    pub copies: Option<Copies>,
}

/// Whole tiles are copied by tensor maps, and where some take longer than others, blocks count which are taken.
pub struct Copies {
    pub maps: TensorMaps,
    pub counters: Option<Arc<Counters>>,
}

/// One pool for each context: a stream has the same counter for all kernels.
static COUNTERS: LazyLock<Mutex<HashMap<u64, Arc<Counters>>>> = LazyLock::new(Mutex::default);

impl Copies {
    fn new(context: &Arc<Context>, counts: bool) -> Result<Copies, Error> {
        Ok(Copies { maps: TensorMaps::default(), counters: counts.then(|| counters(context)).transpose()? })
    }
}

fn counters(context: &Arc<Context>) -> Result<Arc<Counters>, Error> {
    let mut known = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(counters) = known.get(&context.id()) {
        return Ok(counters.clone());
    }
    let counters = Arc::new(Counters::new(context)?);
    known.insert(context.id(), counters.clone());
    Ok(counters)
}

static LOADED: LazyLock<Loaded<Kernel>> = LazyLock::new(Loaded::default);
/// Context, shared memory and SHA-256 of the text.
type Text = (u64, u32, String);
/// They stay loaded: a graph may hold a launch of them.
static BY_TEXT: LazyLock<Mutex<HashMap<Text, Arc<Kernel>>>> = LazyLock::new(Mutex::default);
static CACHE: LazyLock<Cache> = LazyLock::new(Cache::from_environment);

/// What happened so far in the cache of compiled kernels that calls of this process share.
pub fn cache_counts() -> Counts {
    CACHE.counts()
}

/// Why calls of this process keep no compiled kernels on disk, though there is a folder: other users can write to it.
pub fn cache_note() -> Option<String> {
    CACHE.note()
}

/// The kernel, loaded in the context. Only the first call for a kind of problem builds and compiles.
pub fn loaded(context: &Arc<Context>, call: &Call, options: &Options, config: &Config) -> Result<Arc<Kernel>, Error> {
    let key = Key::new(context.id(), call, options, config);
    match LOADED.get(&key) {
        Some(kernel) => Ok(kernel),
        None => Ok(LOADED.keep(key, load(context, call, options, config)?)),
    }
}

/// A mask or a score is gone, and nobody will ask for its kernels by its id again.
pub fn forget(id: u64) {
    LOADED.forget(id);
}

fn load(context: &Arc<Context>, call: &Call, options: &Options, config: &Config) -> Result<Arc<Kernel>, Error> {
    let problem = &call.problem;
    let (sinks, documents, packed) = (problem.sinks(), problem.documents(), call.sequences.is_some());
    let (built, counts) = options.with_parts(problem, |mask, score| {
        let parts = Parts { mask, score, sinks, documents, packed };
        let built = attention::kernels::build_parts(problem.dtype(), problem.dims(), config, &parts);
        (built, warpgroup::counts(mask, packed))
    });
    let built = built?;
    let text = ptx::print(&built.module);
    let by_text = || BY_TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (context.id(), built.shared_bytes, launch::hash::hex(text.as_bytes()));
    if let Some(kernel) = by_text().get(&key) {
        return Ok(kernel.clone());
    }
    let name = format!("attention_config{}.ptx", config.id);
    let module = Arc::new(Module::from_ptx_cached(context, &CACHE, &name, &text)?);
    let prepare = |index: usize, threads: u32, shared_bytes: u32| {
        Prepared::new(module.clone(), &built.module.functions[index], [threads, 1, 1], shared_bytes)
    };
    let combine = (config.splits > 1).then(|| prepare(1, combine_threads(problem.value_dim()), 0));
    let kernel = Kernel {
        forward: prepare(0, built.threads, built.shared_bytes)?,
        combine: combine.transpose()?,
        assertions: config.debug.then(|| attention::kernels::assertions(&built)),
        copies: (config.math == Math::Warpgroup).then(|| Copies::new(context, counts)).transpose()?,
    };
    Ok(by_text().entry(key).or_insert(Arc::new(kernel)).clone())
}
