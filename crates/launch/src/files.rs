//! Reading the files a recipe names, never more than the recipe asks for.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::element::Element;
use crate::error::Error;
use crate::npy;

/// The elements in a raw or `.npy` file, which must hold exactly the given shape.
pub(crate) fn elements(path: &Path, element: Element, shape: &[u64]) -> Result<Vec<u8>, Error> {
    let fail = |message: String| Error::File { path: path.to_path_buf(), message };
    let needed = shape.iter().product::<u64>() * element.bytes() as u64;
    if path.extension().is_some_and(|extension| extension == "npy") {
        let content = read(path, needed.saturating_add(npy::MAX_HEADER_BYTES))?;
        return npy::data(content, element, shape).map_err(fail);
    }
    let content = read(path, needed)?;
    if content.len() as u64 != needed {
        return Err(fail(format!("file has {} bytes: expected {needed}", content.len())));
    }
    Ok(content)
}

/// A file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let fail = |message: String| Error::File { path: path.to_path_buf(), message };
    let file = File::open(path).map_err(|error| fail(format!("cannot open: {error}")))?;
    let length = file.metadata().map_err(|error| fail(format!("cannot read: {error}")))?.len();
    if length > limit {
        return Err(fail(format!("file has {length} bytes: expected at most {limit}")));
    }
    let mut content = Vec::new();
    // A device file may claim no length and never end.
    file.take(limit).read_to_end(&mut content).map_err(|error| fail(format!("cannot read: {error}")))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_file_must_have_the_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bin");
        std::fs::write(&path, [1, 2, 3, 4]).unwrap();
        assert_eq!(elements(&path, Element::U16, &[2]).unwrap(), [1, 2, 3, 4]);
        let short = elements(&path, Element::U16, &[3]).unwrap_err().to_string();
        assert!(short.ends_with("file has 4 bytes: expected 6"), "{short}");
        let long = elements(&path, Element::U16, &[1]).unwrap_err().to_string();
        assert!(long.ends_with("file has 4 bytes: expected at most 2"), "{long}");
        assert!(elements(&folder.path().join("y.bin"), Element::U16, &[1]).is_err());
    }
}
