//! Machine code with a letter, and on a terminal a colour, for what an instruction is there for, and a bar for each loop.

use super::table::loop_name;
use clap::builder::styling::{AnsiColor, Style};
use lab::sass::{Class, Instruction};
use lab::{Code, Inspection};
use std::fmt::Write;

pub fn kernel(inspection: &Inspection) -> String {
    let mut text = String::new();
    for build in &inspection.builds {
        for code in &build.code {
            let _ = writeln!(text, "{}: {}\n{}", build.target, code.function.name, legend(code));
            text.push_str(&lines(code));
        }
    }
    text
}

/// The letters that occur.
fn legend(code: &Code) -> String {
    let marked = Class::ALL.into_iter().filter(|class| code.counts.of(*class) > 0);
    let letters = marked.filter_map(|class| Some(format!("{} {}", class.letter()?, class.name())));
    letters.collect::<Vec<_>>().join(", ")
}

fn lines(code: &Code) -> String {
    let mut text = String::new();
    for (index, instruction) in code.function.without_padding().iter().enumerate() {
        let of_function = |label: &str| label == code.function.name || label.starts_with(".text.");
        let labels = code.function.labels.iter().filter(|(label, place)| *place == index && !of_function(label));
        for (label, _) in labels {
            let _ = writeln!(text, "{label}:{}", headed(code, label));
        }
        let depth = code.loops.iter().filter(|one| one.body.binary_search(&index).is_ok()).count();
        text.push_str(&line(instruction, depth));
    }
    text
}

/// What a label is the head of.
fn headed(code: &Code, label: &str) -> String {
    let found = code.loops.iter().position(|one| one.label == label);
    found.map_or(String::new(), |index| {
        let one = &code.loops[index];
        format!("  # {}, {} instructions", loop_name(one, code.main == Some(index)).trim_start(), one.counts.all())
    })
}

/// `0ec0 T | HMMA.16816.F32 R56, R16.reuse, R68, RZ`
fn line(one: &Instruction, depth: usize) -> String {
    let style = style(one.class);
    let (letter, bars) = (one.class.letter().unwrap_or(' '), "|".repeat(depth));
    format!("{:04x} {style}{letter}{style:#} {bars:<3} {style}{}{style:#}\n", one.address, one.text)
}

fn style(class: Class) -> Style {
    match class {
        Class::Tensor => AnsiColor::Green.on_default().bold(),
        Class::CopyIn | Class::CopyOut => AnsiColor::Cyan.on_default().bold(),
        Class::Matrix | Class::Shared => AnsiColor::Cyan.on_default(),
        Class::Global => AnsiColor::Blue.on_default(),
        Class::Wait | Class::Barrier | Class::Fence => AnsiColor::Yellow.on_default(),
        Class::Local | Class::Trap => AnsiColor::Red.on_default().bold(),
        Class::Special => AnsiColor::Magenta.on_default(),
        Class::Branch | Class::Other => Style::new(),
    }
}
