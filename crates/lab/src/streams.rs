//! A kernel in several streams at once, each with buffers of its own. What they share is the module: its variables are there once, and
//! a kernel that takes them for its own is right in one stream and wrong in two.

use std::time::Duration;

use cuda::{Cuda, Event, Loaded, Stream};
use launch::backend::Backend;
use launch::recipe::{ArgumentValue, Buffer};
use launch::{BufferMemory, Kernel, Memory};

use crate::gpu::Delay;

/// How long all streams wait, so that what is in them begins at once.
const GATE: Duration = Duration::from_micros(300);
/// How often it is tried: whether two of them meet is chance.
const ROUNDS: usize = 20;

/// How many there are, and what they have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub count: usize,
    /// Each stream loads the module anew, with variables of its own.
    pub apart: bool,
}

/// What each stream left, of the first round in which they do not agree, or of the last. All begin with the same contents.
pub fn at_once(cuda: &Cuda, kernel: &Kernel, before: &Memory, streams: Streams) -> Result<Vec<Memory>, cuda::Error> {
    let queues = (0..streams.count).map(|_| Stream::new(cuda.context())).collect::<Result<Vec<_>, _>>()?;
    let gate = Delay::new(cuda.context(), GATE)?;
    let mut parties = Parties::new(cuda, kernel, streams)?;
    let mut left = vec![];
    for _ in 0..ROUNDS {
        parties.fill(before)?;
        gate.enqueue(&queues[0])?;
        let open = Event::record(&queues[0])?;
        queues.iter().try_for_each(|queue| queue.wait(&open))?;
        parties.enqueue(&queues)?;
        queues.iter().try_for_each(Stream::synchronise)?;
        left = parties.read(before, &queues)?;
        if left.iter().any(|memory| *memory != left[0]) {
            break;
        }
    }
    Ok(left)
}

/// Everybody who runs: on one module, or each on its own.
enum Parties {
    Together { all: Box<Loaded>, launches: usize, count: usize },
    Apart(Vec<Loaded>),
}

impl Parties {
    fn new(cuda: &Cuda, kernel: &Kernel, Streams { count, apart }: Streams) -> Result<Parties, cuda::Error> {
        if !apart {
            let (all, launches) = (Box::new(cuda.load(&beside(kernel, count))?), kernel.recipe.launches.len());
            return Ok(Parties::Together { all, launches, count });
        }
        let first = cuda.load(kernel)?;
        let others = (1..count).map(|_| cuda.load_again(kernel, &first)).collect::<Result<Vec<_>, _>>()?;
        Ok(Parties::Apart([first].into_iter().chain(others).collect()))
    }

    fn fill(&mut self, before: &Memory) -> Result<(), cuda::Error> {
        match self {
            Parties::Together { all, count, .. } => all.fill(&copied(before, *count)),
            Parties::Apart(all) => all.iter_mut().try_for_each(|one| one.fill(before)),
        }
    }

    fn enqueue(&mut self, queues: &[Stream]) -> Result<(), cuda::Error> {
        let mut numbered = queues.iter().enumerate();
        match self {
            Parties::Together { all, launches, .. } => numbered
                .try_for_each(|(number, queue)| all.enqueue_some(number * *launches..(number + 1) * *launches, queue)),
            Parties::Apart(all) => all.iter_mut().zip(queues).try_for_each(|(one, queue)| one.enqueue(queue)),
        }
    }

    fn read(&self, before: &Memory, queues: &[Stream]) -> Result<Vec<Memory>, cuda::Error> {
        let buffers = before.buffers.len();
        let one = |(number, queue): (usize, &Stream)| {
            let mut memory = before.clone();
            for (place, buffer) in memory.buffers.iter_mut().enumerate() {
                let bytes = match self {
                    Parties::Together { all, .. } => all.contents(queue, number * buffers + place)?,
                    Parties::Apart(all) => all[number].contents(queue, place)?,
                };
                let written = bytes != buffer.contents.to_vec();
                (buffer.contents, buffer.initialised) = (bytes.into(), buffer.initialised || written);
            }
            Ok(memory)
        };
        queues.iter().enumerate().map(one).collect()
    }
}

