//! A pack: a folder that holds a claim and everything that it follows from.
//!
//! ```text
//! manifest.json                 the claim: in-toto statement about the kernels; hashes of all other files
//! SHA256SUMS                    hashes of all other files and of the manifest, as `sha256sum -c` reads them
//! REPORT.md, report.html        for people: the summary, and everything with charts and code
//! logs/STAGE.json               figures, from which every verdict follows
//! kernels/NAME/kernel.{ptx,toml}            the kernel as given, and its recipe: a complete case
//! kernels/NAME/kernel.TARGET.{cubin,sass}.gz   what ptxas and nvdisasm made of it
//! kernels/NAME/kernel.driver.{cubin,sass}.gz   what the driver made of it and launched; of kernels with the same code, the first has it
//! kernels/NAME/kernel.{ptx.gz,toml}         a kernel that was measured on a GPU and not emulated
//! samples.csv.gz                            every raw sample of the stage `bench`
//! ```

pub(crate) mod manifest;
pub(crate) mod squeezed;
pub(crate) mod sums;
mod workplace;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;

use launch::{Finding, Recipe};

use crate::case::Case;
use crate::cost::Cost;
use crate::gate::{Gate, GateResult, SecondRun};
use crate::outcome::{Outcome, Tally};
use crate::report;

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SUMS: &str = "SHA256SUMS";
pub(crate) const REPORT: &str = "REPORT.md";
pub(crate) const SAMPLES: &str = "samples.csv.gz";
pub(crate) const PAGE: &str = "report.html";

/// Contents by path, `/` between folders.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A pack that was written.
#[derive(Clone, Debug)]
pub struct Pack {
    pub folder: PathBuf,
    /// In the order of [`Stage::ALL`](crate::Stage::ALL).
    pub outcomes: Vec<Outcome>,
    /// What the emulator found in the stage `sanitize`, for those who show it with its source; equal ones once.
    pub findings: Vec<Finding>,
    /// What it took, stage by stage.
    pub cost: Cost,
}

impl Pack {
    /// Stage, result and one sentence, a line each; `(kept)` where the stage was not run again.
    pub fn table(&self) -> String {
        report::table(&self.outcomes, &self.cost)
    }

    /// `6 passed, 0 failed, 2 not run`.
    pub fn tally(&self) -> Tally {
        Tally::of(&self.outcomes)
    }

    /// What a gate says of this pack alone.
    pub fn gate(&self, gate: &Gate) -> GateResult {
        gate.judge(&self.outcomes, &SecondRun::NotGiven)
    }
}

pub(crate) fn kernel_path(name: &str, file: &str) -> String {
    format!("kernels/{name}/{file}")
}

/// Machine code for a target: `cubin` or `sass`.
pub(crate) fn code_path(name: &str, target: &str, kind: &str) -> String {
    kernel_path(name, &format!("kernel.{target}.{kind}{}", squeezed::ENDING))
}

/// In the place of a target: what the driver made for the GPU at hand.
pub(crate) const DRIVER: &str = "driver";

/// The recipe as a pack holds it: the PTX beside it has the same stem.
pub(crate) fn recipe_text(case: &Case) -> String {
    Recipe { ptx: None, ..case.kernel.recipe.clone() }.to_toml()
}
