//! Kernels that are loaded, by what their text depends on: lengths and scale are parameters, so there are few.

use super::Error;
use attention::Problem;
use attention::configs::Config;
use attention::problem::DType;
use attention::visibility::MaskKind;
use cuda::{Cache, Context, Counts, Module, Prepared};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    context: u64,
    config: Config,
    columns: [u32; 2],
    dtype: DType,
    mask: MaskKind,
}

static LOADED: LazyLock<RwLock<HashMap<Key, Arc<Prepared>>>> = LazyLock::new(RwLock::default);
static CACHE: LazyLock<Cache> = LazyLock::new(Cache::from_environment);

/// What happened so far in the cache of compiled kernels that calls of this process share.
pub fn cache_counts() -> Counts {
    CACHE.counts()
}

/// The kernel, loaded in the context. Only the first call for a kind of problem builds and compiles.
pub fn loaded(context: &Arc<Context>, problem: &Problem, config: &Config) -> Result<Arc<Prepared>, Error> {
    let key = Key {
        context: context.id(),
        config: *config,
        columns: [problem.head_dim(), problem.value_dim()],
        dtype: problem.dtype(),
        mask: problem.mask(),
    };
    if let Some(prepared) = LOADED.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(prepared.clone());
    }
    let prepared = Arc::new(load(context, problem, config)?);
    let mut all = LOADED.write().unwrap_or_else(PoisonError::into_inner);
    Ok(all.entry(key).or_insert(prepared).clone())
}

fn load(context: &Arc<Context>, problem: &Problem, config: &Config) -> Result<Prepared, Error> {
    let built = attention::kernels::build(problem, config)?;
    let name = format!("attention_config{}.ptx", config.id);
    let module = Module::from_ptx_cached(context, &CACHE, &name, &ptx::print(&built.module))?;
    Ok(Prepared::new(module, &built.module.functions[0], [built.threads, 1, 1], built.shared_bytes)?)
}
