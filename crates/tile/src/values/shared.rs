//! Shared memory: swizzled tiles and plain vectors.

use super::operand::Square;
use super::rows::row_groups;
use super::{Accumulator, Element, F32, Matrix, Packed, Pred, RowOperand, Type, U32, U64, Value};
use crate::builder::{here, with};
use crate::control::select;
use crate::error::BuildError;
use crate::instructions::{
    GlobalPointer, Pointer, SharedPointer, cp_async_cg_shared_global_16, lane_index, ld_shared, ld_shared_v4,
    ldmatrix_x4, mov_pair, shared_base, st_shared, stmatrix_x4,
};
use crate::warps::Warps;
use std::marker::PhantomData;

/// The unit of swizzling, copying and `ldmatrix`.
pub(super) const CHUNK_BYTES: u32 = 16;
/// A panel is 64 columns wide: 128 bytes of 16-bit elements.
pub(crate) const PANEL_COLUMNS: u32 = 64;
pub(crate) const PANEL_ROW_BYTES: u32 = 128;
pub(super) const PANEL_CHUNKS: u32 = PANEL_ROW_BYTES / CHUNK_BYTES;
/// Products go 16 columns at a time.
pub(super) const STEPS_OF_PANEL: u32 = PANEL_COLUMNS / 16;
/// The swizzle repeats after eight rows: what origins are multiples of.
pub(super) const SWIZZLE_BYTES: u32 = 8 * PANEL_ROW_BYTES;

/// More shared memory no GPU gives a block: sm_90 and sm_100. CUDA C++ Programming Guide, "Compute Capabilities".
const MAX_SHARED_BYTES: u64 = 227 * 1024;

/// Takes `bytes` of the block's shared memory for the whole kernel.
#[track_caller]
pub(crate) fn allocate(bytes: u64, align: u32) -> U32 {
    let at = here();
    let start = with(|b| {
        if let Some(inside) = b.scopes.inside() {
            BuildError::new("shared memory is allocated once, before loops and branches", at)
                .note("inside this", inside)
                .raise()
        }
        let start = b.shared_bytes.next_multiple_of(align);
        let end = u64::from(start).saturating_add(bytes);
        if end > MAX_SHARED_BYTES {
            let message = format!("{end} bytes of shared memory with what is allocated here");
            BuildError::new(message, at).help(format!("no GPU has more than {MAX_SHARED_BYTES} for a block")).raise()
        }
        b.shared_bytes = end as u32;
        start
    });
    shared_base() + start
}

pub(crate) fn panels(columns: u32) -> u32 {
    columns.div_ceil(PANEL_COLUMNS)
}

/// `rows` × `columns` of `E` in panels of 64 columns, 128 bytes a row; the last panel may have room to spare. Chunk `c` of row `r` lies at `c ^ (r % 8)`, so
/// that eight rows of one column of chunks fall into different banks.
///
/// It owns its memory: whoever reads it borrows it, and a stage that is being read cannot be released.
pub struct SharedTile<E> {
    origin: U32,
    pub rows: u32,
    /// What products read, in sixteens. Copies fill what the matrix does not have with zeros.
    pub columns: u32,
    of: PhantomData<E>,
}

impl<E: Element> SharedTile<E> {
    #[track_caller]
    pub fn new(name: &str, rows: u32, columns: u32) -> SharedTile<E> {
        SharedTile::stages(name, 1, rows, columns)
    }

    /// Room for `count` tiles in a row; the first of them.
    #[track_caller]
    pub(crate) fn stages(name: &str, count: u32, rows: u32, columns: u32) -> SharedTile<E> {
        let at = here();
        if !columns.is_multiple_of(8) || !rows.is_multiple_of(8) {
            let message = format!("tile `{name}` is {rows}×{columns}: expected rows and columns in eights");
            BuildError::new(message, at).raise()
        }
        if rows == 0 || columns == 0 || count == 0 {
            let message = format!("tile `{name}` is {rows}×{columns} in {count} stages: expected at least one of each");
            BuildError::new(message, at).raise()
        }
        let tile_bytes = u64::from(rows) * u64::from(panels(columns)) * u64::from(PANEL_ROW_BYTES);
        let origin = allocate(tile_bytes.saturating_mul(count.into()), SWIZZLE_BYTES);
        SharedTile { origin, rows, columns: columns.next_multiple_of(16), of: PhantomData }
    }

    pub fn bytes(&self) -> u32 {
        self.rows * panels(self.columns) * PANEL_ROW_BYTES
    }

    pub(crate) fn panel_bytes(&self) -> u32 {
        self.rows * PANEL_ROW_BYTES
    }

