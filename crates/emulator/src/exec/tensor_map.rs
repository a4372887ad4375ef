//! Tensor maps that the device rewrites and publishes. PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".

use super::access::Access;
use super::{Action, At, Next};
use crate::async_engines::tensor_map::{BYTES, Field, replace};
use crate::checks;
use crate::machine::{AddressSource, Cluster, Decoder, Source, Why, lanes};
use happens_before::Kind;
use ptx::forms::TensorMap as Op;
use ptx::{Immediate, Instruction, Operand, Space, Type};

pub enum Rewrite {
    Replace {
        space: Option<Space>,
        address: AddressSource,
        field: Field,
        value: Source,
    },
    /// Copies a map from shared to global memory, for all to see.
    Publish {
        to: AddressSource,
        from: AddressSource,
    },
}

pub fn decode(op: Op, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let operands = &instruction.operands;
    let value = |index: usize, ty: Type| decoder.source(&operands[index], ty);
    let (field, value) = match op {
        Op::Prefetch => return Ok(Action::Nothing),
        Op::Publish => {
            let [to, from] = [0, 1].map(|index| decoder.address(&operands[index]));
            return Ok(Action::TensorMap(Rewrite::Publish { to: to?, from: from? }));
        }
        Op::ReplaceAddress => (Field::Address, value(1, Type::U64)?),
        Op::ReplaceRank => (Field::Rank, value(1, Type::U32)?),
        Op::ReplaceSize => (size_field(instruction, dimension(&operands[1])?), value(2, Type::U32)?),
        Op::ReplaceStride => (Field::Stride(dimension(&operands[1])?), value(2, Type::U64)?),
        Op::ReplaceElementType => (Field::Element, value(1, Type::U32)?),
        Op::ReplaceInterleave => (Field::Interleave, value(1, Type::U32)?),
        Op::ReplaceSwizzle => (Field::Swizzle, value(1, Type::U32)?),
        Op::ReplaceFill => (Field::Fill, value(1, Type::U32)?),
    };
    let address = decoder.address(&operands[0])?;
    Ok(Action::TensorMap(Rewrite::Replace { space: instruction.space(), address, field, value }))
}

fn size_field(instruction: &Instruction, dimension: usize) -> Field {
    match instruction.choice(&["box_dim", "global_dim"]) {
        Some("box_dim") => Field::BoxSize(dimension),
        Some(_) => Field::Size(dimension),
        None => Field::ElementStride(dimension),
    }
}

fn dimension(operand: &Operand) -> Result<usize, Why> {
    match operand {
        Operand::Immediate(Immediate::Integer(value)) => Ok(*value as usize),
        _ => Err("a dimension that is not a constant".into()),
    }
}

pub fn execute(cluster: &mut Cluster, at: At, rewrite: &Rewrite) -> Next {
    let access = |space, kind| Access { space, kind, bytes: BYTES as u32 };
    match rewrite {
        _ if at.mask == 0 => {}
        Rewrite::Replace { space, address, field, value } => {
            let (addresses, values) = (cluster.addresses(at.warp, address), cluster.read(at.warp, *value));
            let write = access(*space, Kind::Write);
            // The other fields stay as they are: there must be some.
            for lane in lanes(if cluster.checks { at.mask } else { 0 }) {
                let map = cluster.locate((at.warp, lane), &write, addresses[lane]);
                checks::uninitialised_memory::watch_piece(cluster, at, lane, map, BYTES);
            }
            let accessed = cluster.access(at, &write, &addresses);
            for lane in lanes(at.mask) {
                let mut object = std::array::from_fn(|byte| cluster.fetch(accessed[lane], byte, 1) as u8);
                replace(&mut object, *field, values[lane]);
                object.iter().enumerate().for_each(|(byte, new)| cluster.put(accessed[lane], byte, 1, (*new).into()));
            }
        }
        Rewrite::Publish { to, from } => {
            // All lanes name the same map: one of them stands for the warp.
            let one = At { mask: 1 << at.mask.trailing_zeros(), ..at };
            let [to, from] = [to, from].map(|address| cluster.addresses(at.warp, address));
            let sources = cluster.access(one, &access(Some(Space::Shared), Kind::Read), &from);
            let targets = cluster.access(one, &access(Some(Space::Global), Kind::Write), &to);
            for lane in lanes(one.mask) {
                for byte in 0..BYTES {
                    let value = cluster.fetch(sources[lane], byte, 1);
                    cluster.put(targets[lane], byte, 1, value);
                }
            }
            cluster.detector.fence_tensormap_release(at.lanes());
        }
    }
    Next::Following
}
