//! Tensors on the host: computed where they are, copied to a GPU and back, or computed by the emulator.

use super::call::{self, Call};
use super::extras::{Extra, Extras, Words};
use super::tensor::{DeviceTensor, HostTensor, Number};
use super::{Backend, Error, Options, Tensor, arguments, attention, cpu, custom, workspace};
use ::attention::kernels::{self, kernel_with};
use ::attention::planner::Gpu;
use ::attention::problem::Problem;
use cuda::{Context, DeviceBuffer, Stream};
use emulator::Emulator;
use launch::Memory;
use launch::backend::{Backend as _, Options as Schedule};

/// O and the log-sum-exp on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutput<N> {
    /// O, in the order of the dimensions of `q`.
    pub o: Vec<N>,
    /// (batch, heads, queries), or (heads, queries) of packed sequences; −∞ where a query sees no key.
    pub lse: Vec<f32>,
    /// Who computed it; never [`Backend::Auto`].
    pub backend: Backend,
}

impl<N: Number> Tensor for HostTensor<'_, N> {
    type Output = HostOutput<N>;

    fn attention(q: &Self, k: &Self, v: &Self, options: &Options) -> Result<HostOutput<N>, Error> {
        let call = checked(q, k, v, options)?;
        let shape = call.problem.o_shape();
        let mut o = vec![N::default(); shape.elements()];
        let mut lse = vec![0.0; shape.elements() / shape.columns as usize];
        let backend = into(&call, [q, k, v], &mut o, &mut lse, options)?;
        Ok(HostOutput { o, lse, backend })
    }
}

/// The same as [`attention`](super::attention) on host tensors, into slices of the caller's: O in the order of the dimensions of
/// `q`, and the log-sum-exp as (batch, heads, queries), or (heads, queries) of packed sequences. On plain cores a call allocates
/// nothing once its shape was met. Says who computed it.
///
/// ```
/// use veriflash::{Backend, HostTensor, Options, attention_into_host};
///
/// let values = vec![1.0f32; 2 * 5 * 20]; // f32 and any head dimension: on plain cores
/// let tensor = HostTensor::new(&values, [1, 2, 5, 20]);
/// let (mut o, mut lse) = (vec![0.0; values.len()], vec![0.0; 2 * 5]);
/// let backend = attention_into_host(&tensor, &tensor, &tensor, &mut o, &mut lse, &Options::new().causal())?;
/// assert_eq!((o, backend), (values.clone(), Backend::Cpu));
/// # Ok::<(), veriflash::Error>(())
/// ```
pub fn attention_into_host<N: Number>(
    q: &HostTensor<N>,
    k: &HostTensor<N>,
    v: &HostTensor<N>,
    o: &mut [N],
    lse: &mut [f32],
    options: &Options,
) -> Result<Backend, Error> {
    let call = checked(q, k, v, options)?;
    let elements = call.problem.o_shape().elements();
    let rows = elements / call.problem.value_dim() as usize;
    for (argument, found, expected) in [("o", o.len(), elements), ("lse", lse.len(), rows)] {
        if found != expected {
            let (found, expected) = (found as u64, expected as u128);
            return Err(Error::Length { argument, unit: "elements", found, expected });
        }
    }
    into(&call, [q, k, v], o, lse, options)
}

fn checked<N: Number>(
    q: &HostTensor<N>,
    k: &HostTensor<N>,
    v: &HostTensor<N>,
    options: &Options,
) -> Result<Call, Error> {
    workspace::refuse_on_host(options)?;
    for (argument, tensor) in [("q", q), ("k", k), ("v", v)] {
        arguments::host(argument, tensor, q, options)?;
    }
    for (extra, words) in options.extras.iter() {
        words.on_host(extra)?;
    }
    Call::new(&q.view(), &k.view(), &v.view(), options)
}

fn into<N: Number>(
    call: &Call,
    inputs: [&HostTensor<N>; 3],
    o: &mut [N],
    lse: &mut [f32],
    options: &Options,
) -> Result<Backend, Error> {
    let backend = Backend::choose(options, call)?;
    if backend == Backend::Cpu {
        cpu::into(call, inputs, options, o, lse)?;
        return Ok(backend);
    }
    let [q, _, v] = inputs.map(HostTensor::view);
    arguments::kernel_columns(&q, &v)?;
    call.check_grid()?;
    kernels::check_kind(call.problem.dtype(), call.problem.dims())?;
    let extras = options.extras.try_map(|extra, words| words.on_host(extra))?;
    let dense = inputs.map(|tensor| tensor.dense(q.layout()));
    let inputs = [0, 1, 2].map(|index| HostTensor::new(&dense[index], inputs[index].shape).layout(q.layout()));
    let (bits, of_rows) = match backend {
        Backend::Emulator => on_emulator(call, inputs.each_ref(), &extras, options)?,
        _ => on_gpu(call, inputs.each_ref(), &extras, options)?,
    };
    N::copy_bits(&bits, o);
    lse.copy_from_slice(&of_rows);
    Ok(backend)
}

