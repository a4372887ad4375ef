//! What a warp keeps of its rows of an output tile from their last scores on until their output is complete.

use super::super::parts::online_softmax::OnlineSoftmax;
use super::super::parts::optimistic_softmax::OptimisticSoftmax;
use super::Setup;
use super::query::Query;
use super::result::WarpRows;
use tile::prelude::*;

pub enum Ended {
    /// Maximum and sum.
    Softmax(OnlineSoftmax),
    /// By what the output is to be multiplied, if it is. Maximum and sum are stored.
    Factors(Option<RowVars>),
}

impl Ended {
    /// Of rows whose softmax has that scale.
    pub fn new<E: Element>(setup: &Setup<E>, rows: Share, scale: F32) -> Ended {
        if setup.config.stores_softmax_early {
            Ended::Factors(setup.output.is_divided().then(|| RowVars::new("factor", rows, 1.0)))
        } else {
            Ended::Softmax(OnlineSoftmax::new(rows, scale))
        }
    }

    /// The last scores were those before; the softmax starts anew.
    pub fn end<E: Element>(
        &mut self,
        setup: &Setup<E>,
        softmax: &mut OptimisticSoftmax,
        rows: impl FnOnce() -> WarpRows,
    ) {
        match self {
            Ended::Softmax(ended) => softmax.finish(ended),
            Ended::Factors(kept) => {
                let (mut ended, rows) = (softmax.new_online(), rows());
                softmax.finish(&mut ended);
                let factors = setup.output.complete(setup, &mut ended, rows);
                setup.output.store_softmax(setup, &ended, rows);
                kept.iter_mut().zip(factors).for_each(|(kept, factors)| kept.set(factors));
            }
        }
    }

    /// Their output is complete.
    pub fn store<E: Element>(&mut self, setup: &Setup<E>, output: &mut Accumulator, query: &Query<E>, rows: WarpRows) {
        match self {
            Ended::Softmax(ended) => {
                let factors = setup.output.complete(setup, ended, rows);
                setup.output.store(setup, output, factors, query, rows);
                setup.output.store_softmax(setup, ended, rows);
            }
            Ended::Factors(kept) => {
                setup.output.store(setup, output, kept.as_ref().map(RowVars::get), query, rows);
            }
        }
    }
}
