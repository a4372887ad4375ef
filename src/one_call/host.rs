//! Tensors on the host: copied to a GPU and back, or computed by the emulator.

use super::arguments;
use super::tensor::{DeviceTensor, HostTensor, Number};
use super::{Error, Options, Tensor, attention};
use ::attention::planner::Gpu;
use ::attention::problem::Problem;
use cuda::{Context, DeviceBuffer, Stream};
use emulator::Emulator;
use launch::Memory;
use launch::backend::{Backend, Options as Schedule};

/// O and the log-sum-exp on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostOutput<N> {
    /// O, in the order of the dimensions of `q`.
    pub o: Vec<N>,
    /// (batch, heads, queries); −∞ where a query sees no key.
    pub lse: Vec<f32>,
}

impl<N: Number> Tensor for HostTensor<'_, N> {
    type Output = HostOutput<N>;

    fn attention(q: &Self, k: &Self, v: &Self, options: &Options) -> Result<HostOutput<N>, Error> {
        for (argument, tensor) in [("q", q), ("k", k), ("v", v)] {
            arguments::host(argument, &tensor.view(), tensor.layout, tensor.values.len(), q.layout)?;
        }
        let problem = arguments::problem(&q.view(), &k.view(), &v.view(), options)?;
        let (bits, lse) = match options.emulator {
            true => on_emulator(&problem, [q, k, v], options)?,
            false => on_gpu([q, k, v], options)?,
        };
        Ok(HostOutput { o: N::from_bits(bits), lse })
    }
}

type Bits = (Vec<u16>, Vec<f32>);

fn on_gpu<N: Number>(inputs: [&HostTensor<N>; 3], options: &Options) -> Result<Bits, Error> {
    let own;
    let stream = match options.stream {
        Some(stream) => stream,
        None => {
            own = Stream::new(&Context::here()?)?;
            &own
        }
    };
    let [q, k, v] = inputs.map(|tensor| copy_in(stream, tensor));
    let memory = [q?, k?, v?];
    let [q, k, v] = [0, 1, 2].map(|index| {
        let HostTensor { shape, layout, .. } = *inputs[index];
        DeviceTensor::new(memory[index].slice(), N::DTYPE, shape, layout)
    });
    let output = attention(&q, &k, &v, &options.clone().stream(stream))?;
    let (mut o, mut lse) = (vec![0; output.o.slice().bytes() / 2], vec![0.0; output.lse.slice().bytes() / 4]);
    output.o.read(stream, bytemuck::cast_slice_mut(&mut o))?;
    output.lse.read(stream, bytemuck::cast_slice_mut(&mut lse))?;
    Ok((o, lse))
}

fn copy_in<N: Number>(stream: &Stream, tensor: &HostTensor<N>) -> Result<DeviceBuffer, Error> {
    let bytes: &[u8] = bytemuck::cast_slice(N::bits(tensor.values));
    let mut buffer = DeviceBuffer::new(stream.context(), bytes.len())?;
    buffer.write(stream, bytes)?;
    Ok(buffer)
}

/// The kernel that an H200 would run, with all checks of the emulator.
fn on_emulator<N: Number>(problem: &Problem, inputs: [&HostTensor<N>; 3], options: &Options) -> Result<Bits, Error> {
    let said = |error: &dyn std::fmt::Display| Error::Emulator(error.to_string());
    let kernel = ::attention::kernels::kernel(problem, &options.config_for(problem, &Gpu::H200)?)?;
    let mut loaded = Emulator.load(&kernel).map_err(|error| said(&error))?;
    let mut memory = Memory::new(loaded.resolved(), 0).map_err(|error| said(&error))?;
    for (buffer, tensor) in memory.buffers.iter_mut().zip(inputs) {
        // A buffer has at least one element, though there may be no key.
        if !tensor.values.is_empty() {
            buffer.contents = bytemuck::cast_slice::<u16, u8>(N::bits(tensor.values)).to_vec().into();
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
