//! The source that `.loc` names: which file `src/main.rs` means, and whether it is still what the kernel was printed from.
//!
//! Compilers write names as they were given, and cargo gives them relative to a package or workspace, wherever the kernel
//! lies now. So a name is tried in the folder of the `.ptx`, in the folders above it, then in the current one. A file is
//! the right one if every `.loc` that names it points at the start of a word there: another program's `src/main.rs`, or
//! this one's after an edit, would show a line that has nothing to do with the finding. Otherwise the place alone is shown.

use launch::Kernel;
use launch::finding::Event;
use ptx::{Module, Statement};
use std::path::{Path, PathBuf};

/// The line that `.loc` names: file, line and column, where column 0 is "unknown".
pub fn place(event: &Event) -> Option<(&str, u32, u32)> {
    let mut parts = event.source.as_deref()?.rsplitn(3, ':');
    let (column, line, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some((path, line.parse().ok()?, column.parse().ok()?))
}

/// The text of the file that `.file` calls `name`.
pub fn text(kernel: &Kernel, name: &str) -> Option<String> {
    let places = places(kernel.module(), name);
    let fits = |text: &String| places.iter().all(|&(line, column)| starts_word(text, line, column));
    folders(kernel.file()).iter().find_map(|folder| std::fs::read_to_string(folder.join(name)).ok().filter(fits))
}

/// Where a relative name may begin. A kernel that stands in no file has a name without a folder: the current one.
fn folders(ptx: &str) -> Vec<PathBuf> {
    let folder = Path::new(ptx).parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = folder.unwrap_or(Path::new(".")).canonicalize().unwrap_or_default();
    beside.ancestors().map(Path::to_path_buf).chain(std::env::current_dir()).collect()
}

/// The lines and columns of a file that the module names; compilers write line 0 for what no line wrote.
fn places(module: &Module, name: &str) -> Vec<(u32, u32)> {
    let numbers: Vec<u32> = module.files.iter().filter(|(_, known)| known == name).map(|(number, _)| *number).collect();
    let statements = module.functions.iter().flat_map(|function| &function.body);
    let places = statements.filter_map(|statement| match statement {
        Statement::Location { file, line: line @ 1.., column } if numbers.contains(file) => Some((*line, *column)),
        _ => None,
    });
    places.collect()
}

/// Does something begin here? Column 0 speaks of a line as a whole.
fn starts_word(text: &str, line: u32, column: u32) -> bool {
    let Some(line) = text.lines().nth(line as usize - 1) else { return false };
    let Some(before) = column.checked_sub(1) else { return true };
    let in_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut letters = line.chars().skip(before.saturating_sub(1) as usize);
    let previous = if before == 0 { None } else { letters.next() };
    let goes_on = |here: char| in_word(here) && previous.is_some_and(in_word);
    letters.next().is_some_and(|here| !here.is_whitespace() && !goes_on(here))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_start_of_a_word() {
        let text = "fn main() {\n    wärme(tile);\n}\n";
        for (line, column) in [(1, 1), (1, 4), (1, 8), (2, 5), (2, 10), (2, 11), (3, 1), (3, 0)] {
            assert!(starts_word(text, line, column), "{line}:{column}");
        }
        for (line, column) in [(1, 2), (1, 3), (1, 12), (2, 4), (2, 7), (2, 40), (4, 1), (4, 0)] {
            assert!(!starts_word(text, line, column), "{line}:{column}");
        }
    }
}
