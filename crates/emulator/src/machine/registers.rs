//! The registers of a warp: chunks of 32 words, one word per lane, and predicates, one bit per lane.

use super::Values;
use ptx::{RegisterId, Type};
use std::sync::Arc;

/// A word of every lane, aligned for the widest loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Chunk(pub [u32; 32]);

impl Chunk {
    pub const ZERO: Chunk = Chunk([0; 32]);
}

/// Where a register lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Up to 32 bits.
    Word(u32),
    /// 64 bits: the low words in this chunk, the high ones in the next.
    Wide(u32),
    /// Among the predicates.
    Predicate(u32),
}

/// What is fixed while a warp runs, and known when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// A special register.
    Special(&'static str),
    /// Up to four bytes of the block of parameters.
    Parameter { offset: u64, bytes: u32 },
}

/// Where the registers of all functions of a program lie, and the constants that its instructions name: those have
/// chunks, too, so that every operand is one.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    places: Vec<Place>,
    chunks: u32,
    predicates: u32,
    /// A chunk, and the word that all its lanes hold.
    constants: Vec<(u32, u32)>,
    /// A chunk, and what its lanes hold.
    fixed: Vec<(u32, Fixed)>,
}

impl Layout {
    /// The first of the chunks that hold these, one behind the other.
    pub fn fixed(&mut self, values: &[Fixed]) -> u32 {
        let same = |known: &[(u32, Fixed)]| known.iter().map(|(_, value)| value).eq(values);
        if let Some(known) = self.fixed.windows(values.len().max(1)).find(|known| same(known)) {
            return known[0].0;
        }
        let first = self.chunks;
        for value in values {
            self.fixed.push((self.chunks, *value));
            self.chunks += 1;
        }
        first
    }

    /// Chunks that somebody must fill before a warp runs.
    pub fn to_fill(&self) -> &[(u32, Fixed)] {
        &self.fixed
    }

    /// Adds a register behind the others.
    pub fn push(&mut self, ty: Type) {
        let place = match ty.bits() {
            1 => Place::Predicate(self.predicates),
            64.. => Place::Wide(self.chunks),
            _ => Place::Word(self.chunks),
        };
        match place {
            Place::Predicate(_) => self.predicates += 1,
            Place::Wide(_) => self.chunks += 2,
            Place::Word(_) => self.chunks += 1,
        }
        self.places.push(place);
    }

    pub fn place(&self, register: RegisterId) -> Place {
        self.places[register.0 as usize]
    }

    /// The chunk of a constant.
    pub fn constant(&mut self, value: u32) -> u32 {
        let known = self.constants.iter().find(|(_, known)| *known == value).map(|(chunk, _)| *chunk);
        known.unwrap_or_else(|| self.add_constant(value))
    }

    /// The first of the two chunks of a constant of 64 bits.
    pub fn wide_constant(&mut self, value: u64) -> u32 {
        let (low, high) = (value as u32, (value >> 32) as u32);
        let known = self.constants.windows(2).find(|pair| {
            let [first, second] = [pair[0], pair[1]];
            (first.1, second) == (low, (first.0 + 1, high))
        });
        match known.map(|pair| pair[0].0) {
            Some(chunk) => chunk,
            None => {
                let chunk = self.add_constant(low);
                self.add_constant(high);
                chunk
            }
        }
    }

    fn add_constant(&mut self, value: u32) -> u32 {
        self.constants.push((self.chunks, value));
        self.chunks += 1;
        self.chunks - 1
    }

    /// Chunks and predicates of a register file. One chunk more than there are registers: whoever reads a pair may begin
    /// at the last.
    pub fn sizes(&self) -> (usize, usize) {
        (self.chunks as usize + 1, self.predicates as usize)
    }
}

/// The register file of one warp.
#[derive(Clone, Debug)]
pub struct Registers {
    pub chunks: Vec<Chunk>,
    pub predicates: Vec<u32>,
    layout: Arc<Layout>,
}

impl Registers {
    pub fn new(layout: &Arc<Layout>) -> Registers {
        let (chunks, predicates) = layout.sizes();
        let mut chunks = vec![Chunk::ZERO; chunks];
        for (chunk, value) in &layout.constants {
            chunks[*chunk as usize] = Chunk([*value; 32]);
        }
        Registers { chunks, predicates: vec![0; predicates], layout: layout.clone() }
    }

