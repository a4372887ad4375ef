//! Why a kernel cannot be loaded or run on a GPU.

use launch::assertion::Failure;

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine has no driver.
    #[error("no NVIDIA driver: libcuda.so.1 was not found; install the driver, or compute without a GPU")]
    NoDriver,
    /// The driver lacks a function that we call.
    // CUDA driver API: the youngest function that we call, cuTensorMapEncodeTiled, came with CUDA 12.0, driver 525.
    #[error("the NVIDIA driver is too old: it has no `{function}`; install driver 525 or newer")]
    OldDriver {
        /// The function.
        function: &'static str,
    },
    /// The driver sees no GPU.
    #[error(
        "no NVIDIA GPU: the driver sees none; check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or compute without a GPU"
    )]
    NoGpu,
    /// The driver sees fewer GPUs than asked for.
    #[error("no GPU {ordinal}: the driver sees {count}, numbered from 0")]
    NoSuchGpu {
        /// The one asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU lacks instructions that a kernel is made of.
    #[error(
        "{name} is sm_{}{}: expected sm_{}{} or newer; choose another GPU with CUDA_VISIBLE_DEVICES, or use the emulator",
        found.0, found.1, expected.0, expected.1
    )]
    OldGpu {
        /// Its name.
        name: String,
        /// Its compute capability.
        found: (u32, u32),
        /// The least that would do.
        expected: (u32, u32),
    },
    /// The GPU's memory is full; nothing else is harmed.
    #[error(
        "the GPU is out of memory ({call}{}): free buffers, take a smaller problem, or end other programs that \
         `nvidia-smi` lists",
        bytes.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default()
    )]
    OutOfMemory {
        /// The function of the driver API.
        call: &'static str,
        /// How much was asked for, where that is known.
        bytes: Option<usize>,
    },
    /// The thread has no context.
    #[error("this thread has no CUDA context: make one current, or use `Context::here`, which opens GPU 0")]
    NoContext,
    /// A stream, memory or a kernel of one context in another.
    #[error(
        "the {what} is of context {found}: expected context {expected}; streams, memory and kernels are used in the \
         context that they were made in"
    )]
    WrongContext {
        /// What was given.
        what: &'static str,
        /// The id of its context.
        found: u64,
        /// The id of the context that does the work.
        expected: u64,
    },
    /// Nothing was recorded.
    #[error(
        "the graph is empty: nothing was put into the stream that records; launch in the stream given to the capture"
    )]
    EmptyGraph,
    /// An entry declares more parameters than a prepared launch has places for.
    #[error("`{entry}` has {found} parameters: expected at most {limit}; pass a struct")]
    Parameters {
        /// The entry.
        entry: String,
        /// How many it has.
        found: usize,
        /// The most.
        limit: usize,
    },
    /// The loaded entry declares other parameters than a launch would pass.
    #[error(
        "`{entry}` takes parameters of {expected:?} bytes: a launch would pass {found:?}; pass what the entry declares"
    )]
    OtherParameters {
        /// The entry.
        entry: String,
        /// Bytes of each parameter that would be passed.
        found: Vec<usize>,
        /// Bytes of each parameter, as the driver says.
        expected: Vec<usize>,
    },
    /// A call failed and nothing else is harmed.
    #[error("{call} failed: {name}: {text}")]
    Driver {
        /// The function of the driver API.
        call: &'static str,
        /// The name of its status.
        name: String,
        /// The driver's own words.
        text: String,
    },
    /// The driver's compiler or loader refused a module.
    #[error("the driver refuses {file} ({name}):\n{log}")]
    Jit {
        /// The module, as reports name it.
        file: String,
        /// The name of the status.
        name: String,
        /// What the compiler wrote.
        log: String,
    },
    /// A kernel failed in a way that ends its context. The process's primary context is shared, and held by every
    /// library that uses it (here, by what [`Context::here`](crate::Context::here) met), so no fresh one can take its
    /// place.
    #[error(
        "the GPU context is lost: {place} failed with {name}: {text}; everything in it is gone, and nothing runs on the \
         GPU any more in this process: start the program again"
    )]
    ContextLost {
        /// The launch or the call in which it came to light.
        place: String,
        /// The name of the status.
        name: String,
        /// The driver's own words.
        text: String,
    },
    /// The module has no entry of that name.
    #[error("the loaded module has no entry `{entry}`")]
    NoEntry {
        /// The name.
        entry: String,
    },
    /// The module has no variable of that name.
    #[error("the loaded module has no variable `{variable}`")]
    NoVariable {
        /// The name.
        variable: String,
    },
    /// A file is not machine code for a GPU.
    #[error("{file} is not a cubin: {why}")]
    NotCubin {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A launch asks for more shared memory than a block can have.
    #[error(
        "launch of `{entry}` needs {needed} bytes of shared memory ({dynamic} dynamic): a block of this GPU has {limit}"
    )]
    SharedMemory {
        /// The entry.
        entry: String,
        /// Static and dynamic.
        needed: u64,
        /// Dynamic alone.
        dynamic: u64,
        /// What the GPU has.
        limit: u64,
    },
    /// The memory of a run was not made for the loaded kernel.
    #[error("the memory has {found}: the recipe has {expected}; make it from the recipe of the loaded kernel")]
    Memory {
        /// What the recipe says.
        expected: String,
        /// What was given.
        found: String,
    },
    /// The recipe cannot be resolved.
    #[error(transparent)]
    Recipe(#[from] launch::Error),
    /// The driver does not encode a tensor map.
    #[error("tensor map of `{buffer}`: cuTensorMapEncodeTiled failed: {name}: {text}: {why}")]
    TensorMap {
        /// The buffer that the map describes.
        buffer: String,
        /// The name of the status.
        name: String,
        /// The driver's own words.
        text: String,
        /// What it wants.
        why: String,
    },
    /// The GPU cannot hold a cluster of that size.
    #[error(
        "launch of `{entry}` has clusters of {blocks} blocks: {name}: {text}; use smaller clusters, or blocks with less \
         shared memory and fewer registers"
    )]
    Cluster {
        /// The entry.
        entry: String,
        /// Blocks per cluster.
        blocks: u32,
        /// The name of the status.
        name: String,
        /// The driver's own words.
        text: String,
    },
    /// A feature that the GPU does not have.
    #[error("this GPU does not run {0}: expected sm_90 or newer")]
    Unsupported(&'static str),
}

