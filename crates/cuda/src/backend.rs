//! A GPU as a backend: loads a kernel, runs its launches, and times them. It has no checks, so it finds nothing.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use launch::assertion::{Assertions, Failure};
use launch::backend::{Backend, Options, Run, Witness};
use launch::resolved::{self, Launch, MAP_BYTES, Placement};
use launch::tensor_map::ResolvedMap;
use launch::{Kernel, Limits, Memory, Resolved};

use crate::assembler::{Assembler, unlinkable};
use crate::context::{Context, Device};
use crate::error::Error;
use crate::event::Event;
use crate::module::{Module, Resources};
use crate::storage::Storage;
use crate::stream::Stream;
use crate::tensor_map;

/// Runs kernels on a GPU.
#[derive(Debug, Clone)]
pub struct Cuda {
    context: Arc<Context>,
    /// For what the driver's linker gets wrong.
    assembler: Option<Assembler>,
}

impl Cuda {
    /// Opens the GPU of that number, as CUDA_VISIBLE_DEVICES counts.
    pub fn open(ordinal: usize) -> Result<Cuda, Error> {
        Ok(Cuda { context: Context::open(ordinal)?, assembler: None })
    }

    /// The same with an assembler for texts that the driver's linker gets wrong, so that their machine code can be shown.
    pub fn with_assembler(self, assembler: Assembler) -> Cuda {
        Cuda { assembler: Some(assembler), ..self }
    }

    /// The code of a kernel, without buffers.
    pub fn module(&self, kernel: &Kernel) -> Result<Module, Error> {
        let text = &kernel.parsed.source.text;
        let by_driver = || Module::from_ptx(&self.context, kernel.file(), text);
        let Some(assembler) = self.assembler.as_ref().filter(|_| unlinkable(text).is_some()) else {
            return by_driver();
        };
        let made = assembler.make(text, &kernel.module().target.to_string());
        let load = |cubin: Vec<u8>| Module::from_cubin(&self.context, kernel.file(), &cubin);
        // An assembler may be newer than the driver.
        made.and_then(|cubin| load(cubin).map_err(|error| error.to_string()))
            .or_else(|why| Ok(by_driver()?.with_note(&format!("ptxas made nothing that can be loaded: {why}"))))
    }

    /// Has a kernel ended the context? Then nothing runs any more in this process.
    pub fn is_lost(&self) -> bool {
        self.context.synchronise().is_err()
    }

    /// What the GPU says about itself.
    pub fn device(&self) -> &Device {
        self.context.device()
    }

    fn check_clusters(&self, resolved: &Resolved) -> Result<(), Error> {
        let clusters = resolved.launches.iter().any(|launch| launch.cluster.is_some());
        if clusters && !self.device().has_clusters() { Err(Error::Unsupported("clusters")) } else { Ok(()) }
    }

    /// The same kernel once more, with buffers of its own: its machine code is loaded again and not compiled again.
    pub fn load_again(&self, kernel: &Kernel, first: &Loaded) -> Result<Loaded, Error> {
        match first.module.cubin() {
            Some(cubin) => self.place(kernel, || Module::from_cubin(&self.context, kernel.file(), cubin)),
            None => self.load(kernel),
        }
    }

    /// The same kernel once more, with buffers of its own and the code of the first, variables in it included.
    pub fn load_beside(&self, kernel: &Kernel, first: &Loaded) -> Result<Loaded, Error> {
        self.place_with(kernel, || Ok(first.module.clone()))
    }

    /// Buffers, arguments, and the code.
    fn place(&self, kernel: &Kernel, module: impl FnOnce() -> Result<Module, Error>) -> Result<Loaded, Error> {
        self.place_with(kernel, || Ok(Arc::new(module()?)))
    }

    fn place_with(
        &self,
        kernel: &Kernel,
        module: impl FnOnce() -> Result<Arc<Module>, Error>,
    ) -> Result<Loaded, Error> {
        let resolved = kernel.resolve(&Limits::default())?;
        self.check_clusters(&resolved)?;
        let _entered = self.context.enter()?;
        let assertions = kernel.recipe.assertions.clone().and_then(|assertions| {
            let report = resolved.buffers.iter().position(|buffer| buffer.name == assertions.report)?;
            Some((assertions, report))
        });
        let allocate = |(index, buffer): (usize, &resolved::Buffer)| {
            let survives = assertions.as_ref().is_some_and(|(_, report)| *report == index);
            Storage::new(&self.context, buffer.bytes as usize, survives)
        };
        let buffers = resolved.buffers.iter().enumerate().map(allocate).collect::<Result<Vec<_>, _>>()?;
        let addresses = buffers.iter().map(Storage::address).collect();
        let mut placed = Placed { addresses, buffers: &resolved.buffers, device: self.device() };
        let entries = resolved.launches.iter().map(|launch| entry(kernel, launch, &mut placed));
        let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
        let module = module()?;
        allow(&module, &resolved.launches, &entries)?;
        Ok(Loaded { resolved, entries, module, buffers, assertions, stream: Stream::new(&self.context)? })
    }