/// The launches of the recipe so many times, each time on buffers of their own, which follow those of the time before.
pub(crate) fn beside(kernel: &Kernel, count: usize) -> Kernel {
    let mut wide = kernel.clone();
    for number in 1..count {
        let own = |name: &str| in_stream(name, number);
        let buffers = kernel.recipe.buffers.iter();
        wide.recipe.buffers.extend(buffers.map(|buffer| Buffer { name: own(&buffer.name), ..buffer.clone() }));
        let mut launches = kernel.recipe.launches.clone();
        let arguments = launches.iter_mut().flat_map(|launch| &mut launch.args);
        arguments.for_each(|argument| rename(&mut argument.value, &own));
        wide.recipe.launches.extend(launches);
    }
    wide
}

fn rename(value: &mut ArgumentValue, own: &dyn Fn(&str) -> String) {
    match value {
        ArgumentValue::Buffer { buffer, .. } => *buffer = own(buffer),
        ArgumentValue::Map(map) => map.buffer = own(&map.buffer),
        ArgumentValue::Bytes { patches, .. } => patches.iter_mut().for_each(|patch| rename(&mut patch.value, own)),
        ArgumentValue::Scalar(..) | ArgumentValue::Null => {}
    }
}

fn in_stream(buffer: &str, number: usize) -> String {
    format!("{buffer}_in_stream_{number}")
}

/// The same contents for each.
fn copied(memory: &Memory, count: usize) -> Memory {
    let copy = |number: usize| {
        let named =
            move |buffer: &BufferMemory| BufferMemory { name: in_stream(&buffer.name, number), ..buffer.clone() };
        memory.buffers.iter().map(named)
    };
    let others = (1..count).flat_map(copy);
    Memory { buffers: memory.buffers.iter().cloned().chain(others).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::Emulator;
    use launch::backend::Options;
    use launch::{Limits, Resolved};

    /// On the emulator the launches follow each other, which shows whose buffers they use.
    #[test]
    fn each_stream_has_buffers_of_its_own_with_the_same_contents() {
        let problem = "f16 B1 H1 Sq17 Sk33 D64".parse().unwrap();
        let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[0]).unwrap();
        let narrow: Resolved = kernel.resolve(&Limits::default()).unwrap();
        let (before, wide) = (Memory::new(&narrow, 3).unwrap(), beside(&kernel, 3));
        let mut memory = copied(&before, 3);
        let run = Emulator.run(&mut Emulator.load(&wide).unwrap(), &mut memory, &Options::default()).unwrap();
        assert_eq!((run.findings.len(), run.witness.len()), (0, 3));
        let of = |number: usize| &memory.buffers[number * before.buffers.len()..][..before.buffers.len()];
        for (first, other) in of(0).iter().zip(of(1)).chain(of(0).iter().zip(of(2))) {
            assert_eq!(first.contents, other.contents, "{}", first.name);
        }
        assert_ne!(of(2)[3].contents, before.buffers[3].contents, "{} was written", of(2)[3].name);
    }

    #[test]
    fn every_way_to_name_a_buffer_is_renamed() {
        let text = "[buffer.x]\ntype = \"f16\"\nshape = [64, 64]\n[[launch]]\ngrid = [1, 1, 1]\nblock = [32, 1, 1]\nargs = [\n\
                    { buffer = \"x\" }, { u32 = 3 }, { null = true },\n\
                    { map = \"x\", dims = [64, 64], strides = [128], box = [64, 64], element_strides = [1, 1] },\n\
                    { bytes = \"p.bin\", patch = [{ at = 0, buffer = \"x\" }] }]\n";
        let mut recipe = launch::Recipe::parse("kernel.toml", text).unwrap();
        let arguments = recipe.launches[0].args.iter_mut();
        arguments.for_each(|argument| rename(&mut argument.value, &|name| in_stream(name, 2)));
        assert_eq!(recipe.to_toml().matches("\"x_in_stream_2\"").count(), 3, "{}", recipe.to_toml());
    }
}