    /// The tile `bytes` further on.
    #[track_caller]
    pub(crate) fn shifted(&self, bytes: U32) -> SharedTile<E> {
        SharedTile { origin: self.origin + bytes, rows: self.rows, columns: self.columns, of: PhantomData }
    }

    /// Where byte number `offset` is.
    #[track_caller]
    pub(crate) fn address(&self, offset: u32) -> U32 {
        self.origin + offset
    }

    pub fn view(&self) -> View<'_, E> {
        let panel_bytes = self.panel_bytes();
        View { origin: self.origin, rows: self.rows, columns: self.columns, panel_bytes, of: PhantomData }
    }

    /// `count` rows from `first`, a multiple of eight.
    #[track_caller]
    pub fn rows(&self, first: impl Into<U32>, count: u32) -> View<'_, E> {
        let (at, first, view) = (here(), first.into(), self.view());
        if let Some(first) = first.known()
            && (!first.is_multiple_of(8) || first.saturating_add(count) > self.rows)
        {
            let message = format!("rows {first} to {} of a tile of {}", first.saturating_add(count), self.rows);
            BuildError::new(message, at).help("expected rows of the tile, from a multiple of eight on").raise()
        }
        View { origin: view.origin + first * PANEL_ROW_BYTES, rows: count, ..view }
    }

    pub fn transposed(&self) -> Transposed<'_, E> {
        self.view().transposed()
    }
}

/// Some rows of a [`SharedTile`], borrowed.
#[derive(Clone, Copy)]
pub struct View<'tile, E> {
    origin: U32,
    pub rows: u32,
    pub columns: u32,
    panel_bytes: u32,
    of: PhantomData<&'tile SharedTile<E>>,
}

