//! What a launch costs in a process: it differs by a third, and not by anything that the process does itself.

use std::sync::Arc;

use cuda::{Context, Graph, Stream};

use super::stamp::Stamps;
use crate::figures::Figure;

/// Launches in the graph, and replays of it: the last is read, when the GPU has its clock. `peers/stamps.py` has the same.
const LAUNCHES: usize = 256;
const REPLAYS: usize = 20;

/// Cycles of a kernel that does nothing, in a CUDA graph of many.
pub fn launch_cycles(context: &Arc<Context>) -> Result<Option<Figure>, cuda::Error> {
    let (stream, stamps) = (Stream::new(context)?, Stamps::new(context)?);
    let graph = Graph::capture(&stream, || {
        stamps.begin(&stream)?;
        (0..LAUNCHES).try_for_each(|_| stamps.nothing(&stream))?;
        stamps.end(&stream)
    })?;
    (0..REPLAYS).try_for_each(|_| graph.launch(&stream))?;
    stream.synchronise()?;
    let cycles = stamps.passed(&stream)?.cycles();
    Ok(cycles.map(|cycles| Figure::new(cycles / LAUNCHES as f64)))
}