    /// Its context, for modules and buffers without a recipe.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

/// A kernel on a GPU, with its buffers.
#[derive(Debug)]
pub struct Loaded {
    resolved: Resolved,
    entries: Vec<Entry>,
    module: Arc<Module>,
    buffers: Vec<Storage>,
    /// What the kernel asserts of itself, and which buffer has its report.
    assertions: Option<(Assertions, usize)>,
    stream: Stream,
}

/// What one launch runs; as long as the buffers stay where they are, its parameters do not change.
#[derive(Debug)]
struct Entry {
    name: String,
    parameters: Vec<u8>,
    /// Where each parameter begins.
    offsets: Vec<usize>,
}

impl Loaded {
    /// The recipe in plain numbers.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The loaded code.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What an entry costs, as the driver counts it.
    pub fn resources(&self, entry: &str) -> Result<Resources, Error> {
        self.module.function(entry)?.resources()
    }

    /// Replaces what all buffers hold.
    pub fn fill(&mut self, memory: &Memory) -> Result<(), Error> {
        self.check(memory)?;
        self.copy_in(memory, false)
    }

    /// Where a buffer lies, by its number in the recipe, and its bytes; good as long as this lives.
    pub fn address(&self, buffer: usize) -> (u64, usize) {
        (self.buffers[buffer].address(), self.resolved.buffers[buffer].bytes as usize)
    }

    /// What a buffer holds, by its number in the recipe, after what the stream holds.
    pub fn contents(&self, stream: &Stream, buffer: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.resolved.buffers[buffer].bytes as usize];
        self.buffers[buffer].read(stream, &mut bytes)?;
        Ok(bytes)
    }

    /// Puts all launches into a stream, each as often as it says, and does not wait.
    pub fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        self.enqueue_some(0..self.entries.len(), stream)
    }

    /// Some of them, by their numbers in the recipe.
    pub fn enqueue_some(&mut self, launches: Range<usize>, stream: &Stream) -> Result<(), Error> {
        let mut launches = self.resolved.launches[launches.clone()].iter().zip(&mut self.entries[launches]);
        launches.try_for_each(|(launch, entry)| entry.put(&self.module, launch, stream))
    }

    /// Runs the launch as often as it says, waits, and says how long all of it took on the GPU.
    fn launch(&mut self, index: usize) -> Result<Duration, Error> {
        let start = Event::record(&self.stream)?;
        self.entries[index].put(&self.module, &self.resolved.launches[index], &self.stream)?;
        let end = Event::record(&self.stream)?;
        self.stream.synchronise()?;
        end.since(&start)
    }

    /// The assertion that has ended a launch, if one has.
    fn failure(&self, launch: &Launch) -> Option<Failure> {
        let (assertions, report) = self.assertions.as_ref()?;
        assertions.failure(self.buffers[*report].last_word()?, launch.grid)
    }

    fn check(&self, memory: &Memory) -> Result<(), Error> {
        let (expected, found) = (self.resolved.buffers.len(), memory.buffers.len());
        if expected != found {
            let words = |count: usize| format!("{count} buffers");
            return Err(Error::Memory { expected: words(expected), found: words(found) });
        }
        Ok(())
    }

    /// Fills every buffer, outputs too: nothing of an earlier run must be left to pass for a result. Unless it is asked to
    /// leave poison out.
    fn copy_in(&mut self, memory: &Memory, leaves_poison: bool) -> Result<(), Error> {
        let pairs = self.buffers.iter_mut().zip(&memory.buffers);
        let mut written = pairs.filter(|(_, host)| host.initialised || !leaves_poison);
        written.try_for_each(|(device, host)| device.write(&self.stream, &host.contents.to_vec()))
    }

    fn copy_out(&self, memory: &mut Memory) -> Result<(), Error> {
        let mut after = memory.clone();
        for (device, host) in self.buffers.iter().zip(&mut after.buffers) {
            let mut bytes = host.contents.to_vec();
            device.read(&self.stream, &mut bytes)?;
            host.contents = bytes.into();
        }
        for (after, before) in after.buffers.iter_mut().zip(&memory.buffers) {
            after.initialised |= after.contents != before.contents;
        }
        *memory = after;
        Ok(())
    }
}

impl Entry {
    fn put(&mut self, module: &Module, launch: &Launch, stream: &Stream) -> Result<(), Error> {
        let function = module.function(&self.name)?;
        (0..launch.repeat).try_for_each(|_| function.launch(stream, launch, (&mut self.parameters, &self.offsets)))
    }
}

