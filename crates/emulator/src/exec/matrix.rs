//! Tensor cores and what feeds them. The whole warp takes part.

use super::access::Access;
use super::product::{Product, Work, integers, shape};
use super::{Action, At, Next, together};
use crate::machine::{AddressSource, Cluster, Decoder, Source, Why};
use crate::numerics::format::{Format, Rounding};
use crate::numerics::fragment::transpose;
use crate::numerics::product::Arithmetic;
use crate::numerics::tensor_core::Rule;
use happens_before::Kind;
use ptx::forms::Matrix;
use ptx::{Instruction, RegisterId, Space, Type};

/// Moves of 8×8 matrices of 16-bit elements, of which lane l holds row l/4, columns 2·(l%4) and the next.
pub enum Tiles {
    Load { address: AddressSource, destinations: Vec<Option<RegisterId>>, transposed: bool, space: Option<Space> },
    Store { address: AddressSource, sources: Vec<Source>, transposed: bool, space: Option<Space> },
    Transpose { destination: Option<RegisterId>, source: Source },
}

/// A row of an 8×8 matrix of 16-bit elements.
const ROW_BYTES: u32 = 16;

pub fn decode(op: Matrix, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let operands = &instruction.operands;
    let (transposed, space) = (instruction.has("trans"), instruction.space());
    let tiles = match op {
        Matrix::LoadMatrix => Tiles::Load {
            address: decoder.address(&operands[1])?,
            destinations: decoder.destinations(&operands[0])?,
            transposed,
            space,
        },
        Matrix::StoreMatrix => Tiles::Store {
            address: decoder.address(&operands[0])?,
            sources: decoder.sources(&operands[1], Type::B32)?,
            transposed,
            space,
        },
        Matrix::MoveMatrix => Tiles::Transpose {
            destination: decoder.destination(&operands[0])?,
            source: decoder.source(&operands[1], Type::B32)?,
        },
        product => {
            let product = decode_product(product, instruction, decoder)?;
            return Ok(Action::Product(Box::new(product)));
        }
    };
    Ok(Action::Matrix(tiles))
}

fn decode_product(op: Matrix, instruction: &Instruction, decoder: &Decoder) -> Result<Product, Why> {
    let types: Vec<Type> = instruction.types().collect();
    let &[d, a, b, c] = types.as_slice() else { return Err("types of this number".into()) };
    let (depth, saturate) = (shape(instruction).depth, instruction.has("satfinite"));
    let work: Work = match (op, depth) {
        (Matrix::Multiply16, _) => Rule::F16_K16.into(),
        (Matrix::MultiplyBrain16, _) => Rule::BF16_K16.into(),
        (Matrix::MultiplyHalfToHalf, 8) => Rule::F16_K8_F16.into(),
        (Matrix::MultiplyHalfToHalf, _) => Rule::F16_K16_F16.into(),
        (Matrix::MultiplyHalf, _) => Rule::F16_K8.into(),
        (Matrix::MultiplyBrain, _) => Rule::BF16_K8.into(),
        (Matrix::MultiplyTensor32, 4) => Rule::TF32_K4.into(),
        (Matrix::MultiplyTensor32, _) => Rule::TF32_K8.into(),
        (Matrix::MultiplyDouble | Matrix::MultiplyDoubleWide, _) => Work::Double(Rounding::Nearest),
        (Matrix::MultiplyFloat8 | Matrix::MultiplyFloat8Short, 16) => float8([a, b], Rule::F16_K8),
        (Matrix::MultiplyFloat8 | Matrix::MultiplyFloat8Short, _) => float8([a, b], Rule::F16_K16),
        (Matrix::MultiplyFloat8ToHalf, 16) => float8([a, b], Rule::F16_K8_F16),
        (Matrix::MultiplyFloat8ToHalf, _) => float8([a, b], Rule::F16_K16_F16),
        (Matrix::MultiplyInteger8 | Matrix::MultiplyInteger4, _) => integers([a, b], saturate),
        (Matrix::MultiplyBits, _) => Arithmetic::Bits { exclusive: instruction.has("xor") }.into(),
        (Matrix::MultiplyQuadHalf | Matrix::MultiplyQuadFloat | Matrix::MultiplyQuadMixed, _) => {
            return Product::decode_quad([d, c], instruction, decoder);
        }
        (Matrix::LoadMatrix | Matrix::StoreMatrix | Matrix::MoveMatrix, _) => return Err(String::new()),
    };
    Product::decode(work, [d, a, b, c], instruction, decoder)
}

fn float8(types: [Type; 2], sum: Rule) -> Work {
    let [left, right] = types.map(|ty| if ty == Type::E4m3 { Format::E4M3 } else { Format::E5M2 });
    Arithmetic::Float8 { left, right, sum }.into()
}

pub fn execute(cluster: &mut Cluster, at: At, tiles: &Tiles) -> Next {
    together(cluster, at, |cluster, at| match tiles {
        Tiles::Load { address, destinations, transposed, space } => {
            load(cluster, at, address, destinations, *transposed, *space);
        }
        Tiles::Store { address, sources, transposed, space } => {
            store(cluster, at, address, sources, *transposed, *space)
        }
        Tiles::Transpose { destination, source } => {
            let words = transpose(&cluster.read_words(at.warp, *source));
            if let Some(destination) = destination {
                cluster.warps[at.warp].registers.write_words(*destination, at.mask, &words);
            }
        }
    })
}

/// The rows of `count` matrices: lanes 8i to 8i+7 give those of matrix i.
fn givers(at: At, count: usize) -> At {
    At { mask: at.mask & u32::MAX >> (32 - 8 * count.clamp(1, 4)), ..at }
}

fn load(
    cluster: &mut Cluster,
    at: At,
    address: &AddressSource,
    destinations: &[Option<RegisterId>],
    transposed: bool,
    space: Option<Space>,
) {
    let addresses = cluster.addresses(at.warp, address);
    let access = Access { space, kind: Kind::Read, bytes: ROW_BYTES };
    let rows = cluster.access(givers(at, destinations.len()), &access, &addresses);
    for (matrix, destination) in destinations.iter().enumerate() {
        let mut core = [0; 32];
        for (words, row) in core.as_chunks_mut::<4>().0.iter_mut().zip(&rows[matrix * 8..]) {
            let mut bytes = [0; ROW_BYTES as usize];
            cluster.fetch_all(*row, 0, &mut bytes);
            words.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
        }
        if let Some(destination) = destination {
            let words = if transposed { transpose(&core) } else { core };
            cluster.warps[at.warp].registers.write_words(*destination, at.mask, &words);
        }
    }
}

fn store(
    cluster: &mut Cluster,
    at: At,
    address: &AddressSource,
    sources: &[Source],
    transposed: bool,
    space: Option<Space>,
) {
    let addresses = cluster.addresses(at.warp, address);
    let access = Access { space, kind: Kind::Write, bytes: ROW_BYTES };
    let rows = cluster.access(givers(at, sources.len()), &access, &addresses);
    for (matrix, source) in sources.iter().enumerate() {
        let words = cluster.read_words(at.warp, *source);
        let core = if transposed { transpose(&words) } else { words };
        for (words, row) in core.as_chunks::<4>().0.iter().zip(&rows[matrix * 8..]) {
            let mut bytes = [0; ROW_BYTES as usize];
            bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
            cluster.put_all(*row, 0, &bytes);
        }
    }
}
