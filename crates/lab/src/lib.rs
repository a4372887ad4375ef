//! From a kernel to evidence: stages, packs, gates and reports.
//!
//! The one idea: a claim is a value that can only be constructed from the run that proves it. Every stage leaves a
//! [`log`](stages::Log) of figures; its [`Outcome`] is derived from that log by the same code in [`prove`], which
//! writes the [`Pack`], and in [`verify`], which does not believe it. Silence, a missing tool or a crashed run cannot
//! become a pass.
//!
//! ```no_run
//! use lab::{Request, VerifyOptions};
//!
//! let request = Request::standard("evidence")?;
//! let pack = lab::prove(&request, &lab::Silent)?;
//! println!("{}\n{}", pack.table(), pack.tally()); // …, 6 passed, 0 failed, 2 not run
//! assert!(lab::verify(&pack.folder, &VerifyOptions::default())?.accepted());
//! # Ok::<(), lab::Error>(())
//! ```

mod assembly;
pub mod bench;
pub mod bisect;
mod case;
mod code_files;
pub mod compare;
mod cost;
mod cubin;
mod cuda_source;
mod error;
mod figures;
mod gate;
pub mod gpu;
mod guard;
mod hardware;
mod harness;
mod inspect;
mod kept;
pub mod leaderboard;
mod machine;
pub mod measure;
mod occupancy;
mod on_gpu;
mod outcome;
mod pack;
mod process;
mod progress;
mod prove;
pub mod red_team;
mod report;
mod request;
pub mod sass;
mod shapes;
pub mod stages;
mod streams;
pub mod timeline;
pub mod tools;
pub mod usage;
mod verify;
mod witness;

pub use assembly::{MachineCode, machine_code};
pub use case::Case;
pub use cost::{Cost, Rate, StageCost};
pub use cuda_source::{Translation, is_source, open_source, recipe, translate};
pub use error::Error;
pub use figures::{Figure, Subject};
pub use gate::{Gate, GateResult, Made, SETTINGS, SecondRun, Unmet, gates_of};
pub use guard::{Guard, Objection, Objections};
pub use hardware::{Hardware, open_gpu};
pub use inspect::{BlockShape, Build, Code, Inspection, Taken, inspect};
pub use occupancy::Occupancy;
pub use outcome::{Outcome, State, Tally};
pub use pack::Pack;
pub use process::end_tools;
pub use progress::{Progress, Silent};
pub use prove::prove;
pub use report::{Format as ReportFormat, report, table};
pub use request::{Request, Settings};
pub use stages::Stage;
pub use streams::{Streams, at_once};
pub use tools::{Tool, Toolbox};
pub use verify::{Check, CheckResult, Verification, VerifyOptions, verify};
pub use witness::{witness, witnesses};

/// The version of the files in a pack.
pub const SCHEMA: u32 = 3;
