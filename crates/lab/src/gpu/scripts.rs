//! The workers' scripts, which this crate carries, in a folder of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::peer::Workers;

const SCRIPTS: [(&str, &str); 15] = [
    ("worker.py", include_str!("../../../../peers/worker.py")),
    ("stamp.ptx", include_str!("../../../../peers/stamp.ptx")),
    ("stamps.py", include_str!("../../../../peers/stamps.py")),
    ("plan.py", include_str!("../../../../peers/plan.py")),
    ("measure.py", include_str!("../../../../peers/measure.py")),
    ("inputs.py", include_str!("../../../../peers/inputs.py")),
    ("parity.py", include_str!("../../../../peers/parity.py")),
    ("others.py", include_str!("../../../../peers/others.py")),
    ("triton_attention.py", include_str!("../../../../peers/triton_attention.py")),
    ("problems.py", include_str!("../../../../peers/problems.py")),
    ("driver.py", include_str!("../../../../peers/driver.py")),
    ("recipe.py", include_str!("../../../../peers/recipe.py")),
    ("arguments.py", include_str!("../../../../peers/arguments.py")),
    ("expression.py", include_str!("../../../../peers/expression.py")),
    ("tensor_map.py", include_str!("../../../../peers/tensor_map.py")),
];

impl Workers {
    /// Workers that this Python runs; their scripts are there as long as this or a clone of it.
    pub fn unpack(python: &Path) -> std::io::Result<Workers> {
        let folder = tempfile::tempdir()?;
        for (name, text) in SCRIPTS {
            std::fs::write(folder.path().join(name), text)?;
        }
        let script: PathBuf = folder.path().join("worker.py");
        Ok(Workers { python: python.into(), script, _folder: Some(Arc::new(folder)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that a script imports, at its head or later.
    fn imported(text: &str) -> impl Iterator<Item = &str> {
        let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words
            .filter(|words| matches!(words.first(), Some(&("import" | "from"))))
            .filter_map(|words| words.get(1).copied())
    }

    #[test]
    fn what_scripts_import_of_ours_is_carried_too() {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
        for (script, text) in SCRIPTS.iter().filter(|(name, _)| name.ends_with(".py")) {
            for name in imported(text).map(|name| format!("{name}.py")).filter(|name| peers.join(name).exists()) {
                assert!(SCRIPTS.iter().any(|(carried, _)| *carried == name), "{script} imports {name}");
            }
        }
    }
}