type Bits = (Vec<u16>, Vec<f32>);

fn on_gpu<N: Number>(
    call: &Call,
    inputs: [&HostTensor<N>; 3],
    extras: &Extras<&[u8]>,
    options: &Options,
) -> Result<Bits, Error> {
    let own;
    let stream = match options.stream {
        Some(stream) => stream,
        None => {
            own = Stream::new(&Context::here()?)?;
            &own
        }
    };
    let [q, k, v] = inputs.map(|tensor| copy_in(stream, bytemuck::cast_slice(N::bits(tensor.values))));
    let memory = [q?, k?, v?];
    let copies = extras.try_map(|_, bytes| copy_in(stream, bytes))?;
    let extras = copies.try_map(|_, copy| Ok(Words::Device(copy.slice())))?;
    let [q, k, v] = [0, 1, 2].map(|index| {
        let HostTensor { shape, layout, .. } = *inputs[index];
        DeviceTensor::new(memory[index].slice(), N::DTYPE, shape, layout)
    });
    let mut options = options.clone().stream(stream).with_extras(extras);
    // The host has seen how long sequences are; the copies are the GPU's.
    options.longest = call.sequences.map(|sequences| sequences.longest);
    let output = attention(&q, &k, &v, &options)?;
    let (mut o, mut lse) = (vec![0; output.o.slice().bytes() / 2], vec![0.0; output.lse.slice().bytes() / 4]);
    output.o.read(stream, bytemuck::cast_slice_mut(&mut o))?;
    output.lse.read(stream, bytemuck::cast_slice_mut(&mut lse))?;
    Ok((o, lse))
}

fn copy_in(stream: &Stream, bytes: &[u8]) -> Result<DeviceBuffer, Error> {
    let mut buffer = DeviceBuffer::new(stream.context(), bytes.len())?;
    buffer.write(stream, bytes)?;
    Ok(buffer)
}

/// The kernel that an H200 would run, with all checks of the emulator.
fn on_emulator<N: Number>(
    call: &Call,
    inputs: [&HostTensor<N>; 3],
    extras: &Extras<&[u8]>,
    options: &Options,
) -> Result<Bits, Error> {
    let said = |error: &dyn std::fmt::Display| Error::Emulator(error.to_string());
    let config = options.split_config_for(call, &Gpu::H200)?;
    let problem = with_places(call, inputs, options)?;
    if let Some(mask) = options.custom_mask {
        custom::check_promises(&**mask, &problem, &config)?;
    }
    let kernel = options.with_parts(&problem, |mask, score| kernel_with(&problem, &config, mask, score))?;
    let mut loaded = Emulator.load(&kernel).map_err(|error| said(&error))?;
    let mut memory = Memory::new(loaded.resolved(), 0).map_err(|error| said(&error))?;
    let tensors = ["q", "k", "v"].into_iter().zip(inputs.map(|tensor| bytemuck::cast_slice(N::bits(tensor.values))));
    let arrays = extras.iter().map(|(extra, bytes)| (buffer_name(extra, options), *bytes));
    for (name, bytes) in tensors.chain(arrays) {
        let buffer = memory.buffers.iter_mut().find(|buffer| buffer.name == name);
        // A buffer has at least one element, though there may be no key.
        for buffer in buffer.into_iter().filter(|_| !bytes.is_empty()) {
            buffer.contents = bytes.to_vec().into();
        }
    }
    let run = Emulator.run(&mut loaded, &mut memory, &Schedule::default()).map_err(|error| said(&error))?;
    if let Some(finding) = run.findings.first() {
        return Err(Error::Emulator(finding.message.clone()));
    }
    let bytes = |name: &str| memory.buffer(name).map(|buffer| buffer.contents.to_vec()).unwrap_or_default();
    let (o, lse) = (bytes("o"), bytes("lse"));
    let halves = o.as_chunks().0.iter().map(|half| u16::from_le_bytes(*half)).collect();
    Ok((halves, lse.as_chunks().0.iter().map(|float| f32::from_le_bytes(*float)).collect()))
}

/// The problem whose packed sequences are where the host says.
fn with_places<N: Number>(call: &Call, [q, k, v]: [&HostTensor<N>; 3], options: &Options) -> Result<Problem, Error> {
    let places = [Extra::CuQ, Extra::CuK].map(|extra| options.extras.get(extra));
    let [Some(Words::Integers(of_q)), Some(Words::Integers(of_k))] = places else { return Ok(call.problem.clone()) };
    let builder = call::problem(&q.view(), &k.view(), &v.view(), options).batch(of_q.len() as u32 - 1);
    Ok(builder.cumulative_queries(of_q.to_vec()).cumulative_keys(of_k.to_vec()).build()?)
}

/// What the recipe calls it: numbers that a score reads have the name that the score gives them.
fn buffer_name(extra: Extra, options: &Options) -> &'static str {
    match (extra, options.custom_score) {
        (Extra::ScoreNumbers, Some(score)) => score.numbers().unwrap_or_default(),
        _ => extra.argument(),
    }
}
