//! Does the module's `.target` and `.version` have what its instructions need?

use super::{Errors, Site};
use crate::diagnostic::Diagnostic;
use crate::ir::{Module, Operand, Tuning};
use crate::parser::Parsed;
use crate::special;
use crate::types::{Target, Version};

/// The first PTX version that knows a target. PTX ISA, "Release notes".
const FIRST_VERSIONS: &[(&str, &str)] = &[
    ("sm_70", "6.0"),
    ("sm_72", "6.1"),
    ("sm_75", "6.3"),
    ("sm_80", "7.0"),
    ("sm_86", "7.1"),
    ("sm_87", "7.4"),
    ("sm_89", "7.8"),
    ("sm_90", "7.8"),
    ("sm_90a", "8.0"),
    ("sm_100", "8.6"),
    ("sm_100a", "8.6"),
    ("sm_103", "8.8"),
    ("sm_103a", "8.8"),
    ("sm_120", "8.7"),
    ("sm_120a", "8.7"),
];

pub fn module(parsed: &Parsed, errors: &mut Errors) {
    let (version, target) = (parsed.module.version, parsed.module.target);
    let first = FIRST_VERSIONS.iter().find(|(name, _)| *name == target.to_string());
    let Some(first) = first.and_then(|(_, first)| first.parse::<Version>().ok()) else { return };
    if version < first {
        let message = format!("{target} needs PTX {first} or later; the module is PTX {version}");
        let error = Diagnostic::new(message, parsed.places.version, format!("PTX {version} does not know {target}"));
        errors.push(error.help(format!("write `.version {first}`")));
    }
}

/// Directives of clusters and of functions that do not return. PTX ISA, "Cluster Dimension Directives", ".noreturn".
pub fn tuning(parsed: &Parsed, index: usize, errors: &mut Errors) {
    let module = &parsed.module;
    let all = module.functions[index].tuning.iter().zip(&parsed.places.entries[index].tuning);
    for (tuning, place) in all {
        let needs = match tuning {
            Tuning::ExplicitCluster | Tuning::RequiredCluster(_) | Tuning::MaxClusterRank(_) => {
                (Version { major: 7, minor: 8 }, Target::SM_90)
            }
            Tuning::NoReturn => (Version { major: 6, minor: 4 }, Target::SM_30),
            _ => continue,
        };
        if let Some((what, label)) = missing(module, needs) {
            errors.push(Diagnostic::new(format!("this directive {what}"), *place, label));
        }
    }
}

pub fn instruction(site: &Site, errors: &mut Errors) {
    let form = site.instruction.form;
    let modifiers = form.spelling.needs(&site.instruction.modifiers);
    let special = site.instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Special(name) => special::needs(name),
        _ => None,
    });
    let needs = [(form.version, form.target)].into_iter().chain(modifiers).chain(special);
    let missing = { needs }.find_map(|needs| missing(site.module, needs));
    if let Some((what, label)) = missing {
        errors.push(Diagnostic::new(format!("{} {what}", site.mnemonic()), site.spans.head, label));
    }
}

fn missing(module: &Module, (version, target): (Version, Target)) -> Option<(String, String)> {
    if !module.target.provides(target) {
        let later = if target.specific { "itself" } else { "or later" };
        let what = format!("needs {target} {later}; the module is for {}", module.target);
        return Some((what, format!("{} does not have this", module.target)));
    }
    let what = format!("needs PTX {version} or later; the module is PTX {}", module.version);
    (module.version < version).then(|| (what, format!("not in PTX {}", module.version)))
}
