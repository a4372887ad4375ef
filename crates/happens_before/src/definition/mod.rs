//! The definition of happens-before, to hold the detector against: both hear the same events and must agree on every byte.
//!
//! [`Recorder`] is a detector that writes down what it is told and what it finds; [`record`] gathers that for whole
//! launches, and [`Launch::compare`] has the definition judge them. Only tests ask for it: without the feature
//! `definition` nothing of it is compiled.

mod earlier;
mod event;
mod found;
mod graph;
mod launch;
mod memory;
mod oracle;
mod recorder;

pub use event::KINDS;
pub use launch::{Compared, Launch};
pub use recorder::{Recorder, begin_launch, record};

#[cfg(test)]
pub(crate) use self::{
    earlier::{Accesses, Early, agree_early},
    event::{Event, Shift, lanes_of},
    found::{Faulty, Found, agree},
    oracle::Oracle,
    recorder::never_quiet,
};