impl Backend for Cuda {
    type Loaded = Loaded;
    type Error = Error;

    fn name(&self) -> &str {
        "cuda"
    }

    fn load(&self, kernel: &Kernel) -> Result<Loaded, Error> {
        self.place(kernel, || self.module(kernel))
    }

    fn run(&self, loaded: &mut Loaded, memory: &mut Memory, options: &Options) -> Result<Run, Error> {
        loaded.check(memory)?;
        let _entered = self.context.enter()?;
        let before = memory.clone();
        loaded.copy_in(memory, options.leaves_poison)?;
        let mut run = Run::default();
        for index in 0..loaded.entries.len() {
            let time = loaded.launch(index);
            let (entry, launch) = (&loaded.entries[index].name, &loaded.resolved.launches[index]);
            let explained =
                |error: Error| error.in_launch(entry, launch.grid, launch.block).due_to(loaded.failure(launch));
            run.times.push(time.map_err(explained)?);
            run.witness.push(Witness::of(entry, launch));
        }
        loaded.copy_out(memory)?;
        run.outputs = memory.changes_since(&before);
        Ok(run)
    }
}

/// Allows every entry the most shared memory and the clusters that its launches ask for.
fn allow(module: &Module, launches: &[Launch], entries: &[Entry]) -> Result<(), Error> {
    for (launch, entry) in launches.iter().zip(entries) {
        let function = module.function(&entry.name)?;
        let of_entry = launches.iter().zip(entries).filter(|(_, other)| other.name == entry.name);
        let shared = of_entry.map(|(launch, _)| launch.shared).max().unwrap_or(0);
        if shared > 0 {
            function.allow_shared(shared)?;
        }
        function.allow_cluster(launch.cluster)?;
    }
    Ok(())
}

fn entry(kernel: &Kernel, launch: &Launch, placed: &mut Placed) -> Result<Entry, Error> {
    let function = kernel.entry(launch)?;
    let offsets = (0..function.parameters.len()).map(|index| function.parameter_offset(index) as usize).collect();
    Ok(Entry { name: function.name.clone(), parameters: launch.parameters(function, placed)?, offsets })
}

/// Where the buffers lie, and what they hold.
struct Placed<'load> {
    addresses: Vec<u64>,
    buffers: &'load [resolved::Buffer],
    device: &'load Device,
}

impl Placement for Placed<'_> {
    type Error = Error;

    fn address(&mut self, buffer: usize) -> Result<u64, Error> {
        let unknown = || Error::Memory {
            expected: format!("{} buffers", self.addresses.len()),
            found: format!("an argument that points to buffer {buffer}"),
        };
        self.addresses.get(buffer).copied().ok_or_else(unknown)
    }

    fn map(&mut self, map: &ResolvedMap) -> Result<[u8; MAP_BYTES], Error> {
        if !self.device.has_clusters() {
            return Err(Error::Unsupported("tensor maps"));
        }
        let address = self.address(map.buffer)?;
        tensor_map::encode(map, &self.buffers[map.buffer], address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers at round addresses, maps of ones.
    struct Rack;

    impl Placement for Rack {
        type Error = Error;

        fn address(&mut self, buffer: usize) -> Result<u64, Error> {
            Ok(0x1000 * (buffer as u64 + 1))
        }

        fn map(&mut self, _: &ResolvedMap) -> Result<[u8; MAP_BYTES], Error> {
            Ok([1; MAP_BYTES])
        }
    }

    #[test]
    fn maps_are_parameters_of_128_bytes_at_multiples_of_64() {
        let recipe = "//@ [buffer.x]\n//@ type = \"u32\"\n//@ shape = [64]\n//@ [[launch]]\n//@ grid = [1, 1, 1]\n\
                      //@ block = [32, 1, 1]\n//@ args = [{ buffer = \"x\" }, { map = \"x\", dims = [64], strides = [], \
                      box = [64] }, { u32 = 7 }]\n";
        let body = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry one(.param .u64 x, \
                    .param .align 64 .b8 map[128], .param .u32 n)\n{\n    ret;\n}\n";
        let kernel = Kernel::parse("one.ptx", &format!("{recipe}{body}")).unwrap();
        let resolved = kernel.resolve(&Limits::default()).unwrap();
        let launch = &resolved.launches[0];
        let block = launch.parameters(kernel.entry(launch).unwrap(), &mut Rack).unwrap();
        assert_eq!(block.len(), 196);
        assert_eq!((&block[..8], &block[192..]), (&0x1000u64.to_le_bytes()[..], &7u32.to_le_bytes()[..]));
        assert!(block[8..64].iter().all(|byte| *byte == 0) && block[64..192].iter().all(|byte| *byte == 1));
    }
}
