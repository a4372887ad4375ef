//! Tensor maps, as the driver encodes them for the GPU.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};
use launch::Element;
use launch::resolved::{Buffer, MAP_BYTES};
use launch::tensor_map::{Interleave, OutOfBounds, Promotion, ResolvedMap, Swizzle};

use crate::driver::check;
use crate::error::Error;

/// A tensor of four dimensions, the fastest first, and the box of it that one copy moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiled {
    pub element: Element,
    pub address: u64,
    /// Elements in each dimension.
    pub dims: [u64; 4],
    /// Bytes from one index to the next, for every dimension but the first.
    pub strides: [u64; 3],
    pub box_dims: [u32; 4],
    /// How the copy permutes 16-byte chunks in shared memory.
    pub swizzle: Swizzle,
    /// How much the second-level cache fetches.
    pub l2: Promotion,
}

/// Places for maps that were encoded: four for each of 64 layers. Who has more tensors encodes some again.
const SLOTS: usize = 256;

/// Maps that the driver has encoded, each in the place that its tensor has; another tensor may take the place over. A map says where
/// its tensor lies and nothing of who owns the memory, so that it stays right for ever.
#[derive(Debug)]
pub struct TensorMaps(Mutex<Box<[Option<Encoded>]>>);

type Encoded = (Tiled, [u8; MAP_BYTES]);

impl Default for TensorMaps {
    fn default() -> TensorMaps {
        TensorMaps(Mutex::new(vec![None; SLOTS].into()))
    }
}

impl TensorMaps {
    /// The map of a tensor. Asks the driver, and allocates, only for tensors that it does not have.
    pub fn get(&self, tiled: &Tiled) -> Result<[u8; MAP_BYTES], Error> {
        self.get_or(tiled, Tiled::encode)
    }

    fn get_or(
        &self,
        tiled: &Tiled,
        encode: impl FnOnce(&Tiled) -> Result<[u8; MAP_BYTES], Error>,
    ) -> Result<[u8; MAP_BYTES], Error> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut slots[tiled.slot()];
        match slot {
            Some((of, bytes)) if of == tiled => Ok(*bytes),
            _ => Ok(slot.insert((*tiled, encode(tiled)?)).1),
        }
    }
}

impl Tiled {
    /// Tensors lie at different places, or have different shapes there.
    fn slot(&self) -> usize {
        let parts = [self.address, self.dims[1], self.strides[0], self.box_dims[1].into()];
        // 2⁶⁴ divided by the golden ratio: multiples of it spread evenly (Knuth, volume 3, 6.4).
        let mix = |sum: u64, part: u64| (sum.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (parts.into_iter().fold(0, mix) >> (u64::BITS - SLOTS.ilog2())) as usize
    }

    fn encode(&self) -> Result<[u8; MAP_BYTES], Error> {
        let map = ResolvedMap {
            buffer: 0,
            dims: self.dims.into(),
            strides: self.strides.into(),
            box_dims: self.box_dims.into(),
            element_strides: vec![1; self.dims.len()],
            swizzle: self.swizzle,
            interleave: Interleave::None,
            l2: self.l2,
            oob: OutOfBounds::Zero,
        };
        encode_at(&map, "a tensor", self.element, self.address)
    }
}

/// The map of a buffer that lies at `address`.
pub fn encode(map: &ResolvedMap, buffer: &Buffer, address: u64) -> Result<[u8; MAP_BYTES], Error> {
    encode_at(map, &buffer.name, buffer.element, address)
}

fn encode_at(map: &ResolvedMap, name: &str, element: Element, address: u64) -> Result<[u8; MAP_BYTES], Error> {
    let mut object = CUtensorMap { opaque: [0; 16] };
    // SAFETY: every array has as many entries as the rank says, strides one less, which is what the driver reads; the
    // object has the size and the alignment that it writes. The address is only stored.
    let status = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut object,
            data_type(element),
            map.dims.len() as u32,
            ptr::without_provenance_mut(address as usize),
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            map.box_dims.as_ptr(),
            map.element_strides.as_ptr(),
            interleave(map.interleave),
            swizzle(map.swizzle),
            promotion(map.l2),
            fill(map.oob),
        )
    };
    check("cuTensorMapEncodeTiled", status).map_err(|error| refused(error, map, name, element, address))?;
    Ok(bytes(&object))
}

