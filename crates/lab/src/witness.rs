//! The smallest problems that make a kernel of ours do all it can, on the emulator, within seconds.

use attention::Problem;
use attention::configs::{Config, Math};
use attention::visibility::MaskKind;
use launch::Expr;

use crate::{Case, Error};

/// Where nothing else is asked for: what a configuration is shown on.
const PLAIN: [&str; 2] = ["f16 B1 H1 S64 D64 full", "f16 B1 H1 S64 D64 causal"];

/// Of a configuration, with and without a mask.
pub fn witnesses(config: &Config) -> Result<Vec<Case>, Error> {
    PLAIN.iter().map(|text| witness(&text.parse()?, config)).collect()
}

/// Of the same kind as a problem (type, columns, mask, score, layout): what computes it is the same module.
pub fn witness(of: &Problem, config: &Config) -> Result<Case, Error> {
    let mut kernel = attention::kernels::kernel(&problem(of, config)?, config)?;
    // One block takes all tiles of the output: on 132 of them a tile each would show little of what a block keeps from tile to tile.
    for (name, value) in &mut kernel.recipe.lets {
        if name == "processors" {
            *value = Expr::from(1u32);
        }
    }
    Case::new(kernel)
}

fn problem(of: &Problem, config: &Config) -> Result<Problem, Error> {
    let [queries, keys, heads] = sizes(of, config);
    let group = of.heads() / of.kv_heads().max(1);
    let kv_heads = heads.div_ceil(group);
    let builder = Problem::builder()
        .batch(1)
        .heads(kv_heads * group)
        .kv_heads(kv_heads)
        .queries(queries)
        .keys(keys)
        .head_dim(of.head_dim())
        .value_dim(of.value_dim())
        .dtype(of.dtype())
        .mask(of.mask())
        .score(of.score())
        .sinks(of.sinks())
        .documents(of.documents())
        .layout(of.layout());
    Ok(builder.build()?)
}

/// Queries, keys and heads.
fn sizes(of: &Problem, config: &Config) -> [u32; 3] {
    let Config { rows, keys, stages, splits, math, .. } = *config;
    match (math, of.mask()) {
        // Two blocks of queries, and for each split one tile of keys more than there are stages, the last of each ragged.
        (Math::Tensor | Math::Scalar, _) => [rows + 1, keys * stages * splits + keys / 2 + 1, 2],
        // Tiles of the output with so few keys that copies of the next run ahead, and so many of them that every stage comes round as often as warps
        // arrive at its barrier: a count of arrivals that is off by one is then off by a phase. Two blocks of two tiles for each head; a stage of
        // queries comes round once for each.
        (Math::Warpgroup, MaskKind::None) => {
            [rows + 1, keys * splits + keys / 2 + 1, config.warpgroups() * stages.max(4)]
        }
        (Math::Warpgroup, _) => [2 * rows + 1, 2 * rows + 1, 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(of: &str, id: u32, splits: u32) -> Case {
        witness(&of.parse().unwrap(), &Config { splits, ..Config::by_id(id).unwrap() }).unwrap()
    }

    #[test]
    fn a_witness_is_of_the_problems_kind() {
        let case = shown("bf16 B4 H8/2 S4096 D192/128 window64/0", 6, 2);
        assert_eq!(case.problem.to_string(), "bf16 B1 H4/1 Sq65 Sk145 D192/128 window64/0");
        assert_eq!(shown("B2 H8 S512 D64", 1, 1).problem.to_string(), "f16 B1 H2 Sq33 Sk161 D64 full");
    }

    #[test]
    fn its_module_is_the_one_that_is_timed() {
        for (problem, id) in [("B8 H32 S2048 D64 causal", 8), ("B1 H16 S16384 D128", 13), ("B2 H8 S512 D64", 12)] {
            let timed = attention::kernels::kernel(&problem.parse().unwrap(), &Config::by_id(id).unwrap()).unwrap();
            assert_eq!(shown(problem, id, 1).kernel.hash(), timed.hash(), "{problem}");
        }
    }

    #[test]
    fn of_hopper_kernels_one_block_takes_all_tiles() {
        let case = shown("B4 H16 S4096 D128 causal", 10, 1);
        assert_eq!(
            (case.problem.to_string().as_str(), case.resolved.launches[0].grid),
            ("f16 B1 H4 S257 D128 causal", [1, 1, 1])
        );
    }
}
