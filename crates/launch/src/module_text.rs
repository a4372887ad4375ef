//! The text of a PTX module: read from a file, unpacked if it is packed, and made for another target.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ptx::Target;

use crate::error::Error;
use crate::files;

/// Longest PTX or recipe that is read, in bytes; spans are 32 bits wide.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// The text of a `.ptx`, a `.toml`, or one of them that gzip packed.
pub fn read(path: &Path) -> Result<String, Error> {
    let fail = |message: &str| Error::File { path: path.into(), message: message.into() };
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(fail("is a folder: expected a .ptx or .toml file"));
    }
    let bytes = files::read(path, MAX_TEXT_BYTES)?;
    let bytes = if is_packed(path) { unpacked(path, &bytes, MAX_TEXT_BYTES)? } else { bytes };
    String::from_utf8(bytes).map_err(|_| fail("is not UTF-8 text"))
}

/// The name of a file as it is when unpacked.
pub fn unpacked_name(path: &Path) -> PathBuf {
    if is_packed(path) { path.with_extension("") } else { path.to_path_buf() }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// A few packed bytes may stand for more than memory holds.
fn unpacked(path: &Path, packed: &[u8], limit: u64) -> Result<Vec<u8>, Error> {
    let fail = |message: String| Error::File { path: path.into(), message };
    let mut content = Vec::new();
    let read = MultiGzDecoder::new(packed).take(limit + 1).read_to_end(&mut content);
    read.map_err(|error| fail(format!("cannot unpack: {error}")))?;
    match content.len() as u64 > limit {
        true => Err(fail(format!("has more than {limit} bytes when unpacked: expected at most that many"))),
        false => Ok(content),
    }
}

/// The text with the name in its `.target` line replaced, so that every other line and column stays.
pub(crate) fn retargeted(path: &str, text: &str, target: Target) -> Result<String, Error> {
    let names: Vec<&str> = text.lines().filter_map(target_name).collect();
    let [name] = names[..] else {
        let message = format!(
            "has {} `.target` lines: expected one, because the recipe has `target = \"{target}\"`",
            names.len()
        );
        return Err(Error::File { path: path.into(), message });
    };
    let start = name.as_ptr() as usize - text.as_ptr() as usize;
    Ok(format!("{}{target}{}", &text[..start], &text[start + name.len()..]))
}

/// The first name in a line that begins with `.target`.
fn target_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix(".target")?;
    let names = rest.trim_start();
    let end = names.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(names.len());
    (names.len() < rest.len()).then_some(&names[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "// for .target sm_75\n.version 7.0\n\t.target sm_80, texmode_independent // why\n.targets\n";

    fn to_sm_90a(text: &str) -> Result<String, String> {
        retargeted("x.ptx", text, "sm_90a".parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_name_changes() {
        assert_eq!(to_sm_90a(HEAD).unwrap(), HEAD.replace("sm_80", "sm_90a"));
    }

    #[test]
    fn the_line_must_be_the_only_one() {
        let none = to_sm_90a(".version 7.0\n.targets sm_80").unwrap_err();
        insta::assert_snapshot!(none, @r#"x.ptx: has 0 `.target` lines: expected one, because the recipe has `target = "sm_90a"`"#);
        assert!(to_sm_90a(&HEAD.repeat(2)).unwrap_err().contains("has 2 `.target` lines"));
    }

    #[test]
    fn packed_files_are_unpacked_up_to_a_limit() {
        // `printf ab | gzip -n`
        let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 2, 0, 0x6d, 0x48, 0x83, 0x9e, 2, 0, 0, 0];
        let path = Path::new("x.ptx.gz");
        assert_eq!(unpacked(path, &packed, 2).unwrap(), b"ab");
        let long = unpacked(path, &packed, 1).unwrap_err().to_string();
        insta::assert_snapshot!(long, @"x.ptx.gz: has more than 1 bytes when unpacked: expected at most that many");
        assert!(unpacked(path, &packed[..20], 2).unwrap_err().to_string().contains("cannot unpack"));
        assert!(unpacked(path, b"no gzip", 2).is_err());
        assert_eq!(unpacked_name(path), Path::new("x.ptx"));
    }
}
