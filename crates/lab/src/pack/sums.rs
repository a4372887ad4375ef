//! `SHA256SUMS`: one line per file, as `sha256sum -c` reads it.

use launch::hash;

use super::{Files, SUMS};

/// The text for these files; itself is not among them.
pub fn render(files: &Files) -> String {
    let listed = files.iter().filter(|(path, _)| *path != SUMS);
    listed.map(|(path, bytes)| format!("{}  {path}\n", hash::hex(bytes))).collect()
}

/// Every file is listed with its hash, and nothing else is: the first difference.
pub fn check(files: &Files) -> Result<(), String> {
    let found = files.get(SUMS).ok_or_else(|| format!("{SUMS} is missing"))?;
    let expected = render(files);
    if *found == expected.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(found);
    if let Some(line) = expected.lines().find(|line| !found.lines().any(|other| other == *line)) {
        let path = line.split_once("  ").map_or(line, |(_, path)| path);
        let listed = found.lines().any(|line| line.ends_with(path));
        return Err(if listed {
            format!("{path} is not what {SUMS} says: it was changed after the pack was made")
        } else {
            format!("{path} is not listed in {SUMS}: it was added after the pack was made")
        });
    }
    let extra = found.lines().find(|line| !line.is_empty() && !expected.lines().any(|other| other == *line));
    Err(match extra {
        Some(line) => format!("{SUMS} says `{}`, and there is no such file", line.escape_debug()),
        None => format!("{SUMS} is not in the form that is written"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Files {
        let mut files: Files = names.iter().map(|name| (name.to_string(), name.as_bytes().to_vec())).collect();
        files.insert(SUMS.into(), render(&files).into_bytes());
        files
    }

    #[test]
    fn each_difference_is_named() {
        assert_eq!(check(&files(&["a", "b"])), Ok(()));
        let mut changed = files(&["a", "b"]);
        changed.insert("a".into(), b"other".to_vec());
        assert!(check(&changed).unwrap_err().contains("a is not what"));
        let mut stray = files(&["a"]);
        stray.insert("c".into(), Vec::new());
        assert!(check(&stray).unwrap_err().contains("c is not listed"));
        let mut lost = files(&["a", "b"]);
        lost.remove("b");
        assert!(check(&lost).unwrap_err().contains("no such file"));
        let mut spaced = files(&["a"]);
        spaced.get_mut(SUMS).unwrap().push(b'\n');
        assert!(check(&spaced).unwrap_err().contains("form"));
        assert!(check(&Files::new()).is_err());
    }
}
