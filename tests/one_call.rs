//! Attention in one call, judged by the oracle: on the emulator everywhere, on a GPU where there is one. With
//! `VERIFLASH_REQUIRE_GPU` set, a machine without a GPU fails instead of passing with the sentence.

use ::attention::oracle::{Inputs, Oracle, Outputs};
use ::attention::problem::{DType, Layout, Problem, Shape};
use cuda::{Context, DeviceBuffer, Graph, Stream};
use half::{bf16, f16};
use veriflash::{
    DeviceTensor, DeviceTensorMut, Error, HostOutput, HostTensor, Number, Options, attention, attention_into,
};

const PROBLEMS: [&str; 8] = [
    "B1 H2 Sq5 Sk70 D64 causal",
    "B2 H4/2 Sq40 Sk33 D64/40 window16/2",
    "B2 H2 S33 D16 causal bshd",
    "B1 H1 Sq3 Sk0 D64",
    "B1 H2 S40 D192/128 causal scale0.5",
    "bf16 B1 H8/1 Sq1 Sk130 D128",
    "bf16 B2 H3 Sq17 Sk64 D128 causal-top-left bshd",
    "bf16 B1 H1 S130 D80 full",
];

/// Numbers between −1 and 1 that repeat only after long.
fn numbers(shape: Shape, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..shape.elements()).map(|_| next()).collect()
}

fn sizes(shape: Shape) -> [u32; 4] {
    [shape.batch, shape.heads, shape.rows, shape.columns]
}

fn options(problem: &Problem) -> Options<'static> {
    Options::new().mask(problem.mask()).scale(problem.scale())
}

fn rounded<N: Number>(problem: &Problem, from: impl Fn(f32) -> N) -> [Vec<N>; 3] {
    let shapes = [(problem.q_shape(), 1), (problem.k_shape(), 2), (problem.v_shape(), 3)];
    shapes.map(|(shape, seed)| numbers(shape, seed).into_iter().map(&from).collect())
}

fn call<N: Number>(problem: &Problem, inputs: &[Vec<N>; 3], options: &Options) -> Result<HostOutput<N>, Error> {
    let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape()];
    let [q, k, v] =
        [0, 1, 2].map(|index| HostTensor::new(&inputs[index], sizes(shapes[index])).layout(problem.layout()));
    attention(&q, &k, &v, options)
}

fn judge<N: Number>(problem: &Problem, inputs: &[Vec<N>; 3], output: &HostOutput<N>) {
    let [q, k, v] = [0, 1, 2].map(|index| N::bits(&inputs[index]));
    let inputs = Inputs::from_bits(problem, q, k, v).unwrap();
    let actual = Outputs::from_bits(problem, N::bits(&output.o), &output.lse).unwrap();
    let parity = Oracle::new(problem, &inputs).unwrap().judge(&actual).unwrap();
    assert!(parity.passes(), "{problem}: {parity:?}");
}

