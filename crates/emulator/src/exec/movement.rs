//! Moving data: registers, memory, addresses.

use super::access::{Access, Accessed};
use super::{Action, At, Lanewise, Next, fence};
use crate::machine::{AddressSource, Cluster, Decoder, Source, Values, Why, lanes, truncate};
use crate::memory::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, SharedMemory};
use crate::simd::Kernel;
use happens_before::{Kind, Semantics, Space as Watched};
use ptx::forms::Movement;
use ptx::{Instruction, Operand, RegisterId, Space, Type};

pub enum Transfer {
    Load {
        access: Access,
        semantics: Semantics,
        address: AddressSource,
        destinations: Vec<Option<RegisterId>>,
        element: Element,
    },
    Store {
        access: Access,
        semantics: Semantics,
        address: AddressSource,
        sources: Vec<Source>,
        element: Element,
    },
    /// `mov.b64 d, {a, b}` and `mov.b64 {a, b}, d`.
    Pack {
        destination: Option<RegisterId>,
        parts: Vec<Source>,
        bits: u32,
    },
    Unpack {
        destinations: Vec<Option<RegisterId>>,
        source: Source,
        bits: u32,
    },
    /// `isspacep`.
    Ask {
        destination: Option<RegisterId>,
        source: Source,
        space: Space,
        /// `.shared::cluster`: the memory of the cluster's other blocks counts.
        cluster: bool,
    },
    /// `mapa`: the address of the same variable in another block of the cluster.
    Map {
        destination: Option<RegisterId>,
        address: AddressSource,
        rank: Source,
        window: u64,
    },
    /// `getctarank`: the block that an address lies in.
    Rank {
        destination: Option<RegisterId>,
        address: AddressSource,
        window: u64,
    },
    /// Adds to an address: `cvta` between the window of a space and generic addresses.
    Shift {
        destination: Option<RegisterId>,
        source: Source,
        by: u64,
    },
}

/// The destinations of a move, of which most have one.
type Destinations = (Option<RegisterId>, Option<RegisterId>);

/// A weak load or store in one space, of values that need no extension.
pub struct Plain {
    pub loads: bool,
    pub space: Watched,
    pub base: Source,
    pub offset: u64,
    /// Bytes per lane, and of one value.
    pub bytes: u32,
    pub element: u32,
    /// Destinations, as sources name them, or what is stored.
    pub values: Vec<Source>,
}

impl Transfer {
    /// What a whole-warp kernel needs of a plain load or store; none if it is not plain.
    pub fn plain(&self) -> Option<Plain> {
        let (loads, access, semantics, address, element) = match self {
            Transfer::Load { access, semantics, address, element, .. } => (true, access, semantics, address, element),
            Transfer::Store { access, semantics, address, element, .. } => (false, access, semantics, address, element),
            _ => return None,
        };
        let values = match self {
            Transfer::Load { destinations, .. } => {
                destinations.iter().map(|one| one.map(Source::Register)).collect::<Option<Vec<_>>>()?
            }
            Transfer::Store { sources, .. } => sources.clone(),
            _ => return None,
        };
        let space = match access.space? {
            Space::Shared => Watched::Shared,
            Space::Global | Space::Constant => Watched::Global,
            _ => return None,
        };
        let weak = matches!(access.kind, Kind::Read | Kind::Write) && *semantics == Semantics::default();
        let extends = loads && element.ty.is_signed() && element.ty.bits() < element.width;
        let (bytes, size) = (access.bytes, element.ty.bytes());
        let fits = matches!(bytes, 1 | 2 | 4 | 8 | 16) && (size >= 4 || bytes == size) && element.ty.bits() == size * 8;
        let (base, offset) = (address.base, address.offset as u64);
        (weak && fits && !extends).then_some(Plain { loads, space, base, offset, bytes, element: size, values })
    }

    /// A load or store that another thread may see: not of parameters, constants or the thread's own memory.
    pub fn is_shared_access(&self) -> bool {
        let (Transfer::Load { access, .. } | Transfer::Store { access, .. }) = self else { return false };
        !matches!(access.space, Some(Space::Parameter | Space::Constant | Space::Local))
    }

    /// What a move between registers writes, and where.
    pub fn moved(&self, read: &dyn Fn(&Source) -> Values) -> Vec<(Option<RegisterId>, Values)> {
        match self {
            Transfer::Pack { destination, parts, bits } => {
                let parts: Vec<Values> = parts.iter().map(read).collect();
                let join =
                    |lane: usize| parts.iter().rev().fold(0, |value, part| value << bits | truncate(part[lane], *bits));
                vec![(*destination, std::array::from_fn(join))]
            }
            Transfer::Unpack { destinations, source, bits } => {
                let values = read(source);
                let part = |index: u32| values.map(|value| truncate(value >> (index * bits), *bits));
                destinations.iter().zip(0..).map(|(destination, index)| (*destination, part(index))).collect()
            }
            Transfer::Shift { destination, source, by } => {
                vec![(*destination, read(source).map(|value| value.wrapping_add(*by)))]
            }
            _ => vec![],
        }
    }

