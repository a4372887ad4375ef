//! PTX texts made from the form table.

mod instruction;

pub use instruction::{Picks, instruction};
use instruction::{REGISTERS, STEMS};

/// A module with one entry per list of instructions.
pub fn module(version: &str, target: &str, entries: &[Vec<String>]) -> String {
    let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
    text += ".global .align 16 .b8 G[64];\n.shared .align 128 .b8 S[1024];\n.const .align 16 .b8 C[64];\n";
    text += ".func (.param .b32 result) callee(.param .b64 first, .param .b32 second)\n{\n";
    text += "    .reg .b32 %r;\n    ld.param.b32 %r, [second];\n    st.param.b32 [result], %r;\n    ret;\n}\n";
    for (index, lines) in entries.iter().enumerate() {
        text += &format!(".visible .entry k{index}(.param .align 16 .b8 parameter[64])\n{{\n");
        for (stem, ty, write) in STEMS {
            text += &format!("    .reg {ty} {stem}<{REGISTERS}>;\n");
            (0..REGISTERS).for_each(|number| text += &format!("    {}\n", write.replace('#', &number.to_string())));
        }
        text += "    .local .align 16 .b8 L[64];\n    .param .b32 taken;\n    .param .align 16 .b8 given[64];\n";
        text += "    .param .b64 argument;\n    st.param.b64 [argument], %d0;\n";
        text +=
            "type: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _);\ntable: .branchtargets end, end;\n";
        lines.iter().for_each(|line| text += &format!("    {line}\n"));
        text += "end:\n    ret;\n}\n";
    }
    text
}
