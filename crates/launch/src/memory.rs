//! The buffers of a recipe as bytes on the host.

use crate::contents::Contents;
use crate::element::Element;
use crate::error::Error;
use crate::resolved::{Init, Resolved};
use crate::{buffer, expectation};

/// Every buffer's bytes, in the order of the recipe.
///
/// ```
/// use launch::{Limits, Memory, Recipe};
///
/// let recipe = Recipe::parse("kernel.toml", r#"
///     [buffer.x]
///     type = "u32"
///     shape = [4]
///     init = "ramp"
///     expect = [0, 1, 2, 3]
/// "#)?;
/// let resolved = recipe.resolve(&Limits::default())?;
/// let memory = Memory::new(&resolved, 0)?;
/// assert_eq!(memory.buffer("x").unwrap().contents.to_vec()[4], 1);
/// memory.check(&resolved)?;
/// # Ok::<(), launch::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// The buffers.
    pub buffers: Vec<BufferMemory>,
}

/// One buffer's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferMemory {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its content, little-endian.
    pub contents: Contents,
    /// Whether anybody wrote it: a poisoned buffer counts as never written.
    pub initialised: bool,
}

impl Memory {
    /// Makes and fills the buffers; `seed` is the run's seed. Files with what is expected must be there, too: nobody runs for nothing.
    pub fn new(resolved: &Resolved, seed: u64) -> Result<Memory, Error> {
        let mut buffers = Vec::new();
        for buffer in &resolved.buffers {
            expectation::check_file(buffer, &resolved.folder)?;
            buffers.push(BufferMemory {
                name: buffer.name.clone(),
                element: buffer.element,
                contents: buffer::fill(buffer, seed, &resolved.folder)?,
                initialised: buffer.init != Init::Poison,
            });
        }
        Ok(Memory { buffers })
    }

    /// The buffer of that name.
    pub fn buffer(&self, name: &str) -> Option<&BufferMemory> {
        self.buffers.iter().find(|buffer| buffer.name == name)
    }

    /// Compares every buffer with what the recipe expects and returns all that fail.
    pub fn failures(&self, resolved: &Resolved) -> Vec<Error> {
        let pairs = resolved.buffers.iter().zip(&self.buffers);
        let folder = &resolved.folder;
        pairs.filter_map(|(buffer, memory)| expectation::compare(buffer, &memory.contents, folder).err()).collect()
    }

    /// The first failure of [`Memory::failures`], if any.
    pub fn check(&self, resolved: &Resolved) -> Result<(), Error> {
        self.failures(resolved).into_iter().next().map_or(Ok(()), Err)
    }
}
