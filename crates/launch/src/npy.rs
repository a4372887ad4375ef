//! Reading `.npy` files (NumPy enhancement proposal 1), versions 1 to 3, little-endian, C order.
//!
//! NumPy has no bf16 and no 8-bit floats: such data is stored as raw integers of the same width, so `<u2` and `|u1`
//! are accepted for them.

use crate::element::Element;

/// A header is padded to 64 bytes and ours are tiny; longer ones are not read.
pub(crate) const MAX_HEADER_BYTES: u64 = 4096;

/// The data of a file with the given content, checked against type and shape.
pub(crate) fn data(mut content: Vec<u8>, element: Element, shape: &[u64]) -> Result<Vec<u8>, String> {
    let (header, start) = header(&content)?;
    check_type(field(header, "descr")?, element)?;
    if field(header, "fortran_order")? != "False" {
        return Err("array is in Fortran order: save it with numpy.ascontiguousarray".into());
    }
    check_shape(field(header, "shape")?, shape)?;
    let needed = shape.iter().product::<u64>() * element.bytes() as u64;
    let found = content.len() - start;
    if found as u64 != needed {
        return Err(format!("data has {found} bytes: expected {needed}"));
    }
    content.drain(..start);
    Ok(content)
}

/// The header's text and where the data starts.
fn header(content: &[u8]) -> Result<(&str, usize), String> {
    let not_npy = || "not a .npy file: the header is damaged".to_string();
    let rest = content.strip_prefix(b"\x93NUMPY").ok_or_else(not_npy)?;
    let (length, start) = match rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
        _ => return Err(not_npy()),
    };
    let end = start + length;
    let text = content.get(start..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or_else(not_npy)?;
    Ok((text, end))
}

/// The text of one value in the header's Python dictionary.
fn field<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let missing = || format!("header has no `{key}`");
    let after = header.split_once(&format!("'{key}'")).ok_or_else(missing)?.1;
    let value = after.trim_start().strip_prefix(':').ok_or_else(missing)?.trim_start();
    let end = match value.starts_with('(') {
        true => value.find(')').map(|end| end + 1),
        false => value.find([',', '}']),
    };
    Ok(value[..end.ok_or_else(missing)?].trim())
}

fn check_type(found: &str, element: Element) -> Result<(), String> {
    let found = found.trim_matches('\'');
    let expected: &[&str] = match element {
        Element::U8 => &["|u1"],
        Element::S8 => &["|i1"],
        Element::U16 => &["<u2"],
        Element::U32 => &["<u4"],
        Element::U64 => &["<u8"],
        Element::S16 => &["<i2"],
        Element::S32 => &["<i4"],
        Element::S64 => &["<i8"],
        Element::F16 => &["<f2"],
        Element::F32 => &["<f4"],
        Element::F64 => &["<f8"],
        Element::Bf16 => &["<u2", "<V2", "|V2"],
        Element::E4m3 | Element::E5m2 => &["|u1", "|V1"],
    };
    if expected.contains(&found) {
        return Ok(());
    }
    Err(format!("array has type `{found}`: expected `{}` for {element}", expected.join("` or `")))
}

fn check_shape(found: &str, expected: &[u64]) -> Result<(), String> {
    let inner = found.trim_start_matches('(').trim_end_matches(')');
    let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
    let shape: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
    if shape.as_deref() == Some(expected) {
        return Ok(());
    }
    Err(format!("array has shape {found}: expected {expected:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut content = b"\x93NUMPY\x01\x00".to_vec();
        content.extend((header.len() as u16).to_le_bytes());
        content.extend(header.as_bytes());
        content.extend(data);
        content
    }

    const HEADER: &str = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }\n";

    #[test]
    fn reads_what_numpy_writes() {
        let content = file(HEADER, &[1, 0, 2, 0]);
        assert_eq!(data(content.clone(), Element::S16, &[2, 1]).unwrap(), [1, 0, 2, 0]);
        let failure = |element, shape: &[u64]| data(content.clone(), element, shape).unwrap_err();
        insta::assert_snapshot!(failure(Element::F32, &[2, 1]), @"array has type `<i2`: expected `<f4` for f32");
        insta::assert_snapshot!(failure(Element::S16, &[2]), @"array has shape (2, 1): expected [2]");
        insta::assert_snapshot!(data(file(HEADER, &[1]), Element::S16, &[2, 1]).unwrap_err(), @"data has 1 bytes: expected 4");
    }

    #[test]
    fn one_dimension_has_a_comma() {
        let content = file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", &[0; 4]);
        assert_eq!(data(content, Element::F32, &[1]).unwrap(), [0; 4]);
    }

    proptest! {
        #[test]
        fn never_panics(position in 0usize..74, byte: u8, length in 0usize..75) {
            let mut content = file(HEADER, &[1, 0, 2, 0]);
            content[position] = byte;
            content.truncate(length);
            let _ = data(content, Element::S16, &[2, 1]);
        }
    }
}
