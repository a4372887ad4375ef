//! The block of parameters of a launch, on the stack.

use super::arguments::Placed;
use attention::problem::Problem;
use std::f64::consts::LOG2_E;

/// Four tensors of an address and three strides each, the log-sum-exp with two, and four numbers.
const BYTES: usize = 4 * 32 + 3 * 8 + 4 * 4;

/// What `attention_forward` is passed, in its order.
pub fn block(problem: &Problem, [q, k, v]: [&Placed; 3], o: &Placed, lse: &Placed) -> [u8; BYTES] {
    let mut block = Block { bytes: [0; BYTES], end: 0 };
    for tensor in [q, k, v, o] {
        let [batch, head, row, _] = tensor.view.strides;
        block.push(&tensor.address.to_le_bytes());
        block.push(&batch.to_le_bytes());
        block.push(&head.to_le_bytes());
        // Checked to fit, where there is a second row at all.
        block.push(&u32::try_from(row).unwrap_or(0).to_le_bytes());
    }
    let (heads, queries) = (u64::from(problem.heads()), u64::from(problem.queries()));
    block.push(&lse.address.to_le_bytes());
    block.push(&(heads * queries).to_le_bytes());
    block.push(&queries.to_le_bytes());
    block.push(&problem.queries().to_le_bytes());
    block.push(&problem.keys().to_le_bytes());
    block.push(&(problem.heads() / problem.kv_heads()).to_le_bytes());
    block.push(&((f64::from(problem.scale()) * LOG2_E) as f32).to_le_bytes());
    block.bytes
}

struct Block {
    bytes: [u8; BYTES],
    end: usize,
}

impl Block {
    /// Each parameter is aligned to its own size.
    fn push(&mut self, bytes: &[u8]) {
        let start = self.end.next_multiple_of(bytes.len());
        self.end = start + bytes.len();
        self.bytes[start..self.end].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tensor::View;
    use super::*;
    use attention::configs::CONFIGS;
    use attention::problem::{Layout, Shape};
    use launch::Limits;
    use launch::resolved::{MAP_BYTES, Placement};
    use launch::tensor_map::ResolvedMap;

    /// Buffers at round addresses.
    struct Rack;

    impl Placement for Rack {
        type Error = std::convert::Infallible;

        fn address(&mut self, buffer: usize) -> Result<u64, Self::Error> {
            Ok(0x1000 * (buffer as u64 + 1))
        }

        fn map(&mut self, _: &ResolvedMap) -> Result<[u8; MAP_BYTES], Self::Error> {
            unreachable!("these kernels take no tensor maps")
        }
    }

    fn placed(index: u64, shape: Shape, problem: &Problem) -> Placed {
        let sizes = [shape.batch, shape.heads, shape.rows, shape.columns];
        let view = View::new(problem.dtype(), sizes, problem.layout());
        Placed { argument: "any", view, address: 0x1000 * (index + 1), bytes: 0, device: 0 }
    }

    /// The block that a call builds is the one that the kernel's own recipe makes.
    #[test]
    fn the_block_is_the_recipes() {
        for layout in [Layout::Bhsd, Layout::Bshd] {
            let builder = Problem::builder().batch(3).heads(6).kv_heads(2).queries(5).keys(7).value_dim(128).scale(0.3);
            let problem = builder.layout(layout).build().unwrap();
            let shapes = [problem.q_shape(), problem.k_shape(), problem.v_shape(), problem.o_shape()];
            let [q, k, v, o] = [0, 1, 2, 3].map(|index| placed(index as u64, shapes[index], &problem));
            let lse = placed(4, shapes[0], &problem);
            let kernel = attention::kernels::kernel(&problem, &CONFIGS[0]).unwrap();
            let resolved = kernel.resolve(&Limits::default()).unwrap();
            let launch = &resolved.launches[0];
            let expected = launch.parameters(kernel.entry(launch).unwrap(), &mut Rack).unwrap();
            assert_eq!(block(&problem, [&q, &k, &v], &o, &lse)[..], expected[..], "{problem}");
        }
    }
}
