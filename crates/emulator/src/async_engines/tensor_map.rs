//! The tensor map: 128 bytes that say how a bulk tensor copy sees global memory.
//!
//! NVIDIA keeps the layout of those bytes to itself, so this one is ours. A kernel sees it only through
//! `tensormap.replace`, which may fill a zeroed object field by field; so a field holds what was written, however
//! wrong, and [`TensorMap::decode`] judges all of them when a copy uses the map.

use launch::tensor_map::{Interleave, OutOfBounds, ResolvedMap, Swizzle};
use launch::{Element, resolved};
use ptx::Type;
use std::ops::Range;

/// Bytes of a tensor map (PTX ISA, "tensormap.replace": `.b1024`).
pub const BYTES: usize = resolved::MAP_BYTES;
/// The most dimensions that a map has.
pub const MAX_RANK: usize = 5;

const ADDRESS: usize = 0;
const STRIDES: usize = 8;
const SIZES: usize = 40;
const BOX_SIZES: usize = 80;
const ELEMENT_STRIDES: usize = 100;
const RANK: usize = 120;
const ELEMENT: usize = 121;
const INTERLEAVE: usize = 122;
const SWIZZLE: usize = 123;
const FILL: usize = 124;

/// What makes a map, or a copy through it, impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the rank field of the tensor map holds {0}: expected 0 to 4, one less than the rank")]
    Rank(u64),
    #[error("the element type field of the tensor map holds {0}: expected 0 to 12")]
    Element(u64),
    #[error("the {field} field of the tensor map holds {found}: expected 0 to {most}")]
    Choice { field: &'static str, found: u64, most: u64 },
    #[error("{field} {dimension} of the tensor map is {found}: expected {least} to {most}")]
    Bounds { field: &'static str, dimension: usize, found: u64, least: u64, most: u64 },
    #[error("the global address of the tensor map is {0:#x}: expected a multiple of 16")]
    Address(u64),
    #[error("stride {dimension} of the tensor map is {found} bytes: expected a multiple of 16 below 2^40")]
    Stride { dimension: usize, found: u64 },
    #[error("a row of the box has {0} bytes: expected a multiple of 16")]
    InnerBytes(u64),
    #[error("a row of the box has {found} bytes: expected at most {span}, the span of the {swizzle} swizzle")]
    SwizzleSpan { found: u64, span: u64, swizzle: Swizzle },
    #[error("the box has {found} bytes: expected at most {most}, the shared memory of a block")]
    BoxBytes { found: u64, most: u64 },
    #[error("NaN fill needs a floating-point element type: the tensor map has {0}")]
    FillElement(ElementType),
    #[error("the copy has {found} coordinates: the tensor map has {expected} dimensions")]
    Coordinates { found: usize, expected: usize },
    #[error(
        "the first coordinate of the copy is {coordinate}, at byte {byte} of a row: expected a multiple of 16 bytes"
    )]
    FirstCoordinate { coordinate: i32, byte: i64 },
    #[error("coordinate {dimension} of the store is {coordinate}: expected one that is not negative")]
    Negative { dimension: usize, coordinate: i32 },
    #[error("shared memory address {0:#x} of the box: expected a multiple of 128")]
    SharedAddress(u32),
    #[error("{operation} of {element} elements: expected {expected}")]
    Reduction { operation: &'static str, element: String, expected: &'static str },
    #[error("the emulator does not copy {0} yet")]
    Unsupported(String),
}

/// The type of an element; `tensormap.replace` numbers them so (PTX ISA, "tensormap.replace", `.elemtype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F32Flush,
    F64,
    Bf16,
    Tf32,
    Tf32Flush,
}

#[rustfmt::skip] // One row per line.
const ELEMENT_TYPES: [(ElementType, &str, Type); 13] = [
    (ElementType::U8,        ".u8",       Type::U8),
    (ElementType::U16,       ".u16",      Type::U16),
    (ElementType::U32,       ".u32",      Type::U32),
    (ElementType::S32,       ".s32",      Type::S32),
    (ElementType::U64,       ".u64",      Type::U64),
    (ElementType::S64,       ".s64",      Type::S64),
    (ElementType::F16,       ".f16",      Type::F16),
    (ElementType::F32,       ".f32",      Type::F32),
    (ElementType::F32Flush,  ".f32.ftz",  Type::F32),
    (ElementType::F64,       ".f64",      Type::F64),
    (ElementType::Bf16,      ".bf16",     Type::Bf16),
    (ElementType::Tf32,      ".tf32",     Type::Tf32),
    (ElementType::Tf32Flush, ".tf32.ftz", Type::Tf32),
];

