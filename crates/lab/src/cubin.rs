//! The machine code inside of a cubin: an ELF file for 64 bits, with a section for each function.

/// A section header: where its parts lie, and how long it is (System V ABI, "ELF-64 object file format").
const HEADER: usize = 64;

/// Every section that holds code, by its name. None if the bytes are no such file.
pub fn code(cubin: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    if !cubin.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number(cubin, 0x28, 8)?;
    let (count, names) = (number(cubin, 0x3c, 2)?, number(cubin, 0x3e, 2)?);
    let section = |index: usize| {
        let at = table + index * HEADER;
        let (start, length) = (number(cubin, at + 0x18, 8)?, number(cubin, at + 0x20, 8)?);
        Some((number(cubin, at, 4)?, cubin.get(start..start.checked_add(length)?)))
    };
    let (_, names) = section(names)?;
    let sections = (0..count).map(|index| {
        let (name, bytes) = section(index)?;
        let name = names?.get(name..)?.split(|byte| *byte == 0).next()?;
        Some((String::from_utf8(name.to_vec()).ok()?, bytes.unwrap_or_default().to_vec()))
    });
    let sections: Vec<_> = sections.collect::<Option<_>>()?;
    Some(sections.into_iter().filter(|(name, _)| name.starts_with(".text.")).collect())
}

/// A little-endian number of so many bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, code, and three section headers: none, the names, the code.
    fn file() -> Vec<u8> {
        let names = b"\0.names\0.text.kernel\0";
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let put = |file: &mut Vec<u8>, at: usize, value: u64| file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        file.extend(names);
        file.extend([1, 2, 3, 4]);
        let table = file.len();
        put(&mut file, 0x28, table as u64);
        (file[0x3c], file[0x3e]) = (3, 1);
        file.resize(table + 3 * HEADER, 0);
        for (index, name, start, length) in [(1, 1, 0x40, names.len()), (2, 8, 0x40 + names.len(), 4)] {
            let at = table + index * HEADER;
            file[at] = name;
            put(&mut file, at + 0x18, start as u64);
            put(&mut file, at + 0x20, length as u64);
        }
        file
    }

    #[test]
    fn the_code_is_found_by_its_name() {
        assert_eq!(code(&file()), Some(vec![(".text.kernel".into(), vec![1, 2, 3, 4])]));
    }

    #[test]
    fn what_is_no_cubin_has_no_code() {
        assert_eq!(code(b"\x7fELF"), None);
        assert_eq!(code(b"MZ"), None);
        assert_eq!(code(&file()[..0x60]), None);
    }
}
