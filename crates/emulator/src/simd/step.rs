//! What kernels are made of: a function of every lane, of pairs of words, of predicates, and what needs more than that.

use super::code::{Code, Operation, combine};
use super::lanes::{File, blend};
use super::memory::View;
use super::vector::{exponentials, permute};
use super::words;

/// What operations work on.
pub struct Context<'a, 'm> {
    pub code: &'a Code,
    pub file: File<'a>,
    pub memory: &'a mut View<'m>,
}

/// An operation in the lanes of a mask. `CHECKED`: there may be a detector. Forms return false if the definition must do
/// it.
pub struct Step<'s, 'a, 'm, const LEVEL: u8, const CHECKED: bool> {
    pub context: &'s mut Context<'a, 'm>,
    pub operation: &'s Operation,
    pub mask: u32,
}

impl<const LEVEL: u8, const CHECKED: bool> Step<'_, '_, '_, LEVEL, CHECKED> {
    #[inline(always)]
    fn places(&self) -> [u32; 4] {
        let Operation { destination, a, b, c, .. } = *self.operation;
        [destination, a, b, c]
    }

    /// A function of words.
    #[inline(always)]
    pub fn map(&mut self, function: impl Fn(u32, u32, u32) -> u32) -> bool {
        self.context.file.map(self.places(), self.mask, function);
        true
    }

    /// One that may be in doubt.
    #[inline(always)]
    pub fn doubt(&mut self, function: impl Fn(u32, u32, u32) -> (u32, bool)) -> bool {
        self.context.file.try_map(self.places(), self.mask, function)
    }

    /// A function of 64 bits.
    #[inline(always)]
    pub fn wide(&mut self, function: impl Fn(u64, u64, u64) -> u64) -> bool {
        self.context.file.map_wide(self.places(), self.mask, function);
        true
    }

    /// The same in low and high words.
    #[inline(always)]
    pub fn pairs(&mut self, function: impl Fn([u32; 2], [u32; 2], [u32; 2]) -> [u32; 2]) -> bool {
        self.context.file.map_pairs(self.places(), self.mask, function);
        true
    }

    /// A comparison of words.
    #[inline(always)]
    pub fn holds(&mut self, function: impl Fn(u32, u32) -> bool) -> bool {
        let found = self.context.file.compare::<LEVEL>(self.operation.a, self.operation.b, function);
        self.set(found)
    }

    /// One of 64 bits.
    #[inline(always)]
    pub fn wide_holds(&mut self, function: impl Fn(u64, u64) -> bool) -> bool {
        let found = self.context.file.compare_wide(self.operation.a, self.operation.b, function);
        self.set(found)
    }

    /// Negates and combines what a comparison found, and writes it.
    #[inline(always)]
    fn set(&mut self, found: u32) -> bool {
        let (extra, file) = (self.operation.extra, &mut self.context.file);
        let found = found ^ (extra & combine::NEGATE).wrapping_neg();
        let other = file.predicate(self.operation.c) ^ ((extra / combine::NOT) & 1).wrapping_neg();
        let bits = match extra & combine::OPERATION {
            combine::AND => found & other,
            combine::OR => found | other,
            combine::XOR => found ^ other,
            _ => found,
        };
        file.set_predicate(self.operation.destination, self.mask, bits);
        true
    }

    /// A function of predicates, all lanes at once.
    #[inline(always)]
    pub fn predicates(&mut self, function: impl Fn(u32, u32) -> u32) -> bool {
        let (Operation { destination, a, b, .. }, file) = (*self.operation, &mut self.context.file);
        file.set_predicate(destination, self.mask, function(file.predicate(a), file.predicate(b)));
        true
    }

    /// A function that the compiler does not make vector instructions of: called for each lane that counts.
    #[inline(always)]
    pub fn each(&mut self, function: impl Fn(u32) -> u32) -> bool {
        self.each_pair(|a, _| function(a))
    }

    /// The same for two operands.
    #[inline(always)]
    pub fn each_pair(&mut self, function: impl Fn(u32, u32) -> u32) -> bool {
        let [destination, a, b, _] = self.places();
        let (left, right) = (*self.context.file.words(a), *self.context.file.words(b));
        let mut results = [[0; 16]; 2];
        for lane in 0..32 {
            if self.mask >> lane & 1 == 1 {
                results[lane / 16][lane % 16] = function(left[lane], right[lane]);
            }
        }
        self.context.file.write(destination, self.mask, &results);
        true
    }

    /// Whatever has no form.
    #[inline(always)]
    pub fn by(&mut self, function: impl FnOnce(&mut Self) -> bool) -> bool {
        function(self)
    }

    /// `selp` of the words `part` chunks further on.
    #[inline(always)]
    pub fn select(&mut self, part: u32) -> bool {
        let (Operation { destination, a, b, c, extra, .. }, file) = (*self.operation, &mut self.context.file);
        let chosen = file.predicate(c) ^ (extra & combine::NEGATE).wrapping_neg();
        let either = |half: usize| blend(chosen >> (16 * half), file.half(a + part, half), file.half(b + part, half));
        let words = [either(0), either(1)];
        file.write(destination + part, self.mask, &words);
        true
    }

    #[inline(always)]
    pub fn logic_of_three(&mut self) -> bool {
        let table = self.operation.extra;
        self.map(
            #[inline(always)]
            |a, b, c| words::logic_of_three(a, b, c, table),
        )
    }

    /// Takes a narrow value for a wider one, and that for a wider one yet.
    #[inline(always)]
    pub fn extend(&mut self) -> bool {
        let extra = self.operation.extra;
        let field = |shift: u32| extra >> shift & 31;
        let (signed_in, signed_out) = (extra >> 30 & 1 == 1, extra >> 31 == 1);
        self.map(
            #[inline(always)]
            |a, _, _| extend(extend(a, field(0), signed_in), field(5), signed_out) & u32::MAX >> field(10),
        )
    }

    #[inline(always)]
    pub fn exponentials<const FLUSH: bool>(&mut self) -> bool {
        let places = self.places();
        exponentials::<LEVEL, FLUSH>(&mut self.context.file, places, self.mask);
        true
    }

    /// Two words become a wide one.
    #[inline(always)]
    pub fn join(&mut self) -> bool {
        let [destination, a, b, _] = self.places();
        let (low, high) = (self.context.file.halves(a), self.context.file.halves(b));
        self.context.file.write(destination, self.mask, &low);
        self.context.file.write(destination + 1, self.mask, &high);
        true
    }

    /// A wide one becomes two words.
    #[inline(always)]
    pub fn split(&mut self) -> bool {
        let [destination, a, ..] = self.places();
        let (low, high) = (self.context.file.halves(a), self.context.file.halves(a + 1));
        self.context.file.write(destination, self.mask, &low);
        self.context.file.write(self.operation.extra, self.mask, &high);
        true
    }

    /// A word becomes two of half its bits.
    #[inline(always)]
    pub fn split_halves(&mut self) -> bool {
        let both = self.context.file.halves(self.operation.a);
        let (mut low, mut high) = ([[0; 16]; 2], [[0; 16]; 2]);
        for lane in 0..32 {
            let pair = both[lane / 16][lane % 16];
            (low[lane / 16][lane % 16], high[lane / 16][lane % 16]) = (pair & 0xffff, pair >> 16);
        }
        self.context.file.write(self.operation.destination, self.mask, &low);
        self.context.file.write(self.operation.extra, self.mask, &high);
        true
    }

    #[inline(always)]
    pub fn load(&mut self) -> bool {
        let Context { code, file, memory } = &mut *self.context;
        let traffic = &code.traffic()[self.operation.extra as usize];
        memory.load::<LEVEL, CHECKED>(file, traffic, self.operation.a, self.mask)
    }

    #[inline(always)]
    pub fn store(&mut self) -> bool {
        let Context { code, file, memory } = &mut *self.context;
        let traffic = &code.traffic()[self.operation.extra as usize];
        memory.store::<LEVEL, CHECKED>(file, traffic, self.operation.a, self.mask)
    }

    #[inline(always)]
    pub fn shuffle(&mut self) -> bool {
        // Lanes that are not here may come later.
        if self.mask != u32::MAX {
            return false;
        }
        let (Operation { destination, a, b, extra, .. }, file) = (*self.operation, &mut self.context.file);
        let permutation = &self.context.code.permutations()[extra as usize];
        let words = permute::<LEVEL>(file.words(a), &permutation.from);
        file.write(destination, self.mask, &words);
        if b != 0 {
            file.set_predicate(b - 1, self.mask, permutation.inside);
        }
        true
    }
}

/// All but the low `32 - unused` bits become copies of the sign, or zero.
#[inline(always)]
fn extend(value: u32, unused: u32, signed: bool) -> u32 {
    let top = value << unused;
    if signed { ((top as i32) >> unused) as u32 } else { top >> unused }
}
