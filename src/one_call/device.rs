//! Tensors on a GPU.

use super::arguments::{self, Placed};
use super::call::Call;
use super::extras::{Memory, Words};
use super::parameters::{Block, Tiles};
use super::tensor::{DeviceTensor, DeviceTensorMut, View};
use super::{Backend, Error, Options, Tensor, kernels, workspace};
use attention::configs::Math;
use attention::planner::{Gpu, OLDEST};
use attention::problem::{DType, Layout};
use cuda::{Context, Device, DeviceBuffer, DeviceSliceMut, Stream};

/// O and the log-sum-exp on a GPU.
#[derive(Debug)]
pub struct DeviceOutput {
    /// O, in the order of the dimensions of `q`.
    pub o: DeviceBuffer,
    /// (batch, heads, queries) in f32, (heads, queries) of packed sequences; −∞ where a query sees no key.
    pub lse: DeviceBuffer,
    dtype: DType,
    shape: [u32; 4],
    layout: Layout,
    /// What was in between: the kernels may still be at it.
    _parts: Option<DeviceBuffer>,
}

impl DeviceOutput {
    /// O as a tensor, for the next call.
    pub fn tensor(&self) -> DeviceTensor<'_> {
        DeviceTensor::new(self.o.slice(), self.dtype, self.shape, self.layout)
    }
}

impl Tensor for DeviceTensor<'_> {
    type Output = DeviceOutput;

    fn attention(q: &Self, k: &Self, v: &Self, options: &Options) -> Result<DeviceOutput, Error> {
        let call = Call::of_kernels(&q.view, &k.view, &v.view, options)?;
        let (problem, stream) = (&call.problem, StreamOf::new(options)?);
        let (shape, layout, context) = (problem.o_shape(), problem.layout(), stream.get().context());
        let config = options.split_config_for(&call, &gpu(context.device())?)?;
        let part_bytes = workspace::bytes(&call, &config) as usize;
        let needs_parts = part_bytes > 0 && options.workspace.is_none();
        let mut parts = needs_parts.then(|| DeviceBuffer::new(context, part_bytes)).transpose()?;
        let elements = shape.elements();
        let mut output = DeviceOutput {
            o: DeviceBuffer::new(context, elements * 2)?,
            lse: DeviceBuffer::new(context, elements / shape.columns as usize * 4)?,
            dtype: problem.dtype(),
            shape: [shape.batch, shape.heads, shape.rows, shape.columns],
            layout,
            _parts: None,
        };
        let mut o = DeviceTensorMut::new(output.o.slice_mut(), output.dtype, output.shape, layout);
        let options = options.clone().stream(stream.get());
        let options = match &mut parts {
            Some(parts) => options.workspace(parts.slice_mut()),
            None => options,
        };
        attention_into(q, k, v, &mut o, &mut output.lse.slice_mut(), &options)?;
        Ok(DeviceOutput { _parts: parts, ..output })
    }
}