    /// Destination, offset and size of a load of an entry's parameter.
    pub fn parameter(&self) -> Option<(RegisterId, u64, u32)> {
        let Transfer::Load { access, address, destinations, element, .. } = self else { return None };
        let (Some(Space::Parameter), Source::Constant(base)) = (access.space, address.base) else { return None };
        let &[Some(destination)] = destinations.as_slice() else { return None };
        let extends = element.ty.is_signed() && element.ty.bits() < element.width;
        (!extends).then_some((destination, base.wrapping_add(address.offset as u64), access.bytes))
    }

    /// The whole-warp kernel of a move between registers, with what it moves.
    pub fn kernel(&self) -> Option<(Kernel, Destinations, [Source; 3])> {
        let zero = Source::Constant(0);
        Some(match self {
            Transfer::Pack { destination, parts, bits } => match (parts.as_slice(), bits) {
                ([low, high], 32) => (Kernel::WideJoin, (*destination, None), [*low, *high, zero]),
                ([low, high], 16) => (Kernel::PackHalves, (*destination, None), [*low, *high, zero]),
                _ => return None,
            },
            Transfer::Unpack { destinations, source, bits } => match (destinations.as_slice(), bits) {
                ([low, high], 32) => (Kernel::WideSplit, (*low, *high), [*source, zero, zero]),
                ([low @ Some(_), high @ Some(_)], 16) => (Kernel::SplitHalves, (*low, *high), [*source, zero, zero]),
                ([low, None], 16) => (Kernel::LowHalf, (*low, None), [*source, zero, zero]),
                ([None, high], 16) => (Kernel::HighHalf, (*high, None), [*source, zero, zero]),
                _ => return None,
            },
            Transfer::Shift { destination, source, by } => {
                (Kernel::WideAdd, (*destination, None), [*source, Source::Constant(*by), zero])
            }
            _ => return None,
        })
    }
}

/// One element of a load or store: its type, and how wide its register is.
#[derive(Clone, Copy)]
pub struct Element {
    ty: Type,
    width: u32,
}

pub fn decode(op: Movement, instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let transfer = match op {
        Movement::Move => return decode_move(instruction, decoder),
        Movement::ToSpace | Movement::ToRareSpace => {
            decode_shift(instruction, decoder, window(instruction, decoder).wrapping_neg())?
        }
        Movement::ToGeneric | Movement::RareToGeneric => {
            decode_shift(instruction, decoder, window(instruction, decoder))?
        }
        Movement::IsSpace => {
            let destination = decoder.destination(&instruction.operands[0])?;
            let source = decoder.source(&instruction.operands[1], Type::U64)?;
            let space = instruction.space().ok_or("a space of this kind")?;
            Transfer::Ask { destination, source, space, cluster: instruction.has("shared::cluster") }
        }
        Movement::Load => decode_load(instruction, decoder, Kind::Read)?,
        Movement::LoadUniform => decode_load(instruction, decoder, Kind::Read)?,
        Movement::LoadVolatile | Movement::LoadStrong => decode_load(instruction, decoder, Kind::StrongRead)?,
        Movement::Store => decode_store(instruction, decoder, Kind::Write)?,
        Movement::StoreVolatile | Movement::StoreStrong => decode_store(instruction, decoder, Kind::StrongWrite)?,
        // There is no cache to fill.
        Movement::Prefetch | Movement::PrefetchKept | Movement::PrefetchUniform => return Ok(Action::Nothing),
        Movement::PolicyOfFraction => Transfer::Shift {
            destination: decoder.destination(&instruction.operands[0])?,
            source: Source::Constant(0),
            by: 0,
        },
        Movement::MapAddress => decode_map(instruction, decoder, cluster_window(instruction))?,
        Movement::MapShared => decode_map(instruction, decoder, 0)?,
        Movement::RankOfAddress => decode_rank(instruction, decoder, cluster_window(instruction))?,
        Movement::RankOfShared => decode_rank(instruction, decoder, 0)?,
    };
    Ok(Action::Movement(transfer))
}