fn bytes(object: &CUtensorMap) -> [u8; MAP_BYTES] {
    let mut bytes = [0; MAP_BYTES];
    for (part, word) in bytes.chunks_exact_mut(8).zip(object.opaque) {
        part.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Types that the driver does not know travel as unsigned integers of their size.
fn data_type(element: Element) -> CUtensorMapDataType {
    use CUtensorMapDataType::*;
    match element {
        Element::U8 | Element::S8 | Element::E4m3 | Element::E5m2 => CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Element::U16 | Element::S16 => CU_TENSOR_MAP_DATA_TYPE_UINT16,
        Element::U32 => CU_TENSOR_MAP_DATA_TYPE_UINT32,
        Element::S32 => CU_TENSOR_MAP_DATA_TYPE_INT32,
        Element::U64 => CU_TENSOR_MAP_DATA_TYPE_UINT64,
        Element::S64 => CU_TENSOR_MAP_DATA_TYPE_INT64,
        Element::F16 => CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        Element::Bf16 => CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        Element::F32 => CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        Element::F64 => CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

fn interleave(interleave: Interleave) -> CUtensorMapInterleave {
    match interleave {
        Interleave::None => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        Interleave::B16 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_16B,
        Interleave::B32 => CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_32B,
    }
}

fn swizzle(swizzle: Swizzle) -> CUtensorMapSwizzle {
    match swizzle {
        Swizzle::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::B32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::B64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::B128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

fn promotion(promotion: Promotion) -> CUtensorMapL2promotion {
    match promotion {
        Promotion::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
        Promotion::B64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        Promotion::B128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        Promotion::B256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    }
}

fn fill(fill: OutOfBounds) -> CUtensorMapFloatOOBfill {
    match fill {
        OutOfBounds::Zero => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        OutOfBounds::Nan => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    }
}

/// The driver says "invalid argument" alone; this says which.
fn refused(error: Error, map: &ResolvedMap, buffer: &str, element: Element, address: u64) -> Error {
    let Error::Driver { name, text, .. } = error else { return error };
    let mut why = faults(map, element, address).join("; ");
    if why.is_empty() {
        why = "it wants base and strides that are multiples of 16, boxes of at most 256 elements a side, rows of a \
               multiple of 16 bytes, and a GPU of sm_90 or newer"
            .into();
    }
    Error::TensorMap { buffer: buffer.into(), name, text, why }
}

/// What cuTensorMapEncodeTiled wants (CUDA driver API, "Tensor Map Object Management") and does not get.
fn faults(map: &ResolvedMap, element: Element, address: u64) -> Vec<String> {
    let mut faults = Vec::new();
    let alignment = if map.interleave == Interleave::B32 { 32 } else { 16 };
    if !address.is_multiple_of(alignment) {
        faults.push(format!("the buffer lies at {address:#x}: expected a multiple of {alignment}"));
    }
    for (index, stride) in map.strides.iter().enumerate().filter(|(_, stride)| !stride.is_multiple_of(alignment)) {
        faults.push(format!("strides[{index}] is {stride} bytes: expected a multiple of {alignment}"));
    }
    for (index, size) in map.box_dims.iter().enumerate().filter(|(_, size)| !(1..=256).contains(*size)) {
        faults.push(format!("box[{index}] is {size}: expected 1 to 256"));
    }
    faults.extend(row_fault(map, element));
    if map.interleave != Interleave::None && map.dims.len() < 3 {
        faults.push(format!("an interleaved map has {} dimensions: expected 3 to 5", map.dims.len()));
    }
    if map.oob == OutOfBounds::Nan && !element.is_float() {
        faults.push(format!("NaN fill of {element} elements: expected a floating-point type"));
    }
    faults
}

fn row_fault(map: &ResolvedMap, element: Element) -> Option<String> {
    let row = map.box_dims.first()?.checked_mul(element.bytes() as u32)?;
    let span = match (map.interleave, map.swizzle) {
        (Interleave::None, Swizzle::B32) => 32,
        (Interleave::None, Swizzle::B64) => 64,
        (Interleave::None, Swizzle::B128) => 128,
        _ => u32::MAX,
    };
    if map.interleave == Interleave::None && !row.is_multiple_of(16) {
        return Some(format!("a row of the box has {row} bytes: expected a multiple of 16"));
    }
    (row > span).then(|| format!("a row of the box has {row} bytes: the {} swizzle takes {span}", map.swizzle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ResolvedMap {
        ResolvedMap {
            buffer: 0,
            dims: vec![128, 256],
            strides: vec![256],
            box_dims: vec![64, 64],
            element_strides: vec![1, 1],
            swizzle: Swizzle::B128,
            interleave: Interleave::None,
            l2: Promotion::B128,
            oob: OutOfBounds::Zero,
        }
    }

    fn tiled(address: u64) -> Tiled {
        Tiled {
            element: Element::F16,
            address,
            dims: [64, 512, 8, 2],
            strides: [128, 65536, 524288],
            box_dims: [64, 128, 1, 1],
            swizzle: Swizzle::B128,
            l2: Promotion::B256,
        }
    }

    /// Whatever was asked before, a tensor gets its own map.
    #[test]
    fn maps_are_encoded_once_and_never_mixed_up() {
        let maps = TensorMaps::default();
        let encoded = |tiled: &Tiled| {
            let mut asked = false;
            let bytes = maps.get_or(tiled, |tiled| {
                asked = true;
                let mut bytes = [0; MAP_BYTES];
                bytes[..8].copy_from_slice(&tiled.address.to_le_bytes());
                bytes[8..16].copy_from_slice(&tiled.dims[3].to_le_bytes());
                Ok(bytes)
            });
            let bytes = bytes.unwrap();
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            assert_eq!((word(0), word(8)), (tiled.address, tiled.dims[3]));
            asked
        };
        let few: Vec<Tiled> = (0..8).map(|number| tiled(0x7f00_0000_0000 + 0x10_0000 * number)).collect();
        assert_eq!(few.iter().filter(|tiled| encoded(tiled)).count(), 8);
        assert_eq!(few.iter().filter(|tiled| encoded(tiled)).count(), 0, "eight tensors have places of their own");
        assert!(encoded(&Tiled { dims: [64, 512, 8, 3], ..few[0] }), "the same place, another shape");
        (0..10_000).map(|number| tiled(0x10 * number)).for_each(|tiled| _ = encoded(&tiled));
    }

    #[test]
    fn what_could_not_be_encoded_is_not_kept() {
        let maps = TensorMaps::default();
        assert!(maps.get_or(&tiled(16), |_| Err(Error::NoGpu)).is_err());
        assert_eq!(maps.get_or(&tiled(16), |_| Ok([7; MAP_BYTES])).unwrap(), [7; MAP_BYTES]);
    }

    /// CUDA driver API, cuda.h: the numbers that the driver stores in the map.
    #[test]
    fn choices_have_the_drivers_numbers() {
        let types = [Element::U8, Element::S32, Element::F16, Element::F32, Element::F64, Element::Bf16, Element::E4m3];
        assert_eq!(types.map(|element| data_type(element) as u32), [0, 3, 6, 7, 8, 9, 0]);
        let swizzles = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];
        assert_eq!(swizzles.map(|one| swizzle(one) as u32), [0, 1, 2, 3]);
        let interleaves = [Interleave::None, Interleave::B16, Interleave::B32];
        assert_eq!(interleaves.map(|one| interleave(one) as u32), [0, 1, 2]);
        let promotions = [Promotion::None, Promotion::B64, Promotion::B128, Promotion::B256];
        assert_eq!(promotions.map(|one| promotion(one) as u32), [0, 1, 2, 3]);
        assert_eq!([OutOfBounds::Zero, OutOfBounds::Nan].map(|one| fill(one) as u32), [0, 1]);
    }

    #[test]
    fn the_object_keeps_the_order_of_its_bytes() {
        let mut object = CUtensorMap { opaque: [0; 16] };
        object.opaque[1] = u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
        let bytes = bytes(&object);
        assert_eq!(bytes[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((size_of_val(&object), align_of_val(&object)), (MAP_BYTES, 64));
    }

    #[test]
    fn what_the_driver_wants_is_named() {
        let faults = |map: ResolvedMap, element| faults(&map, element, 0x1000).join("; ");
        assert_eq!(faults(map(), Element::Bf16), "");
        assert_eq!(
            faults(ResolvedMap { strides: vec![24], ..map() }, Element::Bf16),
            "strides[0] is 24 bytes: expected a multiple of 16"
        );
        assert_eq!(
            faults(ResolvedMap { box_dims: vec![4, 300], ..map() }, Element::Bf16),
            "box[1] is 300: expected 1 to 256; a row of the box has 8 bytes: expected a multiple of 16"
        );
        assert_eq!(faults(map(), Element::F32), "a row of the box has 256 bytes: the 128B swizzle takes 128");
        assert_eq!(
            faults(ResolvedMap { interleave: Interleave::B32, oob: OutOfBounds::Nan, ..map() }, Element::U16),
            "an interleaved map has 2 dimensions: expected 3 to 5; \
             NaN fill of u16 elements: expected a floating-point type"
        );
        assert_eq!(
            super::faults(&map(), Element::Bf16, 0x1008),
            ["the buffer lies at 0x1008: expected a multiple of 16"]
        );
    }
}
