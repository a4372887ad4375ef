//! What a kernel could remember one sample by in the next: buffers that are neither inputs nor outputs, and variables of its own in global
//! memory. Before every sample they hold again what they held before the first call.

use cuda::{DeviceBuffer, Loaded, Stream};
use ptx::{Module, Space};

use super::buffers::{BufferKernels, Buffers};
use super::calls::numbers;
use crate::case::Case;

/// Copies of all of them, and where they belong.
pub struct Keepsakes {
    places: Buffers,
    copies: Buffers,
    _memory: Vec<DeviceBuffer>,
}

impl Keepsakes {
    /// Of loaded kernels that nobody has called yet, which must live as long.
    pub fn of(
        case: &Case,
        sets: &[Loaded],
        kernels: &BufferKernels,
        stream: &Stream,
    ) -> Result<Keepsakes, cuda::Error> {
        let (buffers, variables) = (numbers(case, &scratch(case)), variables(case.kernel.module()));
        let mut places: Vec<(u64, usize)> = vec![];
        for set in sets {
            places.extend(buffers.iter().map(|number| set.address(*number)));
            for name in &variables {
                places.push(set.module().variable(name)?);
            }
        }
        let memory: Vec<DeviceBuffer> =
            places.iter().map(|(_, bytes)| DeviceBuffer::new(stream.context(), *bytes)).collect::<Result<_, _>>()?;
        let copies: Vec<(u64, usize)> =
            memory.iter().zip(&places).map(|(copy, (_, bytes))| (copy.address(), *bytes)).collect();
        let [places, copies] = [&places, &copies].map(|list| kernels.list(stream, list));
        let (places, copies) = (places?, copies?);
        kernels.restore(stream, &copies, &places)?;
        Ok(Keepsakes { places, copies, _memory: memory })
    }

    /// Puts everything back, and does not wait.
    pub fn restore(&self, kernels: &BufferKernels, stream: &Stream) -> Result<(), cuda::Error> {
        kernels.restore(stream, &self.places, &self.copies)
    }
}

/// Buffers of the recipe that the contract does not speak of.
fn scratch(case: &Case) -> Vec<&str> {
    let known: Vec<&str> = case.inputs().into_iter().chain(case.outputs()).collect();
    let names = case.resolved.buffers.iter().map(|buffer| buffer.name.as_str());
    names.filter(|name| !known.contains(name)).collect()
}

/// Variables in global memory, of the module and of its functions.
pub fn variables(module: &Module) -> Vec<&str> {
    let all = module.variables.iter().chain(module.functions.iter().flat_map(|function| &function.variables));
    all.filter(|variable| variable.space == Space::Global).map(|variable| variable.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_inputs_and_outputs_is_scratch() {
        let kernel = |problem: &str, id, splits| {
            let config = attention::configs::Config { splits, ..attention::configs::Config::by_id(id).unwrap() };
            Case::new(attention::kernels::kernel(&problem.parse().unwrap(), &config).unwrap()).unwrap()
        };
        assert!(scratch(&kernel("B1 H1 S64 D64 causal", 1, 1)).is_empty());
        assert_eq!(scratch(&kernel("B1 H1 S256 D64 causal", 11, 1)), ["counter"]);
        assert!(!scratch(&kernel("B1 H1 S256 D64", 1, 2)).is_empty());
    }
}
