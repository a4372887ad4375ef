//! Everything that was tried, as JSON. docs/json.md describes the fields.

use super::super::output::finding_json;
use super::behind;
use lab::bisect::{Bisection, Symptom, Tried};
use serde_json::{Value, json};

pub fn document(found: &Bisection, note: Option<&str>) -> Value {
    let tried = found.provoked.iter().map(|one| ("on", one));
    let tried = tried.chain(found.cured.iter().map(|one| ("off", one)));
    json!({
        "given": found.given.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "failure": found.symptom.as_ref().map(ToString::to_string),
        "tried": tried.map(|(sought, one)| row(sought, one)).collect::<Vec<_>>(),
        "on": found.on().map(change),
        "off": found.off().map(change),
        "finding": behind(found).map(|(finding, _)| finding_json(finding)),
        "finding_of": behind(found).and_then(|(_, trial)| trial).map(change),
        "note": note,
    })
}

fn row(sought: &str, tried: &Tried) -> Value {
    json!({
        "axis": tried.axis.name(),
        "change": tried.what,
        "sought": sought,
        "result": tried.effect.word(),
        "failure": tried.effect.symptom().map(Symptom::to_string),
    })
}

fn change(tried: &Tried) -> Value {
    json!({ "axis": tried.axis.name(), "change": tried.what })
}