impl ElementType {
    pub fn bytes(self) -> u64 {
        self.ty().bytes().into()
    }

    /// The type that an instruction names.
    pub fn ty(self) -> Type {
        ELEMENT_TYPES[self as usize].2
    }

    pub fn is_float(self) -> bool {
        self as usize >= ElementType::F16 as usize
    }

    /// Whether a load changes the bits: to tf32, or subnormals to zero.
    pub fn converts(self) -> bool {
        matches!(self, ElementType::F32Flush | ElementType::Tf32 | ElementType::Tf32Flush)
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(ELEMENT_TYPES[*self as usize].1)
    }
}

impl From<Element> for ElementType {
    /// Types that the copy engine does not know travel as unsigned integers of their size.
    fn from(element: Element) -> ElementType {
        match element {
            Element::U8 | Element::S8 | Element::E4m3 | Element::E5m2 => ElementType::U8,
            Element::U16 | Element::S16 => ElementType::U16,
            Element::U32 => ElementType::U32,
            Element::S32 => ElementType::S32,
            Element::U64 => ElementType::U64,
            Element::S64 => ElementType::S64,
            Element::F16 => ElementType::F16,
            Element::Bf16 => ElementType::Bf16,
            Element::F32 => ElementType::F32,
            Element::F64 => ElementType::F64,
        }
    }
}

/// A field that `tensormap.replace` writes; the number is the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Address,
    /// Holds one less than the rank.
    Rank,
    BoxSize(usize),
    Size(usize),
    /// In bytes; number 0 is the stride of dimension 1.
    Stride(usize),
    ElementStride(usize),
    Element,
    Interleave,
    Swizzle,
    Fill,
}

impl Field {
    /// Where its bytes are. Dimensions beyond the object's have none.
    fn place(self) -> Option<Range<usize>> {
        let array = |start: usize, count: usize, bytes: usize, dimension: usize| {
            (dimension < count).then(|| start + dimension * bytes..start + (dimension + 1) * bytes)
        };
        match self {
            Field::Address => Some(ADDRESS..ADDRESS + 8),
            Field::Stride(dimension) => array(STRIDES, MAX_RANK - 1, 8, dimension),
            Field::Size(dimension) => array(SIZES, MAX_RANK, 8, dimension),
            Field::BoxSize(dimension) => array(BOX_SIZES, MAX_RANK, 4, dimension),
            Field::ElementStride(dimension) => array(ELEMENT_STRIDES, MAX_RANK, 4, dimension),
            Field::Rank => Some(RANK..RANK + 1),
            Field::Element => Some(ELEMENT..ELEMENT + 1),
            Field::Interleave => Some(INTERLEAVE..INTERLEAVE + 1),
            Field::Swizzle => Some(SWIZZLE..SWIZZLE + 1),
            Field::Fill => Some(FILL..FILL + 1),
        }
    }
}

/// `tensormap.replace`: writes one field. A value too large for its field stays too large, for `decode` to find.
pub fn replace(object: &mut [u8; BYTES], field: Field, value: u64) {
    let Some(place) = field.place() else { return };
    let largest = u64::MAX >> (64 - 8 * place.len());
    let count = place.len();
    object[place].copy_from_slice(&value.min(largest).to_le_bytes()[..count]);
}

fn read(object: &[u8; BYTES], field: Field) -> u64 {
    let mut bytes = [0; 8];
    if let Some(place) = field.place() {
        bytes[..place.len()].copy_from_slice(&object[place]);
    }
    u64::from_le_bytes(bytes)
}

/// A tensor map that a copy can use. Dimensions run from the fastest to the slowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Of the first element.
    pub address: u64,
    pub element: ElementType,
    /// Elements in each dimension.
    pub sizes: Vec<u64>,
    /// Bytes from one index to the next, for every dimension but the first.
    pub strides: Vec<u64>,
    /// Elements that the box spans in each dimension.
    pub box_sizes: Vec<u32>,
    /// Steps between the elements that are taken.
    pub element_strides: Vec<u32>,
    pub interleave: Interleave,
    pub swizzle: Swizzle,
    pub fill: OutOfBounds,
}

const INTERLEAVES: [Interleave; 3] = [Interleave::None, Interleave::B16, Interleave::B32];
const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];
const FILLS: [OutOfBounds; 2] = [OutOfBounds::Zero, OutOfBounds::Nan];