    pub fn read(&self, register: RegisterId) -> Values {
        match self.layout.place(register) {
            Place::Word(chunk) => self.chunks[chunk as usize].0.map(u64::from),
            Place::Wide(chunk) => {
                let [low, high] = [chunk, chunk + 1].map(|chunk| &self.chunks[chunk as usize].0);
                std::array::from_fn(|lane| u64::from(high[lane]) << 32 | u64::from(low[lane]))
            }
            Place::Predicate(index) => bits_to_values(self.predicates[index as usize]),
        }
    }

    /// The low 32 bits of every lane.
    pub fn words(&self, register: RegisterId) -> [u32; 32] {
        match self.layout.place(register) {
            Place::Word(chunk) | Place::Wide(chunk) => self.chunks[chunk as usize].0,
            Place::Predicate(index) => bits_to_values(self.predicates[index as usize]).map(|bit| bit as u32),
        }
    }

    /// The same as [`Registers::write`], of values of 32 bits.
    pub fn write_words(&mut self, register: RegisterId, mask: u32, words: &[u32; 32]) {
        match self.layout.place(register) {
            Place::Word(chunk) if mask == u32::MAX => self.chunks[chunk as usize].0 = *words,
            Place::Word(chunk) => self.write_chunk(chunk, mask, |lane| words[lane]),
            Place::Wide(_) | Place::Predicate(_) => self.write(register, mask, &words.map(u64::from)),
        }
    }

    /// Writes the lanes of `mask`; a register takes as many bits as it has.
    pub fn write(&mut self, register: RegisterId, mask: u32, values: &Values) {
        match self.layout.place(register) {
            Place::Word(chunk) => self.write_chunk(chunk, mask, |lane| values[lane] as u32),
            Place::Wide(chunk) => {
                self.write_chunk(chunk, mask, |lane| values[lane] as u32);
                self.write_chunk(chunk + 1, mask, |lane| (values[lane] >> 32) as u32);
            }
            Place::Predicate(index) => {
                let bits = (0..32).fold(0, |bits, lane| bits | (values[lane] as u32 & 1) << lane);
                let predicate = &mut self.predicates[index as usize];
                *predicate = *predicate & !mask | bits & mask;
            }
        }
    }

    fn write_chunk(&mut self, chunk: u32, mask: u32, value: impl Fn(usize) -> u32) {
        let words = &mut self.chunks[chunk as usize].0;
        for (lane, word) in words.iter_mut().enumerate() {
            *word = if mask >> lane & 1 == 1 { value(lane) } else { *word };
        }
    }

    /// The lanes whose predicate holds.
    pub fn predicate(&self, register: RegisterId) -> u32 {
        match self.layout.place(register) {
            Place::Predicate(index) => self.predicates[index as usize],
            Place::Word(_) | Place::Wide(_) => {
                let values = self.read(register);
                (0..32).fold(0, |bits, lane| bits | (values[lane] as u32 & 1) << lane)
            }
        }
    }
}

/// One for each lane of the mask, zero for the others.
pub fn bits_to_values(mask: u32) -> Values {
    std::array::from_fn(|lane| u64::from(mask >> lane & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_of_every_width_keep_what_fits() {
        let mut layout = Layout::default();
        [Type::B32, Type::Pred, Type::B64, Type::B16].into_iter().for_each(|ty| layout.push(ty));
        let constant = layout.constant(7);
        assert_eq!(constant, layout.constant(7));
        let mut registers = Registers::new(&Arc::new(layout));
        let value = 0x1234_5678_9abc_def1;
        for register in 0..4 {
            registers.write(RegisterId(register), 0b101, &[value; 32]);
        }
        let read = |register| registers.read(RegisterId(register))[..3].to_vec();
        assert_eq!(read(0), [0x9abc_def1, 0, 0x9abc_def1]);
        assert_eq!(read(1), [1, 0, 1]);
        assert_eq!(read(2), [value, 0, value]);
        assert_eq!(registers.predicate(RegisterId(1)), 0b101);
        assert_eq!(registers.chunks[constant as usize], Chunk([7; 32]));
    }
}
