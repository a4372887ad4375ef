//! The driver takes machine code as a bare pointer and believes the sizes in its headers: check them first.

const ELF_64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const MACHINE_CUDA: u64 = 190; // ELF e_machine, EM_CUDA
const HEADER_BYTES: u64 = 64; // ELF-64 header
const SECTION_WITHOUT_BYTES: u64 = 8; // ELF sh_type, SHT_NOBITS

/// Why these bytes cannot be given to the driver, if they cannot.
pub fn fault(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(&ELF_64_LITTLE) {
        return Some("expected a 64-bit ELF file");
    }
    let image = Image(bytes);
    if image.field(18, 2) != Some(MACHINE_CUDA) {
        return Some("expected machine code of a GPU (ELF machine 190)");
    }
    match image.fits() {
        Some(true) => None,
        _ => Some("it is cut off: a table or a section reaches past its end"),
    }
}

struct Image<'a>(&'a [u8]);

impl Image<'_> {
    fn field(&self, at: u64, width: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.0.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn holds(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.0.len() as u64)
    }

    /// Does everything that the headers name lie inside?
    fn fits(&self) -> Option<bool> {
        let (segments, segment_bytes, segment_count) = (self.field(32, 8)?, self.field(54, 2)?, self.field(56, 2)?);
        let (sections, section_bytes, section_count) = (self.field(40, 8)?, self.field(58, 2)?, self.field(60, 2)?);
        let tables = self.holds(0, HEADER_BYTES)
            && self.holds(segments, segment_bytes * segment_count)
            && self.holds(sections, section_bytes * section_count);
        if !tables {
            return Some(false);
        }
        let mut inside = true;
        for index in 0..section_count {
            let section = sections + index * section_bytes;
            let empty = self.field(section + 4, 4)? == SECTION_WITHOUT_BYTES;
            inside &= empty || self.holds(self.field(section + 24, 8)?, self.field(section + 32, 8)?);
        }
        for index in 0..segment_count {
            let segment = segments + index * segment_bytes;
            inside &= self.holds(self.field(segment + 8, 8)?, self.field(segment + 32, 8)?);
        }
        Some(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and one section of 16 bytes.
    fn image() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 64 + 16];
        bytes[..6].copy_from_slice(&ELF_64_LITTLE);
        bytes[18] = MACHINE_CUDA as u8;
        bytes[40] = 64; // section table
        bytes[58] = 64;
        bytes[60] = 1;
        bytes[64 + 4] = 1;
        bytes[64 + 24] = 128; // the section's offset and size
        bytes[64 + 32] = 16;
        bytes
    }

    #[test]
    fn complete_image_passes() {
        assert_eq!(fault(&image()), None);
    }

    #[test]
    fn cut_off_images_are_refused_at_every_length() {
        let whole = image();
        for length in 0..whole.len() {
            assert!(fault(&whole[..length]).is_some(), "{length} bytes");
        }
    }

    #[test]
    fn other_files_are_named() {
        assert_eq!(fault(b".version 8.0"), Some("expected a 64-bit ELF file"));
        let mut program = image();
        program[18] = 62;
        assert_eq!(fault(&program), Some("expected machine code of a GPU (ELF machine 190)"));
    }
}
