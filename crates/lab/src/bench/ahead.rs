//! Peers that compile take seconds for each kind of problem. They do so ahead of the first point, in processes of their own and while other
//! stages run: what they leave on disk is there when they are timed.

use std::thread::{self, JoinHandle};

use attention::Problem;

use crate::case::Case;
use crate::gpu::{Contract, Plan, Workers};

/// Those that compile. What a compiled kernel is for is head, mask and type: not how much there is of them.
const COMPILERS: [&str; 2] = ["fa4", "triton"];

/// One call.
const ONCE: Plan = Plan { contract: Contract::Stream, calls: 1, sets: 1, warm_ups: 1, warm_up_sets: 0 };

/// Peers that are at it.
pub struct Ahead(Vec<JoinHandle<()>>);

impl Ahead {
    /// Each of those that compile makes ready for one problem of every kind. What fails says so when it is to be timed.
    pub fn begin(workers: &Workers, peers: &[String], cases: &[Case]) -> Ahead {
        let problems = one_of_each_kind(cases.iter().map(|case| &case.problem));
        let compilers = peers.iter().filter(|name| COMPILERS.contains(&name.as_str()));
        let begin = |name: &String| {
            let (workers, name, problems) = (workers.clone(), name.clone(), problems.clone());
            thread::spawn(move || {
                let Ok(mut peer) = workers.start(&name) else { return };
                for problem in &problems {
                    let _ = peer.open(problem, ONCE);
                }
            })
        };
        Ahead(compilers.map(begin).collect())
    }

    pub fn wait(self) {
        for thread in self.0 {
            let _ = thread.join();
        }
    }
}

/// The smallest problem of every kind: the less there is to compute, the sooner the next one is compiled.
fn one_of_each_kind<'p>(problems: impl Iterator<Item = &'p Problem>) -> Vec<Problem> {
    let kind = |problem: &Problem| {
        (problem.dims(), problem.mask(), problem.dtype(), problem.score(), problem.heads() / problem.kv_heads())
    };
    let size = |problem: &Problem| problem.o_shape().elements() as u64 * u64::from(problem.keys());
    let mut chosen: Vec<&Problem> = vec![];
    for problem in problems {
        match chosen.iter_mut().find(|other| kind(other) == kind(problem)) {
            Some(other) if size(problem) < size(other) => *other = problem,
            Some(_) => (),
            None => chosen.push(problem),
        }
    }
    chosen.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Grid;

    #[test]
    fn the_smallest_of_every_kind_is_chosen() {
        let grid = [Grid::Small, Grid::Main].map(|grid| grid.problems().unwrap()).concat();
        let chosen: Vec<String> = one_of_each_kind(grid.iter()).iter().map(Problem::to_string).collect();
        let expected = [
            "f16 B2 H8 S512 D64 full",
            "f16 B2 H8 S512 D64 causal",
            "f16 B32 H16 S512 D128 full",
            "f16 B32 H16 S512 D128 causal",
        ];
        assert_eq!(chosen, expected);
    }

    #[test]
    fn peers_that_compile_are_peers() {
        assert!(COMPILERS.iter().all(|name| crate::bench::PEERS.contains(name)));
    }
}
