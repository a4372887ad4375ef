//! What the kernel is fed. Integers stay: they may be places.

use launch::buffer::{Float, Init};
use launch::recipe::Buffer;
use launch::{Element, Kernel};

use super::super::setup::Setup;
use super::super::symptom::Symptom;
use super::{Axis, Variation};

/// How much larger and smaller.
const FACTOR: f64 = 16.0;

/// Other inputs; where nothing but what the recipe expects of its own inputs tells right from wrong, there are none.
pub fn others(setup: &Setup, symptom: Option<&Symptom>) -> Vec<Variation> {
    let has_oracle = setup.kernel.recipe.attention.is_some();
    if matches!(symptom, Some(Symptom::WrongResult(_))) && !has_oracle {
        return vec![];
    }
    let judged = setup.judged && has_oracle;
    let vary = |what: &str, change: &dyn Fn(&Buffer) -> Option<Init>| {
        let kernel = filled(&setup.kernel, change)?;
        Some(Variation::new(Axis::Data, what, Setup { judged, ..setup.with(kernel) }))
    };
    let zeros = |_: &Buffer| Some(Init::Zeros);
    let normal = |_: &Buffer| Some(Init::Normal { sigma: Float(1.0), seed: None });
    let mut all: Vec<Variation> = vec![];
    all.extend(reseeded(setup, judged));
    all.extend(vary("all inputs zero", &zeros));
    all.extend(vary("all inputs normal(1.0)", &normal));
    all.extend(vary("inputs 16 times as large", &|buffer| scaled(buffer, FACTOR)));
    all.extend(vary("inputs 16 times as small", &|buffer| scaled(buffer, 1.0 / FACTOR)));
    let inputs: Vec<String> = setup
        .kernel
        .recipe
        .buffers
        .iter()
        .filter(|buffer| is_input(buffer))
        .map(|buffer| buffer.name.clone())
        .collect();
    if inputs.len() > 1 {
        for name in &inputs {
            all.extend(vary(&format!("input `{name}` zero"), &|buffer| (buffer.name == *name).then_some(Init::Zeros)));
        }
    }
    all
}

/// Other random numbers, where the recipe does not fix them.
fn reseeded(setup: &Setup, judged: bool) -> Option<Variation> {
    let random = |buffer: &Buffer| matches!(buffer.init, Init::Normal { seed: None, .. });
    setup.kernel.recipe.buffers.iter().any(random).then(|| {
        let data_seed = setup.data_seed + 1;
        Variation::new(Axis::Data, format!("data seed {data_seed}"), Setup { data_seed, judged, ..setup.clone() })
    })
}

fn scaled(buffer: &Buffer, factor: f64) -> Option<Init> {
    match &buffer.init {
        Init::Normal { sigma, seed } => Some(Init::Normal { sigma: Float(sigma.0 * factor), seed: seed.clone() }),
        _ => None,
    }
}

/// Floats that somebody filled.
fn is_input(buffer: &Buffer) -> bool {
    let float = matches!(buffer.element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64);
    float && buffer.init != Init::Poison && buffer.expect.is_none()
}

/// The kernel with other inputs; none if that changes nothing.
fn filled(kernel: &Kernel, change: &dyn Fn(&Buffer) -> Option<Init>) -> Option<Kernel> {
    let mut changed = kernel.clone();
    for buffer in changed.recipe.buffers.iter_mut().filter(|buffer| is_input(buffer)) {
        if let Some(init) = change(buffer) {
            buffer.init = init;
        }
    }
    (changed.recipe.buffers != kernel.recipe.buffers).then_some(changed)
}
