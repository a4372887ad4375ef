//! Who may compute a problem.

use attention::Problem;
use attention::configs::{Config, Math};
use attention::kernels::MAX_SPLITS;
use attention::planner::{self, Gpu};

use crate::{Case, Error};

/// A configuration, and the name that the board gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    pub name: String,
    pub config: Config,
    /// The planner would choose it on this GPU.
    pub planned: bool,
}

impl Entrant {
    fn new(config: Config, planned: &Config) -> Entrant {
        let math = if config.math == Math::Scalar { " scalar" } else { "" };
        let splits = if config.splits > 1 { format!(" splits {}", config.splits) } else { String::new() };
        Entrant { name: format!("config {}{math}{splits}", config.id), config, planned: config == *planned }
    }

    pub fn case(&self, problem: &Problem) -> Result<Case, Error> {
        Case::new(attention::kernels::kernel(problem, &self.config)?)
    }
}

/// Who is asked to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Those that the GPU runs.
    Runnable,
    /// All: where nobody is timed, every kernel can go through the stages.
    Everybody,
}

/// Every configuration on tensor cores and on plain ones, with keys split where blocks would leave processors idle; the planner's
/// choice first.
pub fn entrants(problem: &Problem, gpu: &Gpu, field: Field) -> Result<Vec<Entrant>, Error> {
    let planned = planner::plan(problem, gpu)?;
    let split = |config: Config| Some(Config { splits: splits(problem, &config, gpu)?, ..config });
    let split: Vec<Config> = Config::all().filter(|config| config.math == Math::Tensor).filter_map(split).collect();
    let mut all: Vec<Config> = vec![planned];
    let comes = |config: &Config| field == Field::Everybody || config.runs_on(gpu.capability);
    for config in Config::all().chain(split).filter(comes) {
        if !all.contains(&config) {
            all.push(config);
        }
    }
    Ok(all.into_iter().map(|config| Entrant::new(config, &planned)).collect())
}

/// The most splits, a power of two, that still give a processor a block and a block a tile of keys; none if that is one.
fn splits(problem: &Problem, config: &Config, gpu: &Gpu) -> Option<u32> {
    let rows = config.heads.rows(problem.queries(), problem);
    let blocks = u64::from(rows.div_ceil(config.rows)) * u64::from(config.heads.count(problem) * problem.batch());
    let idle = u64::from(gpu.processors) / blocks.max(1);
    let tiles = u64::from(problem.keys().div_ceil(config.keys));
    let most = idle.min(tiles).min(u64::from(MAX_SPLITS));
    (most >= 2).then(|| 1 << most.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(problem: &str, gpu: &Gpu) -> Vec<String> {
        entrants(&problem.parse().unwrap(), gpu, Field::Runnable)
            .unwrap()
            .into_iter()
            .map(|entrant| entrant.name)
            .collect()
    }

    #[test]
    fn the_planners_choice_comes_first_and_everybody_once() {
        let all = names("B2 H8 S512 D64", &Gpu::H200);
        assert_eq!(all[0], "config 12");
        // Config 8 alone has so few blocks (64) that 132 processors take two for each.
        assert_eq!((all.len(), all[32].as_str()), (33, "config 8 splits 2"), "{all:?}");
        assert!(all.contains(&"config 5 scalar".to_string()));
    }

    #[test]
    fn kernels_for_sm_90a_come_where_they_run_or_where_nobody_does() {
        let problem = "B2 H8 S512 D64".parse().unwrap();
        let come = |gpu, field| {
            let all = entrants(&problem, &gpu, field).unwrap();
            all.iter().filter(|entrant| entrant.config.math == Math::Warpgroup).count()
        };
        assert_eq!(come(Gpu::H200, Field::Runnable), 14);
        assert_eq!([Gpu::A100, Gpu::B200].map(|gpu| come(gpu, Field::Runnable)), [0, 0]);
        assert_eq!(come(Gpu::A100, Field::Everybody), 14);
    }

    #[test]
    fn keys_are_split_where_processors_would_be_idle() {
        let all = names("B1 H8 Sq1 Sk8192 D128", &Gpu::H200);
        assert_eq!(all[0], "config 21 splits 16");
        // 8 blocks for 132 processors.
        assert!(all.contains(&"config 1 splits 16".to_string()), "{all:?}");
        // No more splits than tiles.
        assert!(names("B1 H8 Sq1 Sk200 D64", &Gpu::H200).contains(&"config 1 splits 4".to_string()));
    }
}
