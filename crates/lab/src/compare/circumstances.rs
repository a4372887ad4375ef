//! Under what each pack was made, as far as it differs: figures of two machines or of two ptxas are no fair pair.

use serde_json::Value;

use crate::pack::manifest::Manifest;

/// A setting or a part of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstance {
    /// `settings.seeds`, `machine.ptxas`.
    pub what: String,
    pub left: String,
    pub right: String,
}

pub fn between(left: &Manifest, right: &Manifest) -> Vec<Circumstance> {
    let fields = |manifest: &Manifest| {
        let predicate = &manifest.predicate;
        let own = [("command".to_string(), Value::from(predicate.command.as_str()))];
        let settings = fields("settings", serde_json::to_value(&predicate.settings));
        let machine = fields("machine", serde_json::to_value(&predicate.machine));
        own.into_iter().chain(settings).chain(machine).collect::<Vec<_>>()
    };
    let (left, right) = (fields(left), fields(right));
    let value = |fields: &[(String, Value)], name: &str| {
        let found = fields.iter().find(|(other, _)| other == name).map(|(_, value)| value);
        found.map_or("none".into(), shown)
    };
    // Both are written by one version, with the same fields.
    let names = left.iter().map(|(name, _)| name);
    let all =
        names.map(|name| Circumstance { what: name.clone(), left: value(&left, name), right: value(&right, name) });
    all.filter(|one| one.left != one.right).collect()
}

fn fields(of: &str, value: Result<Value, serde_json::Error>) -> Vec<(String, Value)> {
    match value {
        Ok(Value::Object(fields)) => fields.into_iter().map(|(name, value)| (format!("{of}.{name}"), value)).collect(),
        _ => vec![],
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