fn decode_move(instruction: &Instruction, decoder: &Decoder) -> Result<Action, Why> {
    let bits = instruction.ty().map_or(32, Type::bits);
    let transfer = match (&instruction.operands[0], &instruction.operands[1]) {
        (Operand::Vector(parts), source) if parts.len() > 1 => {
            let destinations = parts.iter().map(|part| decoder.destination(part)).collect::<Result<_, _>>()?;
            Transfer::Unpack {
                destinations,
                source: decoder.source(source, Type::B64)?,
                bits: bits / parts.len() as u32,
            }
        }
        (destination, Operand::Vector(parts)) if parts.len() > 1 => {
            let sources = parts.iter().map(|part| decoder.source(part, Type::B64)).collect::<Result<_, _>>()?;
            let destination = decoder.destination(destination)?;
            Transfer::Pack { destination, parts: sources, bits: bits / parts.len() as u32 }
        }
        _ => return decoder.compute(instruction, Lanewise::Copy).map(Action::Compute),
    };
    Ok(Action::Movement(transfer))
}

fn decode_shift(instruction: &Instruction, decoder: &Decoder, by: u64) -> Result<Transfer, Why> {
    let destination = decoder.destination(&instruction.operands[0])?;
    Ok(Transfer::Shift { destination, source: decoder.source(&instruction.operands[1], Type::U64)?, by })
}

fn decode_map(instruction: &Instruction, decoder: &Decoder, window: u64) -> Result<Transfer, Why> {
    let [destination, address, rank] = [0, 1, 2].map(|index| &instruction.operands[index]);
    Ok(Transfer::Map {
        destination: decoder.destination(destination)?,
        address: offset_source(decoder, address)?,
        rank: decoder.source(rank, Type::U32)?,
        window,
    })
}

/// Without a space the address is generic.
fn cluster_window(instruction: &Instruction) -> u64 {
    if instruction.has("shared::cluster") { 0 } else { SHARED_WINDOW }
}

fn decode_rank(instruction: &Instruction, decoder: &Decoder, window: u64) -> Result<Transfer, Why> {
    let destination = decoder.destination(&instruction.operands[0])?;
    Ok(Transfer::Rank { destination, address: offset_source(decoder, &instruction.operands[1])?, window })
}

/// A register, a variable, or a variable and an offset.
fn offset_source(decoder: &Decoder, operand: &Operand) -> Result<AddressSource, Why> {
    match operand {
        Operand::Address(_) => decoder.address(operand),
        other => Ok(AddressSource { base: decoder.source(other, Type::U64)?, offset: 0 }),
    }
}

/// Where the generic addresses of a space begin; those of global and constant memory are their own.
fn window(instruction: &Instruction, decoder: &Decoder) -> u64 {
    match instruction.space() {
        Some(Space::Shared) => SHARED_WINDOW,
        Some(Space::Local) => LOCAL_WINDOW,
        Some(Space::Parameter) if decoder.is_callee() => LOCAL_WINDOW,
        Some(Space::Parameter) => PARAMETER_WINDOW,
        _ => 0,
    }
}

fn element(instruction: &Instruction, operand: &Operand, decoder: &Decoder) -> Element {
    let ty = instruction.ty().unwrap_or(Type::B32);
    let first = match operand {
        Operand::Vector(parts) => parts.first(),
        single => Some(single),
    };
    let width = match first {
        Some(Operand::Register(register)) => decoder.bits(*register),
        _ => ty.bits(),
    };
    Element { ty, width }
}

fn access(instruction: &Instruction, decoder: &Decoder, address: &Operand, kind: Kind) -> Access {
    let bytes = instruction.ty().map_or(4, Type::bytes) * instruction.count();
    Access { space: decoder.space(instruction, address), kind, bytes }
}

fn decode_load(instruction: &Instruction, decoder: &Decoder, kind: Kind) -> Result<Transfer, Why> {
    let [destination, address] = [0, 1].map(|index| &instruction.operands[index]);
    Ok(Transfer::Load {
        access: access(instruction, decoder, address, kind),
        semantics: fence::semantics(instruction),
        address: decoder.address(address)?,
        destinations: decoder.destinations(destination)?,
        element: element(instruction, destination, decoder),
    })
}

fn decode_store(instruction: &Instruction, decoder: &Decoder, kind: Kind) -> Result<Transfer, Why> {
    let [address, source] = [0, 1].map(|index| &instruction.operands[index]);
    let element = element(instruction, source, decoder);
    Ok(Transfer::Store {
        access: access(instruction, decoder, address, kind),
        semantics: fence::semantics(instruction),
        address: decoder.address(address)?,
        sources: decoder.sources(source, element.ty)?,
        element,
    })
}