/// The same as [`attention`](super::attention), into memory of the caller's: O of the shape of Q with the columns of V, and
/// the log-sum-exp as (batch, heads, queries) in f32, or (heads, queries) of packed sequences. Returns when the launch is in the stream; allocates nothing once the
/// kernel is loaded, so it may be recorded in a [`cuda::Graph`]. Few queries and many keys, which
/// [`attention`](super::attention) splits over several blocks, are slower here without [`Options::workspace`]; with it they are
/// split in the same way.
///
/// ```no_run
/// use veriflash::attention::problem::{DType, Layout};
/// use veriflash::cuda::{Context, DeviceBuffer, Graph, Stream};
/// use veriflash::{DeviceTensor, DeviceTensorMut, Options, attention_into};
///
/// let (context, shape) = (Context::here()?, [2, 8, 512, 64]);
/// let memory = || DeviceBuffer::new(&context, 2 * 8 * 512 * 64 * 2);
/// let (qkv, mut o, mut lse) = (memory()?, memory()?, DeviceBuffer::new(&context, 2 * 8 * 512 * 4)?);
/// let input = DeviceTensor::new(qkv.slice(), DType::Bf16, shape, Layout::Bshd);
/// let mut output = DeviceTensorMut::new(o.slice_mut(), DType::Bf16, shape, Layout::Bshd);
/// let stream = Stream::new(&context)?;
/// let options = Options::new().causal().stream(&stream);
/// let graph = Graph::capture(&stream, || {
///     attention_into(&input, &input, &input, &mut output, &mut lse.slice_mut(), &options)
/// })?;
/// graph.launch(&stream)?;
/// stream.synchronise()?;
/// # Ok::<(), veriflash::Error>(())
/// ```
pub fn attention_into(
    q: &DeviceTensor,
    k: &DeviceTensor,
    v: &DeviceTensor,
    o: &mut DeviceTensorMut,
    lse: &mut DeviceSliceMut,
    options: &Options,
) -> Result<(), Error> {
    if let backend @ (Backend::Cpu | Backend::Emulator) = options.backend {
        return Err(Error::HostBackend { backend });
    }
    let extras = options.extras.try_map(|extra, words| words.on_device(extra))?;
    let call = Call::of_kernels(&q.view, &k.view, &v.view, options)?;
    let problem = &call.problem;
    let stream = StreamOf::new(options)?;
    let (stream, context) = (stream.get(), stream.get().context());
    for (argument, tensor) in [("`q`", q), ("`k`", k), ("`v`", v)] {
        context.check_same(argument, tensor.memory.context())?;
    }
    context.check_same("`o`", o.memory.context())?;
    context.check_same("`lse`", lse.context())?;
    for (extra, words) in options.extras.iter() {
        if let Words::Device(memory) = words {
            context.check_same(extra.argument(), memory.context())?;
        }
    }
    if let Some(memory) = options.workspace {
        context.check_same("`workspace`", memory.context())?;
    }
    let inputs = [("q", q), ("k", k), ("v", v)].map(|(argument, tensor)| input(argument, tensor));
    let inputs = [&inputs[0], &inputs[1], &inputs[2]];
    let (o, lse) = (output(o), log_sum_exp(lse, &problem.dtype()));
    let workspace = options.workspace.map(Memory::from);
    arguments::placement(problem, inputs, &o, &lse, &extras, workspace.as_ref(), context.ordinal())?;
    let gpu = gpu(context.device())?;
    let (config, parts) = match &workspace {
        Some(memory) => {
            let config = options.split_config_for(&call, &gpu)?;
            (config, workspace::parts(memory, &call, &config)?)
        }
        None => (options.config_for(&call, &gpu)?, None),
    };
    if config.math == Math::Warpgroup {
        arguments::mapped([&q.view, &k.view, &v.view], config.id)?;
    }
    attention::kernels::check_features(problem, &call.features, &config)?;
    let kernel = kernels::loaded(context, &call, options, &config)?;
    let grid = call.grid(&config, gpu.processors);
    let mut block = match (&kernel.copies, parts) {
        (Some(copies), parts) => {
            let counter = copies.counters.as_ref().map(|counters| counters.of(stream)).transpose()?;
            let tiles = Tiles { config: &config, counter, parts, map: &|tensor| copies.maps.get(tensor) };
            Block::of_tiles(&call, options, inputs, [&o, &lse], &extras, tiles)?
        }
        (None, Some(parts)) => Block::of_parts(&call, options, inputs, parts, &extras),
        (None, None) => Block::new(&call, options, inputs, &o, &lse, &extras),
    };
    match &kernel.assertions {
        Some(assertions) => kernel.forward.launch_asserting(stream, grid, block.bytes_mut(), assertions)?,
        None => kernel.forward.launch(stream, grid, block.bytes())?,
    }
    let (Some(parts), Some(combine)) = (parts, &kernel.combine) else { return Ok(()) };
    let block = Block::joining(&call, &o, &lse, parts, &extras);
    Ok(combine.launch(stream, call.joining_grid(), block.bytes())?)
}

/// The caller's stream, or the default one of the thread's context.
pub(super) enum StreamOf<'a> {
    Callers(&'a Stream),
    Default(Stream),
}

impl<'a> StreamOf<'a> {
    pub fn new(options: &Options<'a>) -> Result<StreamOf<'a>, Error> {
        Ok(match options.stream {
            Some(stream) => StreamOf::Callers(stream),
            None => StreamOf::Default(Stream::default_of(&Context::here()?)),
        })
    }

    pub fn get(&self) -> &Stream {
        match self {
            StreamOf::Callers(stream) => stream,
            StreamOf::Default(stream) => stream,
        }
    }
}

fn input(argument: &'static str, tensor: &DeviceTensor) -> Placed {
    let (memory, view) = (&tensor.memory, tensor.view);
    Placed { argument, view, address: memory.address(), bytes: memory.bytes() as u64, device: memory.device() }
}

fn output(o: &DeviceTensorMut) -> Placed {
    let (memory, view) = (&o.memory, o.view);
    Placed { argument: "o", view, address: memory.address(), bytes: memory.bytes() as u64, device: memory.device() }
}

/// It has no shape of its own: its bytes are all.
fn log_sum_exp(lse: &DeviceSliceMut, dtype: &DType) -> Placed {
    let view = View { dtype: *dtype, shape: [0; 4], strides: [0; 4] };
    Placed { argument: "lse", view, address: lse.address(), bytes: lse.bytes() as u64, device: lse.device() }
}

/// What the planner asks of a GPU that kernels run on.
pub(super) fn gpu(device: &Device) -> Result<Gpu, Error> {
    device.at_least(OLDEST)?;
    let Device { capability, processors, max_shared_bytes: shared_bytes, .. } = *device;
    Ok(Gpu { capability, processors, shared_bytes })
}
