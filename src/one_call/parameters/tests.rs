use super::super::extras::Words;
use super::super::tensor::View;
use super::super::{Custom, Options};
use super::*;
use attention::configs::{CONFIGS, Config, HOPPER, Math};
use attention::kernels::kernel_with;
use attention::kernels::parts::scores::{Head, Score};
use attention::planner::Gpu;
use attention::problem::{Layout, Problem, Shape};
use attention::scoring::ScoreKind;
use launch::Limits;
use launch::resolved::{self, MAP_BYTES, Placement};
use launch::tensor_map::{Interleave, OutOfBounds, ResolvedMap};
use tile::prelude::{Coordinate, F32};

/// Buffers at round addresses, and maps that tell all that they were made of.
struct Rack<'a>(&'a [resolved::Buffer]);

fn address(buffer: usize) -> u64 {
    0x1000 * (buffer as u64 + 1)
}

impl Placement for Rack<'_> {
    type Error = std::convert::Infallible;

    fn address(&mut self, buffer: usize) -> Result<u64, Self::Error> {
        Ok(address(buffer))
    }

    fn map(&mut self, map: &ResolvedMap) -> Result<[u8; MAP_BYTES], Self::Error> {
        let others = (map.interleave, map.oob, map.element_strides.as_slice());
        assert_eq!(others, (Interleave::None, OutOfBounds::Zero, &[1; 4][..]), "what a call's maps have unsaid");
        Ok(told(&Tiled {
            element: self.0[map.buffer].element,
            address: address(map.buffer),
            dims: map.dims.as_slice().try_into().unwrap(),
            strides: map.strides.as_slice().try_into().unwrap(),
            box_dims: map.box_dims.as_slice().try_into().unwrap(),
            swizzle: map.swizzle,
            l2: map.l2,
        }))
    }
}

/// The text of a map, as far as it has room: the end, which has all but the name.
fn told(map: &Tiled) -> [u8; MAP_BYTES] {
    let Tiled { element, address, dims, strides, box_dims, swizzle, l2 } = map;
    let text = format!("{element} {address:x} {dims:x?} {strides:x?} {box_dims:x?} {swizzle} {l2}");
    let mut bytes = [b' '; MAP_BYTES];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
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
    // Heads that share keys, and such that do not.
    for config in CONFIGS.iter().filter(|config| [1, 21].contains(&config.id)) {
        agrees_with(problem, options, config);
        agrees_with(problem, &options.clone().debug(), &config.debug());
        if problem.packed().is_none() {
            let split = Config { splits: 3, ..*config };
            agrees_with(problem, options, &split);
            agrees_with(problem, &options.clone().debug(), &split.debug());
        }
    }
    agrees_on_90a(problem, options);
}

fn agrees_on_90a(problem: &Problem, options: &Options) {
    for config in HOPPER.iter().filter(|config| config.serves(problem)) {
        agrees_with(problem, options, config);
        if problem.packed().is_none() {
            agrees_with(problem, options, &Config { splits: 3, ..*config });
        }
    }
}

fn agrees_with(problem: &Problem, options: &Options, config: &Config) {
    let kernel = options.with_parts(problem, |mask, score| kernel_with(problem, config, mask, score)).unwrap();
    let resolved = kernel.resolve(&Limits::default()).unwrap();
    let expected = |launch: usize| {
        let launch = &resolved.launches[launch];
        launch.parameters(kernel.entry(launch).unwrap(), &mut Rack(&resolved.buffers)).unwrap()
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
    assert_eq!(call.grid(config, Gpu::H200.processors), resolved.launches[0].grid, "{problem}");
    // The launch knows where the report of a debug kernel is.
    let launched = |mut block: Block| {
        if config.debug {
            block.bytes_mut()[..8].copy_from_slice(&buffer("report").to_le_bytes());
        }
        block.bytes().to_vec()
    };
    let parts = (config.splits > 1).then(|| {
        let [outputs, statistics] = ["part_outputs", "part_statistics"].map(buffer);
        Parts { outputs, statistics, splits: config.splits }
    });
    let block = match (config.math, parts) {
        (Math::Warpgroup, parts) => {
            let counter = resolved.buffers.iter().any(|one| one.name == "counter").then(|| buffer("counter"));
            let tiles = Tiles { config, counter, parts, map: &|map| Ok(told(map)) };
            Block::of_tiles(&call, options, [&q, &k, &v], [&o, &lse], &extras, tiles).unwrap()
        }
        (_, Some(parts)) => Block::of_parts(&call, options, [&q, &k, &v], parts, &extras),
        (_, None) => Block::new(&call, options, [&q, &k, &v], &o, &lse, &extras),
    };
    assert_eq!(launched(block), expected(0), "{problem}, config {}", config.id);
    let Some(parts) = parts else { return };
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

/// Types, layouts, masks, groups of heads, heads whose output goes out as tiles and not, sections of heads, more tiles than
/// processors, packed sequences.
#[test]
fn the_block_of_sm_90a_is_the_recipes() {
    for text in [
        "bf16 B3 H6/2 Sq500 Sk700 D64 scale0.3 bshd",
        "B3 H6/2 Sq500 Sk700 D128 causal",
        "B1 H1 Sq1 Sk1 D64/128 causal-top-left bshd",
        "B3 H6/2 Sq500 Sk700 D128/64 window30/4",
        "B1 H12/4 Sq500 Sk70000 D64 causal",
        "B8 H20 Sq500 Sk20 D64",
        "B2 H12/2 Sq50 Sk7 D96 causal bshd",
        "H6/2 Sq500,1,300 Sk700,3,0 D64",
        "bf16 H12/4 Sq500,0,300 Sk70000,3,20 D128 causal bshd",
        "H6/2 Sq500,1,300 Sk700,3,0 D192/128 window30/4 sinks",
    ] {
        let problem: Problem = text.parse().unwrap();
        assert!(HOPPER.iter().any(|config| config.serves(&problem)), "{text}");
        agrees_on_90a(&problem, &Arrays::new(&problem).options(&problem));
    }
}

/// A dimension of one element may have any stride; a map asks for a stride all the same.
#[test]
fn strides_of_single_elements_are_never_said() {
    let view = View { strides: [3, 0, 64, 1], ..View::new(DType::F16, [1, 1, 512, 64], Layout::Bhsd) };
    let placed = Placed { argument: "q", view, address: 0x1000, bytes: 0, device: 0 };
    assert_eq!(placed.tiled(128).strides, [128, 16, 16]);
}

#[test]
fn numbers_of_a_users_score_have_the_place_of_slopes() {
    let problem: Problem = "B3 H6/2 Sq5 Sk7 D64 sinks documents scale0.3".parse().unwrap();
    let (arrays, bias) = (Arrays::new(&problem), Custom::new(Bias));
    let options = arrays.options(&problem).score_with(&bias).score_numbers(&arrays.heads);
    agrees(&problem, &options);
}
