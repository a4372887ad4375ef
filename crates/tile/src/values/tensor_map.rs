//! How copies of tiles see a tensor in global memory.

use super::global::declare_bytes;
use super::{Element, PANEL_COLUMNS, PANEL_ROW_BYTES, SharedTile, U32, U64, View, panels};
use crate::control::when;
use crate::instructions::{
    Pointer, SharedPointer, bar_warp_sync, block_of_cluster, cp_async_bulk_commit_group, cp_async_bulk_tensor_4d_load,
    cp_async_bulk_tensor_4d_multicast, cp_async_bulk_tensor_4d_store, fence_proxy_async_shared, lane_index,
    parameter_address, prefetch_tensormap,
};
use std::marker::PhantomData;

/// CUDA driver API, "Tensor Map Object Management".
const MAP_BYTES: u32 = 128;
const MAP_ALIGN: u32 = 64;

/// (column, row, head, batch) of `E`, the first contiguous, in boxes of 64 columns with the swizzle of 128 bytes. What lies outside of the
/// tensor is read as zeros and not written.
#[derive(Clone, Copy)]
pub struct TensorMap<E> {
    address: U64,
    pub columns: u32,
    of: PhantomData<E>,
}

/// Where a tile begins in a tensor.
#[derive(Clone, Copy)]
pub struct TileAt {
    pub row: U32,
    pub head: U32,
    pub batch: U32,
}

impl<E: Element> TensorMap<E> {
    /// A parameter of 128 bytes. Its boxes have as many rows as the tiles that are copied.
    #[track_caller]
    pub fn parameter(name: &str, columns: u32) -> TensorMap<E> {
        let address = parameter_address(declare_bytes(name, MAP_BYTES, MAP_ALIGN));
        TensorMap { address, columns, of: PhantomData }
    }

    /// Fetches the map itself, before it is used.
    #[track_caller]
    pub fn prefetch(&self) {
        prefetch_tensormap(self.address);
    }

    /// Starts copying a tile into shared memory; its bytes count at `barrier`.
    #[track_caller]
    pub(crate) fn load(&self, to: &SharedTile<E>, at: TileAt, barrier: SharedPointer) {
        for panel in 0..panels(to.columns) {
            let place = Pointer::new(to.address(panel * to.panel_bytes()));
            cp_async_bulk_tensor_4d_load(place, self.address, coordinates(at, panel), barrier);
        }
    }

    /// The same of the rows that this block of the cluster brings, of as many parts as there are blocks, to all of them.
    #[track_caller]
    pub(crate) fn load_part(&self, to: &SharedTile<E>, at: TileAt, barrier: SharedPointer, blocks: u32) {
        let rows = to.rows / blocks;
        let first = block_of_cluster() * rows;
        let at = TileAt { row: at.row + first, ..at };
        for panel in 0..panels(to.columns) {
            let place = Pointer::new(to.address(panel * to.panel_bytes()) + first * PANEL_ROW_BYTES);
            cp_async_bulk_tensor_4d_multicast(place, self.address, coordinates(at, panel), barrier, (1 << blocks) - 1);
        }
    }

    /// The same of one row of the tile, for maps with boxes of one row.
    #[track_caller]
    pub(crate) fn load_row(&self, to: &SharedTile<E>, row: U32, at: TileAt, barrier: SharedPointer) {
        for panel in 0..panels(to.columns) {
            let place = Pointer::new(to.address(panel * to.panel_bytes()) + row * PANEL_ROW_BYTES);
            cp_async_bulk_tensor_4d_load(place, self.address, coordinates(at, panel), barrier);
        }
    }

    /// Starts copying a warp's rows of a tile out of shared memory, after all its lanes have written them. Its first lane starts, and knows when
    /// they have been read.
    #[track_caller]
    pub fn store(&self, from: View<E>, at: TileAt) {
        fence_proxy_async_shared();
        bar_warp_sync();
        when(lane_index().eq(0), || {
            for panel in 0..panels(from.columns) {
                cp_async_bulk_tensor_4d_store(self.address, coordinates(at, panel), from.panel(panel));
            }
            cp_async_bulk_commit_group();
        });
    }
}

fn coordinates(at: TileAt, panel: u32) -> [U32; 4] {
    [(panel * PANEL_COLUMNS).into(), at.row, at.head, at.batch]
}
