//! A kernel as people read it: what it takes, and what its loops are made of.

use lab::sass::{Class, Counts, Loop};
use lab::{Build, Code, Inspection, Taken};
use std::fmt::Write;

pub fn kernel(inspection: &Inspection) -> String {
    let mut text = head(inspection);
    for build in &inspection.builds {
        build.launches.iter().for_each(|taken| text.push_str(&launch(build, taken)));
        for remark in &build.remarks {
            let _ = writeln!(text, "  ptxas: {remark}");
        }
        build.code.iter().for_each(|code| text.push_str(&loops(build, code)));
    }
    text
}

/// `kernel NAME, module HASH (ptxas …, nvdisasm …)`.
pub fn head(inspection: &Inspection) -> String {
    let Inspection { kernel, module, ptxas, nvdisasm, .. } = inspection;
    format!("{kernel}, module {module:.16} (ptxas {ptxas}, nvdisasm {nvdisasm})\n")
}

fn launch(build: &Build, taken: &Taken) -> String {
    let Taken { function, threads, dynamic_shared_bytes, occupancy } = taken;
    let threads = threads.map_or(String::new(), |threads| format!(" with {threads} threads a block"));
    let mut text = format!("\n{}: {}{threads}\n", build.target, function.entry);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<14} {value}");
    };
    line("registers", function.registers.to_string());
    let (fixed, dynamic) = (function.shared_bytes, *dynamic_shared_bytes);
    line("shared memory", format!("{} bytes: {fixed} static, {dynamic} dynamic", fixed.saturating_add(dynamic)));
    line("stack", format!("{} bytes", function.stack_bytes));
    line("spilled", format!("{} bytes, {} loaded back", function.spill_store_bytes, function.spill_load_bytes));
    line("barriers", function.barriers.to_string());
    line(
        "occupancy",
        match (occupancy, taken.threads) {
            (Some(one), _) => {
                let lab::Occupancy { blocks, warps, most_warps, percent, limited_by } = one;
                let limit = limited_by.join(" and ");
                let blocks = if *blocks == 1 { "1 block".into() } else { format!("{blocks} blocks") };
                format!("{blocks} a processor, {warps} of {most_warps} warps ({percent} %), limited by {limit}")
            }
            (None, None) => "unknown: there is no recipe, give `--block THREADS` and `--shared BYTES`".into(),
            (None, Some(_)) => format!("unknown for {}", build.target),
        },
    );
    text
}

/// Instructions by class: of all, and of each loop.
fn loops(build: &Build, code: &Code) -> String {
    let classes: Vec<Class> = Class::ALL.into_iter().filter(|class| code.counts.of(*class) > 0).collect();
    let heads: String = classes.iter().map(|class| format!("  {}", class.name())).collect();
    let mut text = format!("\n{}: {}\n  {:<24}    all{heads}\n", build.target, code.function.name, "instructions");
    let mut row = |name: &str, counts: &Counts| {
        let cells = classes.iter().map(|class| format!("  {:>1$}", counts.of(*class), class.name().len()));
        let _ = writeln!(text, "  {name:<24} {:>6}{}", counts.all(), cells.collect::<String>());
    };
    row("whole", &code.counts);
    for (index, one) in code.loops.iter().enumerate().filter(|(_, one)| !one.only_waits()) {
        row(&loop_name(one, code.main == Some(index)), &one.counts);
    }
    match code.loops.iter().filter(|one| one.only_waits()).count() {
        0 => text,
        1 => text + "  1 loop more only waits\n",
        count => text + &format!("  {count} loops more only wait\n"),
    }
}

/// Indented by depth, with its label: `  loop .L_x_6, main`.
pub fn loop_name(one: &Loop, is_main: bool) -> String {
    let indent = "  ".repeat(one.depth - 1);
    format!("{indent}loop {}{}", one.label, if is_main { ", main" } else { "" })
}
