//! PTX as data: the instruction table, a parser, a typed IR, a printer and a verifier.
//!
//! ```
//! let text = "
//! .version 7.0
//! .target sm_80
//! .address_size 64
//! .visible .entry nothing() { ret; }
//! ";
//! let parsed = ptx::parse(&ptx::Source::new("nothing.ptx", text))?;
//! assert_eq!(parsed.module.functions[0].name, "nothing");
//! assert!(ptx::verify(&parsed).is_empty());
//! # Ok::<(), ptx::Diagnostics>(())
//! ```

mod diagnostic;
pub mod forms;
pub mod ir;
mod lexer;
mod parser;
mod printer;
mod source;
mod special;
mod types;
mod verify;
mod words;

pub use diagnostic::{Diagnostic, Diagnostics, Kind};
pub use forms::{Effect, Form, Op};
pub use ir::*;
pub use parser::{EntryPlaces, Parsed, Places, parse};
pub use printer::print;
pub use source::{Position, Source, Span, Spans};
pub use special::SPECIAL_REGISTERS;
pub use types::{Space, Target, Type, Version};
pub use verify::verify;
pub use words::nearest;
