//! Vector instructions of the machine this runs on: the only module with `unsafe` code.

#![allow(unsafe_code)]

pub mod tensor;
