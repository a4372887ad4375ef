//! Matrix products where a warp's registers hold them: the hot spot of the emulator.
//!
//! `mma.sync` and `wgmma` hold 16 rows of the accumulator in the same places: register `4 * j + 2 * h + p` has in lane
//! `4 * g + t` the element of row `8 * h + g` and column `8 * j + 2 * t + p`. Operands come as core matrices, 8 lines of 16
//! bytes: the registers of a fragment, or 16-byte rows of shared memory.
//!
//! ```
//! use emulator::numerics::fragment::{Multiplier, Precision};
//! use emulator::numerics::tensor_core::Rule;
//!
//! let ones = [0x3c00_3c00; 32]; // f16
//! let mut c = [[0; 32]; 4];
//! let mut multiplier = Multiplier::new(Precision::Exact);
//! multiplier.load_right(Rule::F16_K16.operand, 1, &[ones; 2]);
//! multiplier.load_left(Rule::F16_K16.operand, &[ones; 4]);
//! multiplier.multiply(&Rule::F16_K16, &mut c);
//! assert_eq!(c, [[16f32.to_bits(); 32]; 4]);
//! ```

use super::format::{Class, Element, Format};
use super::tensor_core::Rule;
use crate::simd::tensor::{Left, Parameters, Right, elements};
pub use crate::simd::tensor::{Level, Register};
pub use launch::backend::Precision;
use std::cell::RefCell;

/// Decoded operands, kept so that one B serves many A, and the memory many products.
pub struct Multiplier {
    level: Level,
    precision: Precision,
    left: Left,
    right: Vec<Right>,
    /// Elements in a line of A.
    depth: usize,
    /// Lanes of each accumulator that [`Rule::dot`] must compute.
    rest: Vec<u32>,
}

impl Multiplier {
    pub fn new(precision: Precision) -> Multiplier {
        Multiplier::at(Level::best(), precision)
    }

    /// With these instructions.
    pub fn at(level: Level, precision: Precision) -> Multiplier {
        Multiplier { level, precision, left: Left::default(), right: vec![], depth: 0, rest: vec![] }
    }

    /// A's 16 rows: for each 16 bytes of depth, rows 0 to 7, then rows 8 to 15 (as in the registers of `mma`).
    pub fn load_left(&mut self, format: Format, cores: &[Register]) {
        self.depth = cores.len() / 2 * elements(format);
        match self.precision {
            Precision::Exact => self.level.load_left(format, cores, &mut self.left),
            Precision::Fast => self.level.load_left_values(format, cores, &mut self.left),
        }
    }

    /// B's `groups` of 8 columns: for each group, its depths 16 bytes at a time.
    pub fn load_right(&mut self, format: Format, groups: usize, cores: &[Register]) {
        self.right.resize(groups, Right::default());
        match self.precision {
            Precision::Exact => self.level.load_right(format, cores, &mut self.right),
            Precision::Fast => self.level.load_right_values(format, cores, &mut self.right),
        }
    }

    /// `c += a * b`, a chain of fused sums; `c` has four registers for each 8 columns, f16 in their lower halves.
    ///
    /// Operands must be loaded in the rule's format, 32 elements deep at most.
    pub fn multiply(&mut self, rule: &Rule, c: &mut [Register]) {
        assert_eq!(c.len(), 4 * self.right.len(), "accumulator registers");
        for first in (0..self.depth).step_by(rule.length) {
            let parameters = Parameters::new(rule, first);
            match self.precision {
                Precision::Fast => self.level.fused(&parameters, &self.left, &self.right, c),
                Precision::Exact => {
                    self.rest.resize(c.len(), 0);
                    match Parameters::fits(rule) {
                        true => self.level.exact(&parameters, &self.left, &self.right, c, &mut self.rest),
                        false => self.rest.fill(u32::MAX),
                    }
                    self.finish(rule, first, c);
                }
            }
        }
    }

    /// What the vector instructions have left alone.
    fn finish(&self, rule: &Rule, first: usize, c: &mut [Register]) {
        let depths = first..first + rule.length;
        for (register, (c, rest)) in c.iter_mut().zip(&self.rest).enumerate().filter(|(_, (_, rest))| **rest != 0) {
            for (lane, c) in c.iter_mut().enumerate().filter(|(lane, _)| rest >> lane & 1 == 1) {
                let row = register / 2 % 2 * 8 + lane / 4;
                let column = lane % 4 * 2 + register % 2;
                let right = &self.right[register / 4];
                let a: Vec<_> = depths.clone().map(|depth| element(rule, self.left.value(row, depth))).collect();
                let b: Vec<_> = depths.clone().map(|depth| element(rule, right.value(column, depth))).collect();
                *c = rule.dot(&a, &b, *c);
            }
        }
    }
}

/// The operand that has this value.
fn element(rule: &Rule, value: f32) -> Element {
    let wide = Format::F32.decode(value.to_bits());
    if wide.class != Class::Finite {
        return wide;
    }
    let exponent = wide.exponent.max(rule.operand.smallest_exponent());
    let dropped = (Format::F32.fraction_bits - rule.operand.fraction_bits) as i32 + exponent - wide.exponent;
    Element { exponent, significand: wide.significand.checked_shr(dropped as u32).unwrap_or(0), ..wide }
}

/// Exchanges lines and depths of a core matrix of 16-bit elements, for operands that lie the other way in memory.
pub fn transpose(core: &Register) -> Register {
    Level::best().transpose(core)
}

/// Lends a multiplier of the thread; nothing is loaded in it.
pub fn with_multiplier<R>(precision: Precision, use_it: impl FnOnce(&mut Multiplier) -> R) -> R {
    thread_local!(static MULTIPLIER: RefCell<Multiplier> = RefCell::new(Multiplier::new(Precision::Exact)));
    MULTIPLIER.with_borrow_mut(|multiplier| {
        multiplier.precision = precision;
        use_it(multiplier)
    })
}