fn check(text: &str, change: impl Fn(Options<'static>) -> Options<'static>) -> Result<(), Error> {
    let problem: Problem = text.parse().unwrap();
    let options = change(options(&problem));
    match problem.dtype() {
        DType::F16 => {
            let inputs = rounded(&problem, f16::from_f32);
            judge(&problem, &inputs, &call(&problem, &inputs, &options)?);
        }
        DType::Bf16 => {
            let inputs = rounded(&problem, bf16::from_f32);
            judge(&problem, &inputs, &call(&problem, &inputs, &options)?);
        }
    }
    Ok(())
}

#[test]
fn the_emulator_answers_as_the_oracle_does() {
    for problem in PROBLEMS {
        check(problem, Options::emulator).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
}

#[test]
fn a_configuration_may_be_asked_for() {
    check("B1 H1 S40 D64 causal", |options| options.emulator().config(5)).unwrap();
    let error = check("B1 H1 S40 D64", |options| options.emulator().config(10)).unwrap_err();
    assert_eq!(error.to_string(), "there is no config 10: expected one of 1, 2, 3, 4, 5, 6, 7, 8, 9");
    let error = check("B1 H1 S40 D256", |options| options.emulator().config(1)).unwrap_err();
    assert!(error.to_string().contains("use config 6"), "{error}");
}

#[test]
fn wrong_arguments_are_named_before_a_gpu_is_looked_for() {
    let numbers = vec![f16::ZERO; 64 * 10];
    let tensor = |shape| HostTensor::new(&numbers, shape);
    let right = tensor([1, 1, 10, 64]);
    let refused = |k| attention(&right, &k, &right, &Options::new()).unwrap_err().to_string();
    assert_eq!(refused(tensor([1, 1, 9, 64])), "`k` has 640 elements: expected 576 for its shape");
    assert_eq!(refused(tensor([1, 10, 1, 64])), "`v` has 1 heads: expected 10, as in `q` and `k`");
    assert_eq!(refused(right.layout(Layout::Bshd)), "`k` is bshd: expected bhsd, as `q` is");
}

/// One test: its cases share the GPU.
#[test]
fn gpu() {
    let context = match Context::here() {
        Ok(context) => context,
        Err(error) => return no_gpu(error),
    };
    println!("GPU: {}", context.device());
    for problem in PROBLEMS.into_iter().chain(["B1 H64 S640 D128 causal", "bf16 B1 H4 S2000 D256 window100/5"]) {
        check(problem, |options| options).unwrap_or_else(|error| panic!("{problem}: {error}"));
    }
    for config in 1..=9 {
        check("B2 H3 Sq200 Sk300 D64 causal", |options| options.config(config)).unwrap();
    }
    streams_and_graphs_agree(&context);
    wrong_device_arguments(&context);
}

fn no_gpu(error: cuda::Error) {
    println!("not run on a GPU: {error}");
    assert!(std::env::var_os("VERIFLASH_REQUIRE_GPU").is_none(), "a GPU is required: {error}");
    let error = check(PROBLEMS[0], |options| options).unwrap_err();
    assert!(matches!(error, Error::NoGpu { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("the CPU backend comes with a later version"), "{text}");
}

/// 1,000 launches in one stream, as many in eight, and a graph: the same bits.
fn streams_and_graphs_agree(context: &std::sync::Arc<Context>) {
    let problem: Problem = "B2 H8 S500 D64 causal bshd".parse().unwrap();
    let (shape, bytes) = (sizes(problem.q_shape()), problem.q_shape().elements() * 2);
    let inputs = rounded(&problem, f16::from_f32);
    let expected = call(&problem, &inputs, &options(&problem)).unwrap();
    let streams: Vec<Stream> = (0..8).map(|_| Stream::new(context).unwrap()).collect();
    let memory = inputs.each_ref().map(|values| {
        let mut buffer = DeviceBuffer::new(context, bytes).unwrap();
        buffer.write(&streams[0], bytemuck::cast_slice(f16::bits(values))).unwrap();
        buffer
    });
    let [q, k, v] = memory.each_ref().map(|one| DeviceTensor::new(one.slice(), DType::F16, shape, Layout::Bshd));
    let run = |stream: &Stream, launches: usize, in_graph: bool| {
        let mut o = DeviceBuffer::new(context, bytes).unwrap();
        let mut lse = DeviceBuffer::new(context, bytes / 64 * 2).unwrap();
        let options = options(&problem).stream(stream);
        let mut launch = || {
            let mut o = DeviceTensorMut::new(o.slice_mut(), DType::F16, shape, Layout::Bshd);
            attention_into(&q, &k, &v, &mut o, &mut lse.slice_mut(), &options)
        };
        match in_graph {
            true => Graph::capture(stream, launch).unwrap().launch(stream).unwrap(),
            false => (0..launches).for_each(|_| launch().unwrap()),
        }
        (o, lse)
    };
    let alone = run(&streams[0], 1000, false);
    let side_by_side: Vec<_> = streams.iter().map(|stream| run(stream, 125, false)).collect();
    let recorded = run(&streams[1], 1, true);
    context.synchronise().unwrap();
    for (o, lse) in [alone, recorded].into_iter().chain(side_by_side) {
        let (mut halves, mut floats) = (vec![0_u16; bytes / 2], vec![0_f32; bytes / 128]);
        o.read(&streams[0], bytemuck::cast_slice_mut(&mut halves)).unwrap();
        lse.read(&streams[0], bytemuck::cast_slice_mut(&mut floats)).unwrap();
        assert!(halves == f16::bits(&expected.o) && floats == expected.lse, "results differ");
    }
    println!("1,000 launches in one stream, 1,000 in eight, one in a graph: equal to the bit");
}

fn wrong_device_arguments(context: &std::sync::Arc<Context>) {
    let buffer = DeviceBuffer::new(context, 64 * 64 * 2).unwrap();
    let tensor = DeviceTensor::new(buffer.slice(), DType::F16, [1, 1, 64, 64], Layout::Bhsd);
    let error = attention(&tensor, &tensor, &tensor.strides([1, 1, 1 << 20, 1]), &Options::new()).unwrap_err();
    assert!(error.to_string().starts_with("`v` has 8192 bytes"), "{error}");
    let error = attention(&tensor, &tensor, &tensor, &Options::new().emulator()).unwrap_err();
    assert!(matches!(error, Error::EmulatorOnDevice), "{error}");
    context.synchronise().expect("nothing was launched");
}