impl TensorMap {
    /// The map that a recipe describes.
    pub fn of_recipe(map: &ResolvedMap, element: Element, address: u64) -> TensorMap {
        TensorMap {
            address,
            element: element.into(),
            sizes: map.dims.clone(),
            strides: map.strides.clone(),
            box_sizes: map.box_dims.clone(),
            element_strides: map.element_strides.clone(),
            interleave: map.interleave,
            swizzle: map.swizzle,
            fill: map.oob,
        }
    }

    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    pub fn encode(&self) -> [u8; BYTES] {
        let mut object = [0; BYTES];
        let mut put = |field, value: u64| replace(&mut object, field, value);
        put(Field::Address, self.address);
        put(Field::Rank, (self.rank() as u64).wrapping_sub(1));
        put(Field::Element, self.element as u64);
        put(Field::Interleave, self.interleave as u64);
        put(Field::Swizzle, self.swizzle as u64);
        put(Field::Fill, self.fill as u64);
        self.sizes.iter().enumerate().for_each(|(at, size)| put(Field::Size(at), *size));
        self.strides.iter().enumerate().for_each(|(at, stride)| put(Field::Stride(at), *stride));
        self.box_sizes.iter().enumerate().for_each(|(at, size)| put(Field::BoxSize(at), (*size).into()));
        self.element_strides.iter().enumerate().for_each(|(at, step)| put(Field::ElementStride(at), (*step).into()));
        object
    }

    /// The map that the bytes describe, if cuTensorMapEncodeTiled would make it.
    pub fn decode(object: &[u8; BYTES]) -> Result<TensorMap, Fault> {
        let stored = read(object, Field::Rank);
        let rank = stored as usize + 1;
        if rank > MAX_RANK {
            return Err(Fault::Rank(stored));
        }
        let all = |field: fn(usize) -> Field, count: usize| (0..count).map(move |at| read(object, field(at)));
        let element = read(object, Field::Element);
        let map = TensorMap {
            address: read(object, Field::Address),
            element: ELEMENT_TYPES.get(element as usize).ok_or(Fault::Element(element))?.0,
            sizes: all(Field::Size, rank).collect(),
            strides: all(Field::Stride, rank - 1).collect(),
            box_sizes: all(Field::BoxSize, rank).map(|size| size as u32).collect(),
            element_strides: all(Field::ElementStride, rank).map(|step| step as u32).collect(),
            interleave: choice("interleave", &INTERLEAVES, read(object, Field::Interleave))?,
            swizzle: choice("swizzle", &SWIZZLES, read(object, Field::Swizzle))?,
            fill: choice("fill", &FILLS, read(object, Field::Fill))?,
        };
        map.check().map(|()| map)
    }

    /// CUDA driver API, cuTensorMapEncodeTiled: the bounds of its arguments.
    pub fn check(&self) -> Result<(), Fault> {
        if !self.address.is_multiple_of(16) {
            return Err(Fault::Address(self.address));
        }
        let wrong = |stride: &u64| !stride.is_multiple_of(16) || *stride >= 1 << 40;
        if let Some(at) = self.strides.iter().position(wrong) {
            return Err(Fault::Stride { dimension: at + 1, found: self.strides[at] });
        }
        within("size", self.sizes.iter().copied(), 1 << 32)?;
        within("box size", self.box_sizes.iter().copied().map(u64::from), 256)?;
        within("element stride", self.element_strides.iter().copied().map(u64::from), 8)?;
        match self.fill {
            OutOfBounds::Nan if !self.element.is_float() => Err(Fault::FillElement(self.element)),
            _ => self.check_row(),
        }
    }

    fn check_row(&self) -> Result<(), Fault> {
        let found = self.row_bytes();
        if self.interleave == Interleave::None && !found.is_multiple_of(16) {
            return Err(Fault::InnerBytes(found));
        }
        match self.span() {
            Some(span) if found > span => Err(Fault::SwizzleSpan { found, span, swizzle: self.swizzle }),
            _ => Ok(()),
        }
    }

    /// Bytes of the box along the first dimension.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.box_sizes[0]) * self.element.bytes()
    }

    /// The bytes inside which the swizzle permutes chunks.
    pub fn span(&self) -> Option<u64> {
        match self.swizzle {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B128 => Some(128),
        }
    }
}

fn choice<T: Copy>(field: &'static str, choices: &[T], found: u64) -> Result<T, Fault> {
    choices.get(found as usize).copied().ok_or(Fault::Choice { field, found, most: choices.len() as u64 - 1 })
}

