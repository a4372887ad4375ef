//! Instructions made comparable: two builds of one kernel number registers and labels differently.

use super::listing::Instruction;

/// Without numbers of labels and, unless they are kept, of registers: `FFMA R, R, R, R`.
pub fn normal(one: &Instruction, keep_registers: bool) -> String {
    let mut text = String::new();
    let mut rest = one.text.as_str();
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '.') {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c))).unwrap_or(word.len());
        text.push_str(before);
        text.push_str(&name(&word[..end], keep_registers));
        rest = &word[end..];
    }
    text + rest
}

/// `R12.64` is `R.64`, `.L_x_3` is `.L`. How the register file is read (`.reuse`) follows from the numbers.
fn name(word: &str, keep_registers: bool) -> String {
    if word.starts_with(".L_") {
        return ".L".into();
    }
    if keep_registers {
        return word.into();
    }
    let (first, rest) = word.find('.').map_or((word, ""), |dot| word.split_at(dot));
    let file = first.trim_end_matches(|c: char| c.is_ascii_digit());
    if file.len() < first.len() && ["R", "UR", "P", "UP", "B", "SB"].contains(&file) {
        return format!("{file}{}", rest.replace(".reuse", ""));
    }
    word.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::Listing;

    #[test]
    fn only_numbers_that_a_build_chooses_go() {
        let of = |text: &str, keep| {
            let listing = Listing::read(&format!("/*0000*/ {text} ;")).unwrap();
            normal(&listing.functions[0].instructions[0], keep)
        };
        assert_eq!(of("HMMA.16816.F32 R56, R16.reuse, R68, RZ", false), "HMMA.16816.F32 R, R, R, RZ");
        assert_eq!(of("@!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10]", false), "@!P LDG.E.128 R, desc[UR][R.64+0x10]");
        assert_eq!(of("@!P0 BRA P1, `(.L_x_12)", false), "@!P BRA P, `(.L)");
        assert_eq!(of("@!P0 BRA P1, `(.L_x_12)", true), "@!P0 BRA P1, `(.L)");
        assert_eq!(of("MOV R1, c[0x0][0x28]", false), "MOV R, c[0x0][0x28]");
    }
}
