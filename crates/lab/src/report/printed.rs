//! The reports that a pack carries, for those who want one of them.

use std::path::Path;

use crate::pack::{PAGE, REPORT, write};
use crate::{Error, Silent, Toolbox, VerifyOptions, verify};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Everything, as one page.
    Html,
    /// The summary, as Markdown.
    Markdown,
}

/// The report of a pack. An error means that the folder is no pack, or that the pack is broken: a report is shown only
/// if it says what follows from the logs.
pub fn report(folder: &Path, format: Format) -> Result<String, Error> {
    let options = VerifyOptions { rerun: false, tools: Toolbox::none(), progress: &Silent };
    let verification = verify(folder, &options)?;
    let broken = |why: String| Error::BrokenPack { path: folder.into(), why };
    if let Some(why) = verification.fault() {
        return Err(broken(why.into()));
    }
    let name = match format {
        Format::Html => PAGE,
        Format::Markdown => REPORT,
    };
    let bytes = write::read(folder)?.remove(name).ok_or_else(|| broken(format!("{name} is missing")))?;
    String::from_utf8(bytes).map_err(|_| broken(format!("{name} is not text")))
}
