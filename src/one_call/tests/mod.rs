//! A call as far as it goes without a driver.

mod bad_input;
mod cost;
mod keys;
mod packed;
mod splits;

use super::arguments::{self, Placed};
use super::call::Call;
use super::extras::{Extra, Extras, Memory};
use super::parameters::{Block, Tiles};
use super::tensor::View;
use super::{Error, Options, workspace};
use attention::configs::{Config, Math};
use attention::planner::Gpu;
use attention::problem::{DType, Layout};
use launch::resolved::MAP_BYTES;

/// The GPU of the stream.
const DEVICE: u32 = 1;

/// What `attention_into` is given, with everything where it belongs.
#[derive(Clone)]
struct Attempt<'a> {
    q: Placed,
    k: Placed,
    v: Placed,
    o: Placed,
    lse: Placed,
    extras: Extras<Memory>,
    workspace: Option<Memory>,
    options: Options<'a>,
}

impl<'a> Attempt<'a> {
    /// Q and O have that shape, K and V as many rows of two heads; nothing overlaps.
    fn new(shape: [u32; 4], layout: Layout, options: Options<'a>) -> Attempt<'a> {
        let [batch, heads, rows, columns] = shape;
        let at = |number: u64| 0x1000_0000 * (number + 1);
        let placed = |argument, number, shape: [u32; 4]| {
            let bytes = shape.into_iter().map(u64::from).product::<u64>() * 2;
            let view = View::new(DType::F16, shape, layout);
            Placed { argument, view, address: at(number), bytes, device: DEVICE }
        };
        let of_keys = [batch, 2, rows, columns];
        let view = View { dtype: DType::F16, shape: [0; 4], strides: [0; 4] };
        let bytes = u64::from(batch * heads * rows) * 4;
        let lse = Placed { argument: "lse", view, address: at(4), bytes, device: DEVICE };
        let place = |extra: Extra, words: &super::extras::Words| {
            Ok(Memory { address: at(5 + extra as u64), bytes: words.bytes(), device: DEVICE })
        };
        let extras = options.extras.try_map(place).expect("every array has a place");
        let (q, k, v, o) =
            (placed("q", 0, shape), placed("k", 1, of_keys), placed("v", 2, of_keys), placed("o", 3, shape));
        Attempt { q, k, v, o, lse, extras, workspace: None, options }
    }

    /// K and V have that many rows.
    fn of_keys(&mut self, keys: u32) {
        for tensor in [&mut self.k, &mut self.v] {
            let View { dtype, shape: [batch, heads, _, columns], .. } = tensor.view;
            tensor.view = View::new(dtype, [batch, heads, keys, columns], tensor.view.layout());
            tensor.bytes = u64::from(batch * heads * keys * columns) * 2;
        }
    }

    /// What `attention_into` checks.
    fn check(&self) -> Result<Call, Error> {
        let call = Call::of_kernels(&self.q.view, &self.k.view, &self.v.view, &self.options)?;
        let workspace = self.workspace.as_ref();
        arguments::placement(&call.problem, self.inputs(), &self.o, &self.lse, &self.extras, workspace, DEVICE)?;
        if let Some(memory) = workspace {
            workspace::parts(memory, &call, &self.options.split_config_for(&call, &Gpu::H200)?)?;
        }
        Ok(call)
    }

    /// Maps are those that were encoded before, and the counter that of a stream.
    fn block(&self, call: &Call, config: &Config) -> Block {
        if config.math != Math::Warpgroup {
            return Block::new(call, &self.options, self.inputs(), &self.o, &self.lse, &self.extras);
        }
        let tiles = Tiles { config, counter: Some(0x1000), parts: None, map: &|_| Ok([0; MAP_BYTES]) };
        Block::of_tiles(call, &self.options, self.inputs(), [&self.o, &self.lse], &self.extras, tiles)
            .expect("a map is there")
    }

    fn inputs(&self) -> [&Placed; 3] {
        [&self.q, &self.k, &self.v]
    }
}
