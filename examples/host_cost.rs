//! What a call costs the host, on a GPU: `cargo run --release --example host_cost`. One line for each figure:
//!
//! - printing the PTX of a kernel, as the first thing that a process does; this needs no GPU;
//! - a call whose kernel is loaded: 10,000 of them, in batches that the GPU catches up with in between;
//! - the first call of a process, from the created context to the result, with and without what is kept on disk (the
//!   driver's own cache is off), of a small kernel and of those that an H200 takes for large problems;
//! - 1,000 launches in one stream and 1,000 in eight: whether all results are equal to the bit.

use std::error::Error;
use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use veriflash::attention::kernels::build;
use veriflash::attention::planner::{Gpu, plan};
use veriflash::attention::problem::{DType, Layout};
use veriflash::cuda::{self, Context, DeviceBuffer, Stream};
use veriflash::half::f16;
use veriflash::ptx::print;
use veriflash::{DeviceTensor, DeviceTensorMut, Options, attention_into, cache_counts};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// So little work that the GPU is done before the next call: (batch, heads, rows, columns).
const SMALL: [u32; 4] = [1, 1, 64, 128];
/// What an H200 takes configs 10, 11, 13, 16 and 19 for.
const LARGE: [[u32; 4]; 5] =
    [[1, 8, 4096, 128], [1, 32, 4096, 64], [4, 16, 4096, 128], [8, 8, 2048, 256], [8, 10, 2048, 192]];
/// Enough work for eight streams to run side by side.
const MIDDLE: [u32; 4] = [2, 8, 500, 64];
const CALLS: u32 = 10_000;
/// The driver queues about 1,000 launches and then waits.
const BATCH: u32 = 500;
const PROCESSES: usize = 5;
/// What a child process is asked for, with a shape behind it.
const FIRST_CALL: &str = "first-call";
const FIRST_PTX: &str = "first-ptx";

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [what, sizes @ ..] = words.as_slice() {
        let sizes = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<u32>, _>>()?;
        let shape = sizes.try_into().map_err(|_| "expected batch, heads, rows and columns")?;
        let time = if what == FIRST_CALL { first_call(shape)? } else { first_ptx(shape)? };
        println!("{} {}", time.as_nanos(), cache_counts().from_disk);
        return Ok(());
    }
    for shape in shapes() {
        let runs = Runs::of(FIRST_PTX, shape, "off")?;
        println!("PTX of {}, printed first in a process: {runs}", causal(shape));
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
    let done = shapes().try_for_each(|shape| first_calls(shape, &folder.display().to_string()));
    let _ = std::fs::remove_dir_all(&folder);
    done?;
    equal_bits(&context)
}

fn shapes() -> impl Iterator<Item = [u32; 4]> {
    std::iter::once(SMALL).chain(LARGE)
}

fn causal([batch, heads, rows, columns]: [u32; 4]) -> String {
    format!("B{batch} H{heads} S{rows} D{columns} causal")
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

fn first_call(shape: [u32; 4]) -> Outcome<Duration> {
    let context = Context::here()?;
    let stream = Stream::new(&context)?;
    let mut buffers = Buffers::new(&context, &stream, shape)?;
    let start = Instant::now();
    buffers.call(Some(&stream))?;
    stream.synchronise()?;
    Ok(start.elapsed())
}

fn first_ptx(shape: [u32; 4]) -> Outcome<Duration> {
    let problem = causal(shape).parse()?;
    let start = Instant::now();
    let config = plan(&problem, &Gpu::H200)?;
    std::hint::black_box(print(&build(&problem, &config)?.module));
    Ok(start.elapsed())
}

/// How long processes of their own took, and how often they read from disk.
struct Runs {
    times: Vec<Duration>,
    from_disk: u64,
}

impl Runs {
    fn of(what: &str, shape: [u32; 4], folder: &str) -> Outcome<Runs> {
        let mut runs = Runs { times: vec![], from_disk: 0 };
        for _ in 0..PROCESSES {
            let (time, from_disk) = in_process(what, shape, folder)?;
            runs.times.push(time);
            runs.from_disk += from_disk;
        }
        runs.times.sort_unstable();
        Ok(runs)
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [best, median, worst] =
            [0, PROCESSES / 2, PROCESSES - 1].map(|index| microseconds(self.times[index]) / 1000.0);
        write!(f, "{median:.2} ms (median of {PROCESSES}; {best:.2} to {worst:.2}; {} from disk)", self.from_disk)
    }
}

fn in_process(what: &str, shape: [u32; 4], folder: &str) -> Outcome<(Duration, u64)> {
    let mut child = Command::new(std::env::current_exe()?);
    child.arg(what).args(shape.map(|size| size.to_string()));
    let output = child.env("VERIFLASH_CACHE", folder).env("CUDA_CACHE_DISABLE", "1").output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let words = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [time, from_disk] = words[..] else { return Err(format!("unexpected answer `{text}`").into()) };
    Ok((Duration::from_nanos(time), from_disk))
}

fn first_calls(shape: [u32; 4], folder: &str) -> Outcome<()> {
    let problem = causal(shape);
    println!("first call of a process, {problem}, nothing kept: {}", Runs::of(FIRST_CALL, shape, "off")?);
    in_process(FIRST_CALL, shape, folder)?; // Fills the folder.
    println!("first call of a process, {problem}, code kept on disk: {}", Runs::of(FIRST_CALL, shape, folder)?);
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
