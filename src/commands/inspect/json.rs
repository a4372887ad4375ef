//! The same as JSON.

use super::difference::{Difference, Pair, Row};
use lab::sass::{Class, Counts, Instruction, Loop};
use lab::{Build, Code, Inspection, Occupancy, Taken};
use serde_json::{Map, Value, json};

pub fn document(inspections: &[Inspection], difference: Option<&Difference>, sass: bool) -> Value {
    let mut document = Map::new();
    document.insert("kernels".into(), inspections.iter().map(|one| kernel(one, sass)).collect());
    if let Some(difference) = difference {
        document.insert("difference".into(), difference.pairs.iter().map(|one| pair(one, sass)).collect());
    }
    Value::Object(document)
}

fn kernel(inspection: &Inspection, sass: bool) -> Value {
    json!({
        "kernel": inspection.kernel,
        "module": inspection.module,
        "ptxas": inspection.ptxas,
        "nvdisasm": inspection.nvdisasm,
        "builds": inspection.builds.iter().map(|one| build(one, sass)).collect::<Vec<_>>(),
    })
}

fn build(build: &Build, sass: bool) -> Value {
    json!({
        "target": build.target.to_string(),
        "cubin": build.cubin,
        "remarks": build.remarks,
        "launches": build.launches.iter().map(launch).collect::<Vec<_>>(),
        "functions": build.code.iter().map(|one| function(one, sass)).collect::<Vec<_>>(),
    })
}

fn launch(taken: &Taken) -> Value {
    let Taken { function, threads, dynamic_shared_bytes, occupancy } = taken;
    let occupancy = occupancy.as_ref().map(|one| {
        let Occupancy { blocks, warps, most_warps, percent, limited_by } = one;
        json!({ "blocks": blocks, "warps": warps, "most_warps": most_warps, "percent": percent, "limited_by": limited_by })
    });
    json!({
        "entry": function.entry,
        "threads": threads,
        "registers": function.registers,
        "static_shared_bytes": function.shared_bytes,
        "dynamic_shared_bytes": dynamic_shared_bytes,
        "stack_bytes": function.stack_bytes,
        "spill_store_bytes": function.spill_store_bytes,
        "spill_load_bytes": function.spill_load_bytes,
        "barriers": function.barriers,
        "occupancy": occupancy,
    })
}

fn function(code: &Code, sass: bool) -> Value {
    let loops = code.loops.iter().enumerate().map(|(index, one)| loop_json(one, code.main == Some(index)));
    let mut function = json!({
        "function": code.function.name,
        "instructions": code.counts.all(),
        "classes": classes(code.counts),
        "loops": loops.collect::<Vec<_>>(),
    });
    if sass {
        function["sass"] = code.function.without_padding().iter().map(instruction).collect();
    }
    function
}

fn loop_json(one: &Loop, is_main: bool) -> Value {
    json!({
        "label": one.label,
        "depth": one.depth,
        "main": is_main,
        "instructions": one.counts.all(),
        "classes": classes(one.counts),
    })
}

fn classes(counts: Counts) -> Value {
    Class::ALL
        .into_iter()
        .map(|class| (class.name().replace(' ', "_"), counts.of(class).into()))
        .collect::<Map<_, _>>()
        .into()
}

fn instruction(one: &Instruction) -> Value {
    json!({ "address": one.address, "text": one.text, "class": one.class.name().replace(' ', "_") })
}

fn pair(pair: &Pair, sass: bool) -> Value {
    let row = |row: &Row| json!({ "of": row.of, "figure": row.figure, "left": row.left, "right": row.right });
    let mut difference = json!({
        "target": pair.target,
        "figures": pair.rows.iter().map(row).collect::<Vec<_>>(),
        "removed": pair.removed,
        "added": pair.added,
    });
    if sass {
        difference["diff"] = pair.code.as_str().into();
    }
    difference
}
