//! Threads: those of the current rayon pool, the global one unless the caller is in another
//! ([`rayon::ThreadPool::install`]). They sleep between calls.

use super::{Forward, InstructionSet, Number};

/// Multiply-adds of one of the products below which a second thread costs more than it brings.
const SMALL: u64 = 1 << 20;

/// How many threads a call is worth.
pub fn worth<N: Number>(forward: &Forward<N>, set: InstructionSet) -> usize {
    let in_pairs = set == InstructionSet::Avx512Bf16 && N::as_bf16(&[]).is_some();
    let problem = forward.problem;
    let rows = u64::from(problem.batch()) * u64::from(problem.heads()) * u64::from(problem.queries());
    let work = rows.saturating_mul(u64::from(problem.keys()) * u64::from(problem.head_dim()));
    let small = if in_pairs { 2 * SMALL } else { SMALL };
    if work < small { 1 } else { rayon::current_num_threads() }
}

/// Runs `work` on so many threads at once, the caller's among them if it is one of the pool.
pub fn fan_out(threads: usize, work: &(dyn Fn() + Sync)) {
    match threads {
        0 | 1 => work(),
        _ => {
            rayon::join(|| fan_out(threads / 2, work), || fan_out(threads - threads / 2, work));
        }
    }
}