impl<'tile, E: Element> View<'tile, E> {
    /// Borrowed from whoever keeps the tile, instead.
    pub(crate) fn of_owner<'owner, T>(&self, _: &'owner T) -> View<'owner, E> {
        let View { origin, rows, columns, panel_bytes, .. } = *self;
        View { origin, rows, columns, panel_bytes, of: PhantomData }
    }

    /// Read as its transpose: rows become columns of a product's right side.
    pub fn transposed(self) -> Transposed<'tile, E> {
        Transposed(self)
    }

    /// Rows in sixteens, as the left side of products.
    #[track_caller]
    pub fn load(self) -> RowOperand<E> {
        here();
        let lanes = self.lanes_of_sixteen_rows();
        RowOperand::loaded((0..self.columns / 16).map(|k| self.squares(lanes, k)))
    }

    /// With so many columns instead: its panels have room for more than are read.
    #[track_caller]
    pub fn with_columns(self, columns: u32) -> View<'tile, E> {
        let at = here();
        if panels(columns) > panels(self.columns) {
            BuildError::new(format!("{columns} columns in the panels of {}", self.columns), at).raise()
        }
        View { columns, ..self }
    }

    /// Rounds 16 rows of sums to `E`, and stores them here: the warp's own rows.
    #[track_caller]
    pub fn store(self, sums: &Accumulator) {
        let (at, rounded) = (here(), sums.to::<E>("stored"));
        if [rounded.rows(), rounded.depth()] != [self.rows, self.columns] || self.rows != 16 {
            let (rows, columns) = (rounded.rows(), rounded.depth());
            BuildError::new(format!("shapes do not fit: {}×{} = {rows}×{columns}", self.rows, self.columns), at).raise()
        }
        let lanes = self.lanes_of_sixteen_rows();
        for step in 0..self.columns / 16 {
            stmatrix_x4(self.step(lanes, step, 0), rounded.step(step)[0]);
        }
    }

    /// The registers of 16 columns: a square for every 16 rows.
    #[track_caller]
    pub(super) fn squares(&self, lanes: U32, k: u32) -> Vec<Square<E>> {
        let groups = row_groups("the left side of a product", self.rows) as u32;
        (0..groups).map(|down| ldmatrix_x4(self.step(lanes, k, down), false)).collect()
    }

    /// Each lane's address for 16 × 16: rows along the lanes, the second eight columns in the upper lanes.
    #[track_caller]
    pub(super) fn lanes_of_sixteen_rows(&self) -> U32 {
        self.origin + self.chunk(lane_index() % 16, lane_index() / 16)
    }

    /// Each lane's address for 16 × 16 of the transpose: the second eight rows in the upper lanes.
    #[track_caller]
    pub(super) fn lanes_of_transpose(&self) -> U32 {
        let lane = lane_index();
        self.origin + self.chunk(lane / 16 * 8 + lane % 8, lane / 8 % 2)
    }

    /// Where its first row of a panel is.
    #[track_caller]
    pub(super) fn panel(&self, panel: u32) -> SharedPointer {
        Pointer::new(self.origin).plus(panel * self.panel_bytes)
    }

    /// The descriptor of 16 columns, for products that read rows (K-major). PTX ISA, "Matrix Descriptor Format": the leading
    /// dimension does not matter to a swizzled layout.
    #[track_caller]
    pub(super) fn descriptor_of_columns(&self, step: u32) -> U64 {
        let within = step % STEPS_OF_PANEL * 16 * E::BYTES + step / STEPS_OF_PANEL * self.panel_bytes;
        self.descriptor(within, CHUNK_BYTES)
    }

    /// The descriptor of 16 rows, for products that read columns (MN-major): the leading dimension is from panel to panel.
    #[track_caller]
    pub(super) fn descriptor_of_rows(&self, step: u32) -> U64 {
        self.descriptor(step * 16 * PANEL_ROW_BYTES, self.panel_bytes)
    }

    /// Addresses and distances in units of 16 bytes: the address in the low 14 bits, the leading dimension from bit 16, eight rows
    /// from bit 32, and the swizzle of 128 bytes in the highest two.
    #[track_caller]
    fn descriptor(&self, within: u32, leading: u32) -> U64 {
        const HIGH: u32 = (SWIZZLE_BYTES / CHUNK_BYTES) | (1 << 30);
        let low = self.origin / CHUNK_BYTES + (within / CHUNK_BYTES + ((leading / CHUNK_BYTES) << 16));
        mov_pair(low, HIGH)
    }

    /// Any of its rows.
    #[track_caller]
    pub(super) fn row(&self, row: U32) -> TileRow<'tile, E> {
        TileRow { start: self.origin + row * PANEL_ROW_BYTES, flip: row % 8 * CHUNK_BYTES, of: PhantomData }
    }

    /// Bytes from a chunk to the one `down` rows and `panel` panels further, where both are swizzled alike.
    pub(super) fn further(&self, down: u32, panel: u32) -> u32 {
        down * PANEL_ROW_BYTES + panel * self.panel_bytes
    }

    /// Each lane's address for a pair of columns of the first row.
    #[track_caller]
    pub(super) fn lanes_of_pairs(&self) -> U32 {
        self.origin + lane_index() * (2 * E::BYTES)
    }

    /// The address `down` rows, of eight, and `panel` panels further. Origins are multiples of 1024, so chunk numbers
    /// may be flipped in place.
    #[track_caller]
    pub(super) fn pair(&self, lanes: U32, down: u32, panel: u32) -> SharedPointer {
        Pointer::new(lanes ^ (down * CHUNK_BYTES)).plus(self.further(down, panel))
    }

    /// Where a chunk of a row lies, counted from the origin.
    #[track_caller]
    fn chunk(&self, row: U32, chunk: U32) -> U32 {
        let panel = if self.columns <= PANEL_COLUMNS { U32::from(0) } else { chunk / 8 * self.panel_bytes };
        row * PANEL_ROW_BYTES + ((chunk % 8) ^ (row % 8)) * CHUNK_BYTES + panel
    }

    /// The address 16 `k` columns and 16 `down` rows further. Origins are multiples of 128, so chunk numbers may be
    /// flipped in place.
    #[track_caller]
    pub(super) fn step(&self, lanes: U32, k: u32, down: u32) -> SharedPointer {
        let flipped = lanes ^ (k % STEPS_OF_PANEL * 2 * CHUNK_BYTES);
        Pointer::new(flipped).plus(k / STEPS_OF_PANEL * self.panel_bytes + down * 16 * PANEL_ROW_BYTES)
    }
}

/// One row of a tile, for lanes that read it by themselves.
#[derive(Clone, Copy)]
pub(super) struct TileRow<'tile, E> {
    start: U32,
    /// What its chunks are swizzled with, in bytes.
    flip: U32,
    of: PhantomData<&'tile SharedTile<E>>,
}

impl<E: Element> TileRow<'_, E> {
    /// Eight elements: the chunk `within` so many bytes of the first panel, and `further` bytes on.
    #[track_caller]
    pub fn eight(&self, within: U32, further: u32) -> [F32; 8] {
        let pairs = ld_shared_v4::<Packed<E>>(Pointer::new(self.start + (within ^ self.flip)).plus(further));
        let mut numbers = [F32::from(0.0); 8];
        for (numbers, pair) in numbers.as_chunks_mut().0.iter_mut().zip(pairs) {
            *numbers = pair.unpack();
        }
        numbers
    }
}

