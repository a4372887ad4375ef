//! The lines of the paper, over tile values. A part knows no family; a family is a schedule around the parts.

pub mod block;
pub mod destination;
pub mod epilogue;
pub mod key_share;
pub mod lengths;
pub mod masks;
pub mod merge;
pub mod online_softmax;
pub mod optimistic_softmax;
pub mod query;
pub mod row_order;
pub mod scores;
pub mod scratch;
pub mod sequences;
pub mod setup;
pub mod sink;

pub use lengths::Lengths;
