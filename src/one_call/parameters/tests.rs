use super::super::extras::Words;
use super::super::tensor::View;
use super::super::{Custom, Options};
use super::*;
use attention::configs::{CONFIGS, Config};
use attention::kernels::kernel_with;
use attention::kernels::parts::scores::{Head, Score};
use attention::problem::{Problem, Shape};
use attention::scoring::ScoreKind;
use launch::Limits;
use launch::resolved::{MAP_BYTES, Placement};
use launch::tensor_map::ResolvedMap;
use tile::prelude::{Coordinate, F32};

/// Buffers at round addresses.
struct Rack;

fn address(buffer: usize) -> u64 {
    0x1000 * (buffer as u64 + 1)
}

impl Placement for Rack {
    type Error = std::convert::Infallible;

    fn address(&mut self, buffer: usize) -> Result<u64, Self::Error> {
        Ok(address(buffer))
    }

    fn map(&mut self, _: &ResolvedMap) -> Result<[u8; MAP_BYTES], Self::Error> {
        unreachable!("these kernels take no tensor maps")
    }
}

/// One that reads a number for each head.
struct Bias;

impl Score for Bias {
    fn apply(&self, score: F32, _: Coordinate, _: Coordinate, head: Head) -> F32 {
        score + head.number
    }

    fn numbers(&self) -> Option<&'static str> {
        Some("bias")
    }
}

fn view(shape: Shape, problem: &Problem) -> View {
    View::new(problem.dtype(), [shape.batch, shape.heads, shape.rows, shape.columns], problem.layout())
}

/// What the features of a problem read, on the host.
struct Arrays {
    heads: Vec<f32>,
    q_ids: Vec<u32>,
    k_ids: Vec<u32>,
}

impl Arrays {
    fn new(problem: &Problem) -> Arrays {
        let rows = |shape: Shape| vec![0; (shape.batch * shape.rows) as usize];
        let heads = vec![0.5; problem.heads() as usize];
        Arrays { heads, q_ids: rows(problem.q_shape()), k_ids: rows(problem.k_shape()) }
    }

    fn options<'a>(&'a self, problem: &'a Problem) -> Options<'a> {
        let mut options = Options::new().mask(problem.mask()).scale(problem.scale());
        options = match problem.score() {
            ScoreKind::Plain => options,
            ScoreKind::SoftCap { cap } => options.softcap(cap),
            ScoreKind::Alibi => options.alibi(&self.heads),
        };
        if problem.sinks() {
            options = options.sinks(&self.heads);
        }
        if problem.documents() {
            options = options.documents(&self.q_ids, &self.k_ids);
        }
        match problem.packed() {
            Some(packed) => options.packed(packed.queries(), packed.keys()),
            None => options,
        }
    }
}

/// The block that a call builds is the one that the kernel's own recipe makes, and so is the grid.
fn agrees(problem: &Problem, options: &Options) {
    agrees_with(problem, options, &CONFIGS[0]);
    agrees_with(problem, &options.clone().debug(), &CONFIGS[0].debug());
    if problem.packed().is_none() {
        let split = Config { splits: 3, ..CONFIGS[0] };
        agrees_with(problem, options, &split);
        agrees_with(problem, &options.clone().debug(), &split.debug());
    }
}

fn agrees_with(problem: &Problem, options: &Options, config: &Config) {
    let kernel = options.with_parts(problem, |mask, score| kernel_with(problem, config, mask, score)).unwrap();
    let resolved = kernel.resolve(&Limits::default()).unwrap();
    let expected = |launch: usize| {
        let launch = &resolved.launches[launch];
        launch.parameters(kernel.entry(launch).unwrap(), &mut Rack).unwrap()
    };
    let buffer = |name: &str| address(resolved.buffers.iter().position(|buffer| buffer.name == name).unwrap());

    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape(), problem.o_shape(), problem.q_shape()];
    let placed = |index: usize| {
        let (view, address) = (view(shapes[index], problem), address(index));
        Placed { argument: "any", view, address, bytes: 0, device: 0 }
    };
    let [q, k, v, o, lse] = [0, 1, 2, 3, 4].map(placed);
    let call = Call::new(&q.view, &k.view, &v.view, options).unwrap();
    let place = |extra: Extra, words: &Words| {
        let name = if extra == Extra::ScoreNumbers { "bias" } else { extra.argument() };
        Ok(Memory { address: buffer(name), bytes: words.bytes(), device: 0 })
    };
    let extras = options.extras.try_map(place).unwrap();
    assert_eq!(call.grid(config), resolved.launches[0].grid, "{problem}");
    // The launch knows where the report of a debug kernel is.
    let launched = |mut block: Block| {
        if config.debug {
            block.bytes_mut()[..8].copy_from_slice(&buffer("report").to_le_bytes());
        }
        block.bytes().to_vec()
    };
    if config.splits == 1 {
        let block = Block::new(&call, options, [&q, &k, &v], &o, &lse, &extras);
        return assert_eq!(launched(block), expected(0), "{problem}");
    }
    let [outputs, statistics] = ["part_outputs", "part_statistics"].map(buffer);
    let parts = Parts { outputs, statistics, splits: config.splits };
    let block = Block::of_parts(&call, options, [&q, &k, &v], parts, &extras);
    assert_eq!(launched(block), expected(0), "{problem}");
    assert_eq!(Block::joining(&call, &o, &lse, parts, &extras).bytes(), expected(1), "{problem}");
    assert_eq!(call.joining_grid(), resolved.launches[1].grid, "{problem}");
}

#[test]
fn the_block_is_the_recipes() {
    for text in [
        "B3 H6/2 Sq5 Sk7 D64/128 scale0.3",
        "B3 H6/2 Sq5 Sk7 D64/128 scale0.3 bshd",
        "B3 H6/2 Sq5 Sk7 D64 causal softcap30 scale0.3",
        "B3 H6/2 Sq5 Sk7 D64 window3/4 alibi bshd",
        "B3 H6/2 Sq5 Sk7 D64 sinks",
        "B3 H6/2 Sq5 Sk7 D64 documents",
        "B3 H6/2 Sq5 Sk7 D64 alibi sinks documents",
        "H6/2 Sq5,0,40 Sk7,3,1 D64/128 scale0.3",
        "H6/2 Sq5,0,40 Sk7,3,1 D64 causal alibi sinks documents",
        "H6/2 Sq5,0,40 Sk7,3,1 D64 softcap3 sinks",
    ] {
        let problem = text.parse().unwrap();
        agrees(&problem, &Arrays::new(&problem).options(&problem));
    }
}

#[test]
fn numbers_of_a_users_score_have_the_place_of_slopes() {
    let problem: Problem = "B3 H6/2 Sq5 Sk7 D64 sinks documents scale0.3".parse().unwrap();
    let (arrays, bias) = (Arrays::new(&problem), Custom::new(Bias));
    let options = arrays.options(&problem).score_with(&bias).score_numbers(&arrays.heads);
    agrees(&problem, &options);
}