fn within(field: &'static str, mut values: impl Iterator<Item = u64> + Clone, most: u64) -> Result<(), Fault> {
    let all = values.clone();
    let Some(dimension) = values.position(|value| !(1..=most).contains(&value)) else { return Ok(()) };
    let found = all.clone().nth(dimension).unwrap_or(0);
    Err(Fault::Bounds { field, dimension, found, least: 1, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile() -> TensorMap {
        TensorMap {
            address: 0x7f00_0000_1200,
            element: ElementType::Bf16,
            sizes: vec![192, 128],
            strides: vec![384],
            box_sizes: vec![64, 128],
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle: Swizzle::B128,
            fill: OutOfBounds::Zero,
        }
    }

    /// What Triton emits for a descriptor that it makes on the device, from zeroed shared memory.
    #[test]
    fn fields_written_one_by_one_make_the_map() {
        let mut object = [0; BYTES];
        let writes = [
            (Field::Address, 0x7f00_0000_1200),
            (Field::Rank, 1),
            (Field::BoxSize(0), 64),
            (Field::BoxSize(1), 128),
            (Field::Size(0), 192),
            (Field::Size(1), 128),
            (Field::Stride(0), 384),
            (Field::ElementStride(0), 1),
            (Field::ElementStride(1), 1),
            (Field::Element, 10),
            (Field::Interleave, 0),
            (Field::Swizzle, 3),
            (Field::Fill, 0),
        ];
        writes.into_iter().for_each(|(field, value)| replace(&mut object, field, value));
        assert_eq!(TensorMap::decode(&object), Ok(tile()));
        assert_eq!(object, tile().encode());
    }

    #[test]
    fn every_field_survives_in_five_dimensions() {
        let map = TensorMap {
            address: u64::MAX << 4,
            element: ElementType::F32,
            sizes: vec![1 << 32, 2, 3, 4, 5],
            strides: vec![16, 32, (1 << 40) - 16, 64],
            box_sizes: vec![4, 256, 1, 2, 3],
            element_strides: vec![8, 7, 6, 5, 4],
            interleave: Interleave::B32,
            swizzle: Swizzle::B32,
            fill: OutOfBounds::Nan,
        };
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
    }

    #[test]
    fn a_recipe_gives_its_map() {
        let resolved = ResolvedMap {
            buffer: 0,
            dims: vec![192, 128],
            strides: vec![384],
            box_dims: vec![64, 128],
            element_strides: vec![1, 1],
            swizzle: Swizzle::B128,
            interleave: Interleave::None,
            l2: launch::tensor_map::Promotion::B128,
            oob: OutOfBounds::Zero,
        };
        assert_eq!(TensorMap::of_recipe(&resolved, Element::Bf16, 0x7f00_0000_1200), tile());
    }

    #[test]
    fn a_wrong_field_is_named() {
        let fault = |field: Field, value: u64| {
            let mut object = tile().encode();
            replace(&mut object, field, value);
            TensorMap::decode(&object).unwrap_err().to_string()
        };
        let expected = [
            (Field::Rank, 5, "the rank field of the tensor map holds 5: expected 0 to 4, one less than the rank"),
            (Field::Rank, 257, "the rank field of the tensor map holds 255: expected 0 to 4, one less than the rank"),
            (Field::Element, 13, "the element type field of the tensor map holds 13: expected 0 to 12"),
            (Field::Swizzle, 4, "the swizzle field of the tensor map holds 4: expected 0 to 3"),
            (Field::Address, 8, "the global address of the tensor map is 0x8: expected a multiple of 16"),
            (Field::Size(1), 0, "size 1 of the tensor map is 0: expected 1 to 4294967296"),
            (Field::BoxSize(1), 257, "box size 1 of the tensor map is 257: expected 1 to 256"),
            (Field::ElementStride(0), 9, "element stride 0 of the tensor map is 9: expected 1 to 8"),
            (Field::Stride(0), 24, "stride 1 of the tensor map is 24 bytes: expected a multiple of 16 below 2^40"),
            (Field::BoxSize(0), 4, "a row of the box has 8 bytes: expected a multiple of 16"),
            (
                Field::BoxSize(0),
                72,
                "a row of the box has 144 bytes: expected at most 128, the span of the 128B swizzle",
            ),
        ];
        for (field, value, text) in expected {
            assert_eq!(fault(field, value), text);
        }
        let integers = TensorMap { element: ElementType::U16, fill: OutOfBounds::Nan, ..tile() };
        assert_eq!(TensorMap::decode(&integers.encode()), Err(Fault::FillElement(ElementType::U16)));
    }

    #[test]
    fn zeroed_memory_is_no_map() {
        assert!(matches!(TensorMap::decode(&[0; BYTES]), Err(Fault::Bounds { field: "size", dimension: 0, .. })));
    }
}
