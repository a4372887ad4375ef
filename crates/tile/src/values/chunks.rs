//! Rows of a product on their way to global memory, in chunks of 16 bytes.
//!
//! The four lanes of a row have pairs of neighbours: stored as they are, each instruction writes halves of sectors, in eight rows. Lanes that exchange
//! pairs have eight neighbours each, and write whole sectors with a quarter of the instructions.

use super::{Element, Fragment, Matrix, Packed, Pred, U32, Value};
use crate::builder::here;
use crate::control::{predicated, select};
use crate::instructions::{shfl_sync_bfly_b32, st_global_v4};

const LANES: u32 = 4;
const CHUNK_COLUMNS: u32 = 8;
/// Columns that the lanes of a row have in four pairs each.
const BLOCK_COLUMNS: u32 = LANES * CHUNK_COLUMNS;

impl<E: Element> Matrix<E> {
    /// Stores a warp's rows, the first of them at `first_row`; rows and columns that the matrix does not have are left out. It has columns in eights,
    /// and its rows begin at multiples of 16 bytes.
    #[track_caller]
    pub fn store_in_chunks(&self, rows: &Fragment, first_row: U32) {
        here();
        let lane = rows.share().lane_of_row();
        let is_upper = [1, 2].map(|bit| (lane & bit).ne(0));
        for row in 0..rows.share().rows_per_lane() {
            let place = rows.share().row(row) + first_row;
            let (exists, to) = (place.lt(self.rows), self.at(place.value(), lane * CHUNK_COLUMNS));
            let pairs: Vec<_> = rows.pairs_of_row(row).map(|(_, pair)| pair).collect();
            for (pairs, first) in pairs.chunks(LANES as usize).zip((0..).step_by(BLOCK_COLUMNS as usize)) {
                // Where there is half a block, nobody stores what the other half would be.
                let pairs = [0, 1, 2, 3].map(|pair| pairs.get(pair).unwrap_or(&pairs[0]));
                let chunk = exchange(pairs.map(|[left, right]| left.pack::<E>(*right)), is_upper);
                predicated(exists & self.has_chunk(lane, first), || st_global_v4(to.plus(first * E::BYTES), chunk));
            }
        }
    }

    /// Whether the lane's chunk of a block is one of the matrix.
    #[track_caller]
    fn has_chunk(&self, lane: U32, first: u32) -> Pred {
        let chunks = self.columns.saturating_sub(first) / CHUNK_COLUMNS;
        if chunks >= LANES { true.into() } else { lane.lt(chunks) }
    }
}

/// Pair `p` of lane `l` becomes pair `l` of lane `p`: first between neighbours, then between pairs of lanes. `is_upper` says of both bits of its
/// number whether the lane has it.
#[track_caller]
fn exchange<E: Element>(mut pairs: [Value<Packed<E>>; 4], is_upper: [Pred; 2]) -> [Value<Packed<E>>; 4] {
    for (bit, is_upper) in [1, 2].into_iter().zip(is_upper) {
        for low in (0..4).filter(|pair| pair & bit == 0) {
            let high = low | bit;
            let sent = select(is_upper, pairs[low], pairs[high]);
            let came = shfl_sync_bfly_b32(sent, bit as u32);
            pairs[low] = select(is_upper, came, pairs[low]);
            pairs[high] = select(is_upper, pairs[high], came);
        }
    }
    pairs
}
