//! What a call costs the host, on a GPU: `cargo run --release --example host_cost`. One line for each figure:
//!
//! - a call whose kernel is loaded: 10,000 of them, in batches that the GPU catches up with in between;
//! - the first call of a process, from the created context to the result, with and without what is kept on disk (the
//!   driver's own cache is off);
//! - 1,000 launches in one stream and 1,000 in eight: whether all results are equal to the bit.

use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use veriflash::attention::problem::{DType, Layout};
use veriflash::cuda::{self, Context, DeviceBuffer, Stream};
use veriflash::half::f16;
use veriflash::{DeviceTensor, DeviceTensorMut, Options, attention_into, cache_counts};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// So little work that the GPU is done before the next call: (batch, heads, rows, columns).
const SMALL: [u32; 4] = [1, 1, 64, 128];
/// Enough work for eight streams to run side by side.
const MIDDLE: [u32; 4] = [2, 8, 500, 64];
const CALLS: u32 = 10_000;
/// The driver queues about 1,000 launches and then waits.
const BATCH: u32 = 500;
const PROCESSES: usize = 5;
/// What a child process is asked for.
const FIRST_CALL: &str = "first-call";

fn main() -> Outcome<()> {
    if std::env::args().nth(1).as_deref() == Some(FIRST_CALL) {
        let time = first_call()?;
        println!("{} {}", time.as_nanos(), cache_counts().from_disk);
        return Ok(());
    }
    let context = match Context::here() {
        Ok(context) => context,
        Err(error @ (cuda::Error::NoDriver | cuda::Error::NoGpu)) => {
            println!("not measured: {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    println!("{}", context.device());
    let stream = Stream::new(&context)?;
    cached_calls(&context, Some(&stream), "a stream of its own")?;
    cached_calls(&context, None, "the default stream of the thread's context")?;
    let folder = std::env::temp_dir().join(format!("veriflash-host-cost-{}", std::process::id()));
    let done = first_calls("off", "nothing kept").and_then(|()| {
        let folder = folder.display().to_string();
        first_call_in_process(&folder)?; // Fills the folder.
        first_calls(&folder, "code kept on disk")
    });
    let _ = std::fs::remove_dir_all(&folder);
    done?;
    equal_bits(&context)
}

/// Q, K and V are one tensor.
struct Buffers {
    shape: [u32; 4],
    qkv: DeviceBuffer,
    o: DeviceBuffer,
    lse: DeviceBuffer,
}

impl Buffers {
    fn new(context: &Arc<Context>, stream: &Stream, shape: [u32; 4]) -> Outcome<Buffers> {
        let elements: u32 = shape.iter().product();
        let number = |index: u32| f16::from_f32((index.wrapping_mul(2_654_435_761) >> 20) as f32 / 4096.0 - 0.5);
        let bytes: Vec<u8> = (0..elements).flat_map(|index| number(index).to_le_bytes()).collect();
        let mut qkv = DeviceBuffer::new(context, bytes.len())?;
        qkv.write(stream, &bytes)?;
        let o = DeviceBuffer::new(context, bytes.len())?;
        let lse = DeviceBuffer::new(context, bytes.len() / 2 / shape[3] as usize * 4)?;
        Ok(Buffers { shape, qkv, o, lse })
    }

    fn call(&mut self, stream: Option<&Stream>) -> Result<(), veriflash::Error> {
        let input = DeviceTensor::new(self.qkv.slice(), DType::F16, self.shape, Layout::Bhsd);
        let mut output = DeviceTensorMut::new(self.o.slice_mut(), DType::F16, self.shape, Layout::Bhsd);
        let options = stream.into_iter().fold(Options::new().causal(), Options::stream);
        attention_into(&input, &input, &input, &mut output, &mut self.lse.slice_mut(), &options)
    }

    fn read(&self, stream: &Stream) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; self.o.slice().bytes()];
        self.o.read(stream, &mut bytes)?;
        Ok(bytes)
    }
}

fn cached_calls(context: &Arc<Context>, stream: Option<&Stream>, place: &str) -> Outcome<()> {
    let mut buffers = Buffers::new(context, &Stream::new(context)?, SMALL)?;
    buffers.call(stream)?;
    let mut batches = Vec::new();
    for _ in 0..CALLS / BATCH {
        context.synchronise()?;
        let start = Instant::now();
        for _ in 0..BATCH {
            buffers.call(stream)?;
        }
        batches.push(start.elapsed() / BATCH);
    }
    context.synchronise()?;
    let mean = batches.iter().sum::<Duration>() / batches.len() as u32;
    batches.sort_unstable();
    let (best, worst) = (batches[0], batches[batches.len() - 1]);
    println!(
        "host time of a call, kernel loaded, {place}: {:.2} us (mean of {CALLS}; batches of {BATCH}: {:.2} to {:.2})",
        microseconds(mean),
        microseconds(best),
        microseconds(worst)
    );
    Ok(())
}

fn first_call() -> Outcome<Duration> {
    let context = Context::here()?;
    let stream = Stream::new(&context)?;
    let mut buffers = Buffers::new(&context, &stream, SMALL)?;
    let start = Instant::now();
    buffers.call(Some(&stream))?;
    stream.synchronise()?;
    Ok(start.elapsed())
}

/// How long it took a process of its own, and how often it read from disk.
fn first_call_in_process(folder: &str) -> Outcome<(Duration, u64)> {
    let mut child = Command::new(std::env::current_exe()?);
    child.arg(FIRST_CALL).env("VERIFLASH_CACHE", folder).env("CUDA_CACHE_DISABLE", "1");
    let output = child.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let words = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [time, from_disk] = words[..] else { return Err(format!("unexpected answer `{text}`").into()) };
    Ok((Duration::from_nanos(time), from_disk))
}

fn first_calls(folder: &str, what: &str) -> Outcome<()> {
    let mut runs = (0..PROCESSES).map(|_| first_call_in_process(folder)).collect::<Outcome<Vec<_>>>()?;
    let from_disk: u64 = runs.iter().map(|(_, from_disk)| from_disk).sum();
    runs.sort_unstable();
    let [best, median, worst] = [0, PROCESSES / 2, PROCESSES - 1].map(|index| microseconds(runs[index].0) / 1000.0);
    println!(
        "first call of a process, {what}: {median:.2} ms (median of {PROCESSES}; {best:.2} to {worst:.2}; {from_disk} from disk)"
    );
    Ok(())
}

fn equal_bits(context: &Arc<Context>) -> Outcome<()> {
    let streams = (0..8).map(|_| Stream::new(context)).collect::<Result<Vec<_>, _>>()?;
    let mut reference = Buffers::new(context, &streams[0], MIDDLE)?;
    reference.call(Some(&streams[0]))?;
    let expected = reference.read(&streams[0])?;
    let mut equal = 0;
    for (count, of) in [(1000, &streams[..1]), (1000, &streams[..])] {
        let buffers = of.iter().map(|stream| Buffers::new(context, stream, MIDDLE));
        let mut buffers = buffers.collect::<Outcome<Vec<_>>>()?;
        for launch in 0..count {
            buffers[launch % of.len()].call(Some(&of[launch % of.len()]))?;
        }
        for (stream, buffers) in of.iter().zip(&buffers) {
            equal += usize::from(buffers.read(stream)? == expected);
        }
    }
    println!("1,000 launches in one stream and 1,000 in eight: {equal} of 9 last results equal to the bit");
    if equal == 9 { Ok(()) } else { Err("results differ".into()) }
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
