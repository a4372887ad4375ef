//! What a multiprocessor's own clocks say at both ends of a sample: the third opinion beside the driver's events and the host.

use std::sync::Arc;

use cuda::{Context, DeviceBuffer, Module, Stream};

/// `stamp` writes the number of the multiprocessor, cycles of its clock, nanoseconds of the GPU's timer.
const ENTRY: &str = "stamp";
/// Does nothing.
const NOTHING: &str = "nothing";
const PTX: &str = include_str!("../../../../peers/stamp.ptx");
const BYTES: usize = 24;

/// Two stamps.
pub struct Stamps {
    module: Module,
    /// Begin and end.
    buffers: [DeviceBuffer; 2],
}

/// What passed between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed {
    pub seconds: f64,
    /// None where the two were on different multiprocessors, whose clocks have nothing to do with each other.
    pub megahertz: Option<f64>,
}

impl Passed {
    /// Of the GPU's clock.
    pub fn cycles(&self) -> Option<f64> {
        Some(self.megahertz? * 1e6 * self.seconds)
    }
}

impl Stamps {
    pub fn new(context: &Arc<Context>) -> Result<Stamps, cuda::Error> {
        let module = Module::from_ptx(context, "stamp.ptx", PTX)?;
        let buffers = [DeviceBuffer::new(context, BYTES)?, DeviceBuffer::new(context, BYTES)?];
        Ok(Stamps { module, buffers })
    }

    /// Nothing of an earlier sample is left to be read.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), cuda::Error> {
        self.buffers.iter_mut().try_for_each(|buffer| buffer.fill(stream, 0))
    }

    pub fn begin(&self, stream: &Stream) -> Result<(), cuda::Error> {
        self.stamp(stream, 0)
    }

    pub fn end(&self, stream: &Stream) -> Result<(), cuda::Error> {
        self.stamp(stream, 1)
    }

    /// A launch that does nothing.
    pub fn nothing(&self, stream: &Stream) -> Result<(), cuda::Error> {
        self.module.function(NOTHING)?.start(stream, [1, 1], &[])
    }

    fn stamp(&self, stream: &Stream, which: usize) -> Result<(), cuda::Error> {
        self.module.function(ENTRY)?.start(stream, [1, 1], &[self.buffers[which].address()])
    }

    /// After both were passed.
    pub fn passed(&self, stream: &Stream) -> Result<Passed, cuda::Error> {
        let [begin, end] = [self.read(stream, 0)?, self.read(stream, 1)?];
        Ok(between(begin, end))
    }

    fn read(&self, stream: &Stream, which: usize) -> Result<[u64; 3], cuda::Error> {
        let mut bytes = [0; BYTES];
        self.buffers[which].read(stream, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok([words[0], words[1], words[2]].map(u64::from_le_bytes))
    }
}

fn between([place, cycles, nanoseconds]: [u64; 3], end: [u64; 3]) -> Passed {
    let seconds = end[2].wrapping_sub(nanoseconds) as f64 * 1e-9;
    let cycles = end[1].wrapping_sub(cycles) as f64;
    Passed { seconds, megahertz: (end[0] == place && seconds > 0.0).then(|| cycles / seconds * 1e-6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_different_multiprocessors_are_not_compared() {
        let begin = [3, 1_000, 5_000_000];
        let same = between(begin, [3, 1_000 + 1_980_000, 6_000_000]);
        assert_eq!(same, Passed { seconds: 1e-3, megahertz: Some(1980.0) });
        assert_eq!(same.cycles().map(f64::round), Some(1_980_000.0));
        assert_eq!(between(begin, [4, 9, 6_000_000]).megahertz, None);
    }

    #[test]
    fn the_kernels_are_well_formed() {
        let parsed = ptx::parse(&ptx::Source::new("stamp.ptx", PTX)).unwrap();
        assert!(ptx::verify(&parsed).is_empty());
    }
}
