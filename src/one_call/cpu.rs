//! Tensors on the host, computed where they are.

use super::call::Call;
use super::extras::{Extra, Words};
use super::tensor::{HostTensor, Number};
use super::{Error, Options};
use ::attention::cpu::{Change, Forward, Sight, Strided};

/// Into O, in the order of the dimensions of `q`, and the log-sum-exp.
pub fn into<N: Number>(
    call: &Call,
    inputs: [&HostTensor<N>; 3],
    options: &Options,
    o: &mut [N],
    lse: &mut [f32],
) -> Result<(), Error> {
    if let Some(argument) = options.of_kernels() {
        let (found, expected) = ("is given beside `Backend::Cpu`", "a GPU or the emulator: plain cores run no kernel");
        return Err(Error::Combination { argument, found, expected });
    }
    let floats = |extra| match options.extras.get(extra) {
        Some(Words::Floats(values)) => *values,
        _ => &[],
    };
    let integers = |extra| match options.extras.get(extra) {
        Some(Words::Integers(values)) => Some(*values),
        _ => None,
    };
    let [q, k, v] = inputs.map(HostTensor::rows);
    let problem = &call.problem;
    let forward = Forward {
        problem,
        q,
        k,
        v,
        mask: options.custom_mask.map_or(Sight::Kind(problem.mask()), |custom| Sight::Own(&**custom)),
        score: options.custom_score.map_or(Change::Kind(problem.score()), |custom| Change::Own(&**custom)),
        numbers: match floats(Extra::ScoreNumbers) {
            [] => floats(Extra::Slopes),
            numbers => numbers,
        },
        sinks: floats(Extra::Sinks),
        documents: integers(Extra::QIds).zip(integers(Extra::KIds)).map(|(of_q, of_k)| [of_q, of_k]),
        packed: integers(Extra::CuQ).zip(integers(Extra::CuK)).map(|(of_q, of_k)| [of_q, of_k]),
    };
    forward.run(o, problem.o_shape().strides(), lse);
    Ok(())
}

impl<'a, N: Number> HostTensor<'a, N> {
    fn rows(&self) -> Strided<'a, N> {
        let [batch, head, row, _] = self.view().strides.map(|stride| stride as usize);
        Strided::new(self.values, [batch, head, row], self.shape[3] as usize)
    }
}
