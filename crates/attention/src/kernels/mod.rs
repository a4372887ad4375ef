//! Attention forward as kernels. `parts` are the lines of the paper; a family is a schedule around them.

mod ampere;
pub mod parts;
