//! Tensor cores and what feeds them. The whole warp takes part.

use super::access::Access;
use super::{At, Next};
use crate::happens_before::Kind;
use crate::machine::{AddressSource, Block, Decoder, Source, Values, Why};
use crate::numerics::tensor_core::{Rule, Shape, multiply};
use ptx::forms::Matrix;
use ptx::{Instruction, RegisterId, Space, Type};

pub enum Fragmented {
    Load { address: AddressSource, destinations: Vec<Option<RegisterId>>, transposed: bool, space: Option<Space> },
    Multiply { rule: Rule, destinations: Vec<Option<RegisterId>>, a: Vec<Source>, b: Vec<Source>, c: Vec<Source> },
}

/// A row of an 8×8 matrix of 16-bit elements.
const ROW_BYTES: u32 = 16;
/// `mma.sync.m16n8k16`.
const SHAPE: Shape = Shape { rows: 16, columns: 8, depth: 16 };

pub fn decode(op: Matrix, instruction: &Instruction, decoder: &Decoder) -> Result<Fragmented, Why> {
    match op {
        Matrix::LoadMatrix => Ok(Fragmented::Load {
            address: decoder.address(&instruction.operands[1])?,
            destinations: decoder.destinations(&instruction.operands[0])?,
            transposed: instruction.has("trans"),
            space: instruction.space(),
        }),
        Matrix::Multiply16 => decode_multiply(Rule::F16_K16, instruction, decoder),
        Matrix::MultiplyBrain16 => decode_multiply(Rule::BF16_K16, instruction, decoder),
        Matrix::StoreMatrix
        | Matrix::MoveMatrix
        | Matrix::MultiplyHalfToHalf
        | Matrix::MultiplyHalf
        | Matrix::MultiplyBrain
        | Matrix::MultiplyTensor32
        | Matrix::MultiplyDouble
        | Matrix::MultiplyDoubleWide
        | Matrix::MultiplyFloat8
        | Matrix::MultiplyFloat8Short
        | Matrix::MultiplyFloat8ToHalf
        | Matrix::MultiplyInteger8
        | Matrix::MultiplyInteger4
        | Matrix::MultiplyBits
        | Matrix::MultiplyQuadHalf
        | Matrix::MultiplyQuadFloat
        | Matrix::MultiplyQuadMixed => Err(String::new()),
    }
}

fn decode_multiply(rule: Rule, instruction: &Instruction, decoder: &Decoder) -> Result<Fragmented, Why> {
    let sources = |index: usize, ty| decoder.sources(&instruction.operands[index], ty);
    Ok(Fragmented::Multiply {
        rule,
        destinations: decoder.destinations(&instruction.operands[0])?,
        a: sources(1, Type::B32)?,
        b: sources(2, Type::B32)?,
        c: sources(3, Type::F32)?,
    })
}

pub fn execute(block: &mut Block, at: At, fragmented: &Fragmented) -> Next {
    if at.mask == 0 {
        return Next::Following;
    }
    let Some(mask) = block.gather(at, u32::MAX) else { return Next::Done };
    let at = At { mask, ..at };
    match fragmented {
        Fragmented::Load { address, destinations, transposed, space } => {
            load(block, at, address, destinations, *transposed, *space);
        }
        Fragmented::Multiply { rule, destinations, a, b, c } => product(block, at, rule, destinations, [a, b, c]),
    }
    block.warps[at.warp].disperse(at.statement, u32::MAX);
    Next::Done
}

/// Lanes 8i to 8i+7 give the rows of matrix i; each lane receives two elements of every matrix.
/// PTX ISA, "ldmatrix": lane l gets row l/4, columns 2·(l%4) and the next; transposed, the roles are exchanged.
fn load(
    block: &mut Block,
    at: At,
    address: &AddressSource,
    destinations: &[Option<RegisterId>],
    transposed: bool,
    space: Option<Space>,
) {
    let addresses = block.addresses(at.warp, address);
    let givers = u32::MAX >> (32 - 8 * destinations.len().min(4));
    let access = Access { space, kind: Kind::Read, bytes: ROW_BYTES };
    let rows = block.access(At { mask: at.mask & givers, ..at }, &access, &addresses);
    for (matrix, destination) in destinations.iter().enumerate() {
        let element = |row: usize, column: usize| block.fetch(rows[matrix * 8 + row], column * 2, 2);
        let values: Values = std::array::from_fn(|lane| {
            let (row, column) = (lane / 4, lane % 4 * 2);
            let pair = if transposed {
                [element(column, row), element(column + 1, row)]
            } else {
                [element(row, column), element(row, column + 1)]
            };
            pair[0] | pair[1] << 16
        });
        block.warps[at.warp].write(*destination, at.mask, &values);
    }
}

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": group g = lane/4, t = lane%4.
/// A: register i holds row g + 8·(i%2), columns 2t + 8·(i/2) and the next; B: column g, rows 2t + 8·i and the next;
/// C: register i holds row g + 8·(i/2), column 2t + i%2.
fn product(block: &mut Block, at: At, rule: &Rule, destinations: &[Option<RegisterId>], operands: [&[Source]; 3]) {
    let [a, b, c] =
        operands.map(|sources| sources.iter().map(|one| block.read(at.warp, *one)).collect::<Vec<Values>>());
    let half = |value: u64, high: usize| (value >> (16 * high)) as u16;
    let (mut left, mut right, mut sum) = ([0u16; 256], [0u16; 128], [0u32; 128]);
    for lane in 0..32 {
        let (g, t) = (lane / 4, lane % 4);
        for (i, pair) in (0..8).map(|place| (place / 2, place % 2)) {
            left[(g + 8 * (i % 2)) * 16 + 2 * t + 8 * (i / 2) + pair] = half(a[i][lane], pair);
        }
        for (i, pair) in (0..4).map(|place| (place / 2, place % 2)) {
            right[g * 16 + 2 * t + 8 * i + pair] = half(b[i][lane], pair);
        }
        for i in 0..4 {
            sum[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = c[i][lane] as u32;
        }
    }
    multiply(rule, SHAPE, &left, &right, &mut sum);
    for (i, destination) in destinations.iter().enumerate() {
        let place = |lane: usize| (lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2;
        let values: Values = std::array::from_fn(|lane| u64::from(sum[place(lane)]));
        block.warps[at.warp].write(*destination, at.mask, &values);
    }
}