impl Error {
    /// The same error, with what was asked for where it was too much.
    pub(crate) fn of_bytes(self, bytes: usize) -> Error {
        match self {
            Error::OutOfMemory { call, .. } => Error::OutOfMemory { call, bytes: Some(bytes) },
            other => other,
        }
    }

    /// The same error, with the launch that a lost context is due to.
    pub(crate) fn in_launch(self, entry: &str, grid: [u32; 3], block: [u32; 3]) -> Error {
        match self {
            Error::ContextLost { name, text, .. } => Error::ContextLost {
                place: format!("launch of `{entry}`, grid {grid:?}, block {block:?},"),
                name,
                text,
            },
            other => other,
        }
    }

    /// The same error, with the assertion that a lost context is due to: the driver only knows that a launch failed.
    pub(crate) fn due_to(self, failure: Option<Failure>) -> Error {
        match (self, failure) {
            (Error::ContextLost { place, name, .. }, Some(failure)) => {
                let at = failure.assertion.at.as_ref().map_or(String::new(), |at| format!(" ({at})"));
                Error::ContextLost { place, name, text: format!("{failure}{at}") }
            }
            (other, _) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::assertion::{Assertion, Assertions};

    #[test]
    fn a_failed_assertion_is_named_in_place_of_what_the_driver_says() {
        let list = vec![Assertion { message: "scores are finite".into(), at: Some("ampere.rs:90".into()) }];
        let failure = Assertions { report: "report".into(), list }.failure(7 << 20 | 1 << 10 | 81, [4, 1, 2]);
        let lost = |failure| {
            let (place, name) = ("launch of `forward`".into(), "CUDA_ERROR_LAUNCH_FAILED".into());
            Error::ContextLost { place, name, text: "unspecified launch failure".into() }.due_to(failure).to_string()
        };
        let head = "the GPU context is lost: launch of `forward` failed with CUDA_ERROR_LAUNCH_FAILED: ";
        let text = lost(None);
        assert!(text.starts_with(&format!("{head}unspecified launch failure; everything")), "{text}");
        let text = lost(failure);
        let expected =
            "assertion `scores are finite` failed in CTA (3,0,1), warp 2, lane 17 (ampere.rs:90); everything";
        assert!(text.starts_with(&format!("{head}{expected}")), "{text}");
    }
}