/// A tile read as its transpose.
#[derive(Clone, Copy)]
pub struct Transposed<'tile, E>(pub(super) View<'tile, E>);

/// One thread's share in copying tiles of a matrix: which chunks of which rows it moves.
pub(crate) struct CopyPlan<E> {
    source: Matrix<E>,
    /// The thread's first row in a tile, and its first column in global memory.
    row: U32,
    column: U32,
    /// Where the first chunk lies in a tile, and how many rows all threads move at once.
    to: U32,
    rows_at_once: u32,
    passes: Vec<Pass>,
}

/// Panels that are moved at once. A tile too wide to move eight rows of all its panels takes several passes.
struct Pass {
    /// Whether the matrix has the thread's column; none if it has all columns of the pass.
    inside: Option<Pred>,
    /// Bytes from the first pass, in global memory and in a tile.
    from: u32,
    to: u32,
}

impl<E: Element> CopyPlan<E> {
    #[track_caller]
    pub fn new(tile: &SharedTile<E>, source: Matrix<E>, warps: Warps) -> CopyPlan<E> {
        let at = here();
        let rows_at_once = |panels: u32| warps.threads() / (panels * PANEL_CHUNKS);
        let eights = |panels: &u32| rows_at_once(*panels) > 0 && rows_at_once(*panels).is_multiple_of(8);
        let all = panels(tile.columns);
        let at_once = (1..=all).rev().filter(|panels| all.is_multiple_of(*panels)).find(eights).unwrap_or(all);
        let rows_at_once = rows_at_once(at_once);
        // Then every step has the same swizzle and a constant distance.
        if !eights(&at_once) || !tile.rows.is_multiple_of(rows_at_once) {
            let message = format!("warps that copy {rows_at_once} rows at once cannot fill {} rows", tile.rows);
            BuildError::new(message, at).help("expected eights of rows that divide the tile").raise()
        }
        let chunks = at_once * PANEL_CHUNKS;
        let (row, chunk) = (warps.thread_index() / chunks, warps.thread_index() % chunks);
        let (to, column) = (tile.view().chunk(row, chunk), chunk * (CHUNK_BYTES / E::BYTES));
        let pass = |first: u32| {
            let whole = (first + at_once) * PANEL_COLUMNS <= source.columns;
            let inside = (!whole).then(|| column.lt(source.columns - first * PANEL_COLUMNS));
            Pass { inside, from: first * PANEL_ROW_BYTES, to: first * tile.view().panel_bytes }
        };
        let passes = (0..all).step_by(at_once as usize).map(pass).collect();
        CopyPlan { source, row, column, to, rows_at_once, passes }
    }

    /// Starts copying the rows that begin at `first` into `tile`; rows and columns that do not exist become zeros.
    #[track_caller]
    pub fn start(&self, tile: &SharedTile<E>, first: U32) {
        let to = tile.origin + self.to;
        for start in (0..tile.rows).step_by(self.rows_at_once as usize) {
            let row = first + self.row + start;
            let exists = row.lt(self.source.rows);
            for pass in &self.passes {
                let size = select(pass.inside.map_or(exists, |inside| inside & exists), CHUNK_BYTES, 0);
                let from: GlobalPointer = self.source.at(row, self.column).plus(pass.from);
                let place = Pointer::new(to).plus(start * PANEL_ROW_BYTES + pass.to);
                cp_async_cg_shared_global_16(place, from, size);
            }
        }
    }
}

/// A plain array of 32-bit `T` in shared memory.
#[derive(Clone, Copy)]
pub struct SharedVector<T> {
    origin: U32,
    of: PhantomData<T>,
}

impl<T: Type> SharedVector<T> {
    #[track_caller]
    pub fn new(length: u32) -> SharedVector<T> {
        SharedVector { origin: allocate(u64::from(length) * u64::from(T::BYTES), CHUNK_BYTES), of: PhantomData }
    }

    /// At an address that somebody else has allocated.
    pub(crate) fn placed(origin: U32) -> SharedVector<T> {
        SharedVector { origin, of: PhantomData }
    }

    /// The element `constant` after `index`. The constant becomes the instruction's offset.
    #[track_caller]
    pub(super) fn at(&self, index: U32, constant: u32) -> SharedPointer {
        Pointer::new(self.origin + index * T::BYTES).plus(constant * T::BYTES)
    }

    #[track_caller]
    pub fn load(&self, index: U32, constant: u32) -> Value<T> {
        ld_shared(self.at(index, constant))
    }

    #[track_caller]
    pub fn store(&self, index: U32, constant: u32, value: Value<T>) {
        st_shared(self.at(index, constant), value);
    }
}