pub fn execute(cluster: &mut Cluster, at: At, transfer: &Transfer) -> Next {
    match transfer {
        Transfer::Load { access, semantics, address, destinations, element } => {
            load(cluster, at, (access, *semantics), address, destinations, *element);
        }
        Transfer::Store { access, semantics, address, sources, element } => {
            store(cluster, at, (access, *semantics), address, sources, *element);
        }
        Transfer::Pack { .. } | Transfer::Unpack { .. } | Transfer::Shift { .. } => {
            let results = transfer.moved(&|source| cluster.read(at.warp, *source));
            let warp = &mut cluster.warps[at.warp];
            results.iter().for_each(|(destination, values)| warp.write(*destination, at.mask, values));
        }
        Transfer::Ask { destination, source, space, cluster: whole } => {
            let own = |address: u64| *whole || cluster.is_own(at.warp, address);
            let holds = |address: u64| cluster.space_of(address) == *space && (*space != Space::Shared || own(address));
            let values = cluster.read(at.warp, *source).map(|address| u64::from(holds(address)));
            cluster.warps[at.warp].write(*destination, at.mask, &values);
        }
        Transfer::Map { destination, address, rank, window } => {
            let (addresses, ranks) = (cluster.addresses(at.warp, address), cluster.read(at.warp, *rank));
            let map = |lane: usize| {
                let (_, offset) = cluster.cluster_place(at.warp, addresses[lane].wrapping_sub(*window));
                window + SharedMemory::mapped(ranks[lane] & 0xf, offset)
            };
            let values = std::array::from_fn(map);
            cluster.warps[at.warp].write(*destination, at.mask, &values);
        }
        Transfer::Rank { destination, address, window } => {
            let rank = |address: u64| cluster.cluster_place(at.warp, address.wrapping_sub(*window)).0 as u64;
            let values = cluster.addresses(at.warp, address).map(rank);
            cluster.warps[at.warp].write(*destination, at.mask, &values);
        }
    }
    Next::Following
}

fn load(
    cluster: &mut Cluster,
    at: At,
    (access, semantics): (&Access, Semantics),
    address: &AddressSource,
    destinations: &[Option<RegisterId>],
    element: Element,
) {
    let addresses = cluster.addresses(at.warp, address);
    let accessed = cluster.ordered_access(at, access, semantics, &addresses);
    let bytes = element.ty.bytes() as usize;
    for (index, destination) in destinations.iter().enumerate() {
        let mut values = [0; 32];
        for lane in lanes(at.mask) {
            let value = cluster.fetch(accessed[lane], index * bytes, bytes);
            values[lane] = widen(value, element);
        }
        cluster.warps[at.warp].write(*destination, at.mask, &values);
    }
}

/// A load into a wider register extends with the type's sign (PTX ISA, "Operand Size Exceeding Instruction-Type Size").
fn widen(value: u64, element: Element) -> u64 {
    let unused = 64 - element.ty.bits();
    let extended = if element.ty.is_signed() { ((value << unused) as i64 >> unused) as u64 } else { value };
    truncate(extended, element.width)
}

fn store(
    cluster: &mut Cluster,
    at: At,
    (access, semantics): (&Access, Semantics),
    address: &AddressSource,
    sources: &[Source],
    element: Element,
) {
    let addresses = cluster.addresses(at.warp, address);
    let values: Vec<Values> = sources.iter().map(|source| cluster.read(at.warp, *source)).collect();
    let shared = !matches!(access.space, Some(Space::Local | Space::Parameter));
    let watched = cluster.checks && shared && access.kind == Kind::Write;
    let equal = watched && agree(at.mask, &addresses, &values, element.ty.bits());
    let kind = if equal { Kind::EqualWrite } else { access.kind };
    let accessed = cluster.ordered_access(at, &Access { kind, ..*access }, semantics, &addresses);
    let bytes = element.ty.bytes() as usize;
    for (index, values) in values.iter().enumerate() {
        for lane in lanes(at.mask).filter(|lane| accessed[*lane] != Accessed::Nothing) {
            cluster.put(accessed[lane], index * bytes, bytes, values[lane]);
        }
    }
}

/// Do several lanes write to one address, and all that do write the same values?
fn agree(mask: u32, addresses: &Values, values: &[Values], bits: u32) -> bool {
    let pairs = lanes(mask).flat_map(|one| lanes(mask).filter(move |two| one < *two).map(move |two| (one, two)));
    let mut same = pairs.filter(|(one, two)| addresses[*one] == addresses[*two]).peekable();
    same.peek().is_some()
        && same.all(|(one, two)| values.iter().all(|values| truncate(values[one] ^ values[two], bits) == 0))
}
