//! Memory for the parts of split keys: what each block finds, until a second kernel joins it.

use super::call::Call;
use super::device::{StreamOf, gpu};
use super::extras::Memory;
use super::parameters::Parts;
use super::{DeviceTensor, Error, Options};
use attention::configs::Config;

/// The bytes of [`Options::workspace`] that a call asks for: zero where it splits no keys. But for windows, more keys never ask
/// for less, so that memory for the longest sequence serves all shorter ones.
///
/// One new query for a cache of keys and values, recorded once:
///
/// ```no_run
/// use veriflash::attention::problem::{DType, Layout};
/// use veriflash::cuda::{Context, DeviceBuffer, Graph, Stream};
/// use veriflash::{DeviceTensor, DeviceTensorMut, Options, attention_into, workspace_bytes};
///
/// let (context, one, many) = (Context::here()?, [1, 32, 1, 128], [1, 8, 8192, 128]);
/// let memory = |shape: [u32; 4]| DeviceBuffer::new(&context, shape.iter().product::<u32>() as usize * 2);
/// let (query, keys, values, mut o) = (memory(one)?, memory(many)?, memory(many)?, memory(one)?);
/// let mut lse = DeviceBuffer::new(&context, 32 * 4)?;
/// let tensor = |memory, shape| DeviceTensor::new(memory, DType::Bf16, shape, Layout::Bhsd);
/// let [q, k, v] = [(&query, one), (&keys, many), (&values, many)].map(|(memory, shape)| tensor(memory.slice(), shape));
/// let mut output = DeviceTensorMut::new(o.slice_mut(), DType::Bf16, one, Layout::Bhsd);
///
/// let stream = Stream::new(&context)?;
/// let options = Options::new().stream(&stream);
/// let mut workspace = DeviceBuffer::new(&context, workspace_bytes(&q, &k, &v, &options)?)?;
/// let options = options.workspace(workspace.slice_mut());
/// let step = Graph::capture(&stream, || attention_into(&q, &k, &v, &mut output, &mut lse.slice_mut(), &options))?;
/// step.launch(&stream)?;
/// stream.synchronise()?;
/// # Ok::<(), veriflash::Error>(())
/// ```
pub fn workspace_bytes(
    q: &DeviceTensor,
    k: &DeviceTensor,
    v: &DeviceTensor,
    options: &Options,
) -> Result<usize, Error> {
    let call = Call::of_kernels(&q.view, &k.view, &v.view, options)?;
    let config = options.split_config_for(&call, &gpu(StreamOf::new(options)?.get().context().device())?)?;
    Ok(bytes(&call, &config) as usize)
}

/// Zero where keys are not split.
pub fn bytes(call: &Call, config: &Config) -> u64 {
    match config.splits {
        1 => 0,
        _ => output_bytes(call, config) + statistics_bytes(call, config),
    }
}

/// In f32, an output of each row and share.
fn output_bytes(call: &Call, config: &Config) -> u64 {
    call.problem.o_shape().elements() as u64 * u64::from(config.splits) * 4
}

/// And its maximum and its sum.
fn statistics_bytes(call: &Call, config: &Config) -> u64 {
    output_bytes(call, config) / u64::from(call.problem.value_dim()) * 2
}

/// The parts of a call in its workspace; none where keys are not split.
pub fn parts(memory: &Memory, call: &Call, config: &Config) -> Result<Option<Parts>, Error> {
    let (found, expected) = (memory.bytes, bytes(call, config));
    if found < expected {
        let reason = "at least, for the parts of split keys";
        return Err(Error::Count { argument: "workspace", unit: "bytes", found, expected, reason });
    }
    let (outputs, splits) = (memory.address, config.splits);
    Ok((splits > 1).then(|| Parts { outputs, statistics: outputs + output_bytes(call, config), splits }))
}

/// Host tensors are copied, and get memory of their own.
pub fn refuse_on_host(options: &Options) -> Result<(), Error> {
    let expected = "tensors on a GPU: those of the host need none";
    match options.workspace {
        Some(_) => Err(Error::Combination { argument: "workspace", found: "is given", expected }),
        None => Ok(()),
    }
}
