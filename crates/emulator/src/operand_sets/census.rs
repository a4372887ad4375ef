//! Looks at each instruction of a run before and after it is executed.

use super::OperandSets;
use super::inputs::{Inputs, Length, Place, Value};
use super::special::Special;
use crate::exec::{Access, Accessed, Action, At, Multiply, Request};
use crate::machine::{Cluster, Source, State, Values, lanes, truncate};
use happens_before::Kind;
use ptx::{Op, Type};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Warps of a warpgroup.
const WARPS: usize = 4;
/// Rows of a product that each of them has.
const ROWS: usize = 16;

/// What the instructions of one launch are fed.
pub struct Census {
    /// By step.
    inputs: Vec<Option<Inputs>>,
    sets: Mutex<OperandSets>,
}

/// What the lanes at an instruction read.
pub struct Reading {
    op: Op,
    hashers: Vec<(usize, DefaultHasher)>,
    specials: Vec<(Type, Special)>,
}

impl Census {
    /// Goes on counting where `sets` ends.
    pub fn new(inputs: Vec<Option<Inputs>>, sets: OperandSets) -> Census {
        Census { inputs, sets: Mutex::new(sets) }
    }

    pub fn into_sets(self) -> OperandSets {
        self.sets.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the lanes are about to read; nothing where no lane executes.
    pub fn fed(&self, cluster: &Cluster, at: At, action: &Action) -> Option<Reading> {
        let inputs = self.inputs.get(at.statement as usize)?.as_ref().filter(|_| at.mask != 0)?;
        let hashers = lanes(at.mask).map(|lane| (lane, DefaultHasher::new())).collect();
        let mut reading = Reading { op: inputs.op, hashers, specials: vec![] };
        inputs.values.iter().for_each(|value| reading.add_value(cluster, at.warp, value));
        inputs.places.iter().for_each(|place| reading.add_place(cluster, at.warp, place));
        if let Action::Wgmma(Request::Multiply(multiply)) = action {
            reading.add_product(cluster, at.warp, multiply, &inputs.types);
        }
        Some(reading)
    }

    /// Counts what was read, when the instruction has been executed.
    pub fn count(&self, cluster: &Cluster, at: At, mut reading: Reading) {
        let Some(inputs) = self.inputs.get(at.statement as usize).and_then(Option::as_ref) else { return };
        let gathers =
            |(_, next, state): (u32, u32, State)| next == at.statement && matches!(state, State::Gathering(_));
        if !inputs.loaded.is_empty() && cluster.whereabouts(at.warp).any(gathers) {
            return; // Some lanes have not come yet.
        }
        let loaded = inputs.loaded.iter().map(|register| cluster.warps[at.warp].register(*register));
        loaded.for_each(|values| reading.hash(&values));
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        reading.specials.iter().for_each(|(ty, special)| sets.add_special(reading.op, *ty, *special));
        reading.hashers.iter().for_each(|(_, hasher)| sets.add(reading.op, hasher.finish()));
    }
}

impl Reading {
    fn hash(&mut self, values: &Values) {
        self.hashers.iter_mut().for_each(|(lane, hasher)| values[*lane].hash(hasher));
    }

    fn add_value(&mut self, cluster: &Cluster, warp: usize, value: &Value) {
        let values = cluster.read(warp, value.source).map(|bits| truncate(bits, value.bits));
        self.hash(&values);
        let bytes = value.bits.div_ceil(8) as usize;
        let lanes: Vec<usize> = self.hashers.iter().map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.see(value.element, &values[lane].to_le_bytes()[..bytes]));
    }

    /// Where an address leads to, and the bytes or the barrier there.
    fn add_place(&mut self, cluster: &Cluster, warp: usize, place: &Place) {
        let addresses = cluster.addresses(warp, &place.address);
        let lengths = match place.bytes {
            Length::Fixed(bytes) => [bytes; 32],
            Length::Of(source) => cluster.read(warp, source),
        };
        let mut hashers = std::mem::take(&mut self.hashers);
        for (lane, hasher) in &mut hashers {
            let access = Access { space: place.space, kind: Kind::Read, bytes: (lengths[*lane] as u32).max(1) };
            let accessed = cluster.locate((warp, *lane), &access, addresses[*lane]);
            match accessed {
                // The same offset is the same address in every thread.
                Accessed::Local { offset, .. } => offset.hash(hasher),
                Accessed::Shared { block, offset } => {
                    cluster.mbarriers.get(&(block, offset)).hash(hasher);
                    accessed.hash(hasher);
                }
                _ => accessed.hash(hasher),
            }
            let mut bytes = vec![0; if accessed == Accessed::Nothing { 0 } else { lengths[*lane] as usize }];
            cluster.fetch_all(accessed, 0, &mut bytes);
            bytes.hash(hasher);
            self.see(place.element, &bytes);
        }
        self.hashers = hashers;
    }

    /// The rows of A and the columns of B that each lane multiplies, and its accumulators where they are read.
    fn add_product(&mut self, cluster: &Cluster, warp: usize, multiply: &Multiply, types: &[Type]) {
        let quarter = cluster.warp_in_block(warp) % WARPS;
        let read = |source: Source| cluster.read(warp, source);
        let (Ok(issued), &[d, a, b]) = (multiply.issue(quarter, read), types) else { return };
        let elements = multiply.elements(&issued, cluster.home(warp).shared.bytes.data(), read);
        let depth = elements[0].len() / ROWS;
        for (lane, hasher) in &mut self.hashers {
            let columns = (0..elements[1].len() / depth.max(1)).filter(|column| column % 8 / 2 == *lane % 4);
            [*lane / 4, *lane / 4 + 8].iter().for_each(|row| elements[0][row * depth..][..depth].hash(hasher));
            columns.for_each(|column| elements[1][column * depth..][..depth].hash(hasher));
        }
        for (matrix, ty) in elements.iter().zip([a, b]) {
            matrix.iter().for_each(|element| self.see(ty, &element.to_le_bytes()[..ty.bytes() as usize]));
        }
        for register in multiply.destinations().iter().flatten().filter(|_| issued.accumulates()) {
            let values = cluster.warps[warp].register(*register);
            self.hash(&values);
            values.iter().for_each(|value| self.see(d, &value.to_le_bytes()[..4]));
        }
    }

    /// Notes the special numbers among elements of a type.
    fn see(&mut self, ty: Type, bytes: &[u8]) {
        for element in bytes.chunks_exact(ty.bytes() as usize) {
            let bits = element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            let special = Special::of(ty, bits).map(|special| (ty, special));
            self.specials.extend(special.filter(|special| !self.specials.contains(special)));
        }
    }
}
