//! The one instruction table, a file per family. Parser, printer, verifier and the support page read the rows;
//! adding an instruction is adding a row.
//!
//! A row is: operation, spelling, operands, PTX version, target, effect.
//! The spelling is the manual's: `{.a|.b}` is optional, `(.a|.b)` required, `<int>` a list of types (see `spelling`).
//! The operands carry types, widths and vector counts (see `operands`).

mod modifiers;
mod operands;
mod spelling;

pub use operands::{Constants, Count, Field, OperandSpec, Second, Shape, TypeSpec};
pub use spelling::{Slot, Spelling};

use crate::ir::Operand;
use crate::types::{Target, Version};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

/// What an instruction does besides computing its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: equal operands give equal results.
    Pure,
    /// Reads memory, or other lanes.
    Reads,
    /// Writes memory.
    Writes,
    /// Starts a copy or product that completes later.
    Starts,
    /// Waits for something started earlier.
    Waits,
    /// Orders threads or proxies.
    Orders,
    /// Changes what runs next.
    Jumps,
}

#[derive(Debug)]
pub struct Form {
    pub op: Op,
    /// The row's first column: what `--coverage` and the support page call it.
    pub name: &'static str,
    pub spelling: Spelling,
    pub operands: Shape,
    pub version: Version,
    pub target: Target,
    pub effect: Effect,
}

/// Why a mnemonic with these operands is not an instruction that the table knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownForm {
    #[error("`{0}` is not in the form table")]
    Mnemonic(String),
    #[error("`{mnemonic}` takes the operands `{expected}`")]
    Operands { mnemonic: String, expected: String },
}

macro_rules! families {
    ($($module:ident $family:ident),* $(,)?) => {
        $(pub mod $module; pub use $module::$family;)*

        /// An operation: one row of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Op { $($family($family)),* }

        impl Op {
            /// The family: the file of the table that has the row.
            pub fn family(self) -> &'static str {
                match self { $(Op::$family(_) => stringify!($module)),* }
            }
        }

        fn all_rows() -> Vec<Form> {
            [$($module::rows()),*].into_iter().flatten().collect()
        }
    };
}

/// One family: its operations as an enum, and its rows.
macro_rules! forms {
    ($family:ident: $($op:ident $spelling:literal $operands:literal $version:literal $target:ident $effect:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $family { $($op),* }

        pub(super) fn rows() -> Vec<crate::forms::Form> {
            vec![$(crate::forms::row(
                crate::forms::Op::$family($family::$op),
                stringify!($op),
                $spelling,
                $operands,
                $version,
                stringify!($target),
                crate::forms::Effect::$effect,
            )),*]
        }
    };
}
use forms;

families! {
    integer Integer,
    float Float,
    half Half,
    compare Compare,
    movement Movement,
    convert Convert,
    atomic Atomic,
    fence Fence,
    warp Warp,
    matrix Matrix,
    wmma Wmma,
    wgmma Wgmma,
    async_copy AsyncCopy,
    bulk_copy BulkCopy,
    tensor_map TensorMap,
    barrier Barrier,
    mbarrier Mbarrier,
    control Control,
    launch Launch,
}

/// Every row, in the order of the files.
pub static FORMS: LazyLock<Vec<Form>> = LazyLock::new(all_rows);

/// Rows by the first word of their spelling.
static BY_HEAD: LazyLock<HashMap<&'static str, Vec<&'static Form>>> = LazyLock::new(|| {
    let mut map: HashMap<_, Vec<_>> = HashMap::new();
    FORMS.iter().for_each(|form| map.entry(form.spelling.head()).or_default().push(form));
    map
});

/// Rows are literals of this crate: a bad one is a bug here, found by the first test that touches the table.
fn row(
    op: Op,
    name: &'static str,
    spelling: &'static str,
    operands: &'static str,
    version: &'static str,
    target: &'static str,
    effect: Effect,
) -> Form {
    Form {
        op,
        name,
        spelling: Spelling::compile(spelling),
        operands: Shape::compile(operands),
        version: version.parse().expect("a row's PTX version"),
        target: target.parse().expect("a row's target"),
        effect,
    }
}

type Modifiers = Vec<Option<&'static str>>;
type Candidates = Rc<[(&'static Form, Modifiers)]>;

thread_local! {
    /// A kernel has thousands of instructions and few mnemonics. What is no mnemonic is not kept.
    static FOUND: RefCell<HashMap<String, Candidates>> = RefCell::default();
}

/// The row that spells `mnemonic` and takes `operands`.
pub fn select(mnemonic: &str, operands: &[Operand]) -> Result<(&'static Form, Modifiers), UnknownForm> {
    let candidates = remembered(mnemonic);
    let fitting = candidates.iter().find(|(form, chosen)| form.operands.fits(operands, form, chosen));
    match (fitting, candidates.first()) {
        (Some(found), _) => Ok(found.clone()),
        (None, Some((form, _))) => {
            Err(UnknownForm::Operands { mnemonic: mnemonic.into(), expected: form.operands.text().into() })
        }
        (None, None) => Err(UnknownForm::Mnemonic(mnemonic.into())),
    }
}

fn remembered(mnemonic: &str) -> Candidates {
    FOUND.with_borrow_mut(|found| {
        if let Some(candidates) = found.get(mnemonic) {
            return candidates.clone();
        }
        let candidates: Candidates = candidates(mnemonic).into();
        if !candidates.is_empty() {
            found.insert(mnemonic.into(), candidates.clone());
        }
        candidates
    })
}

/// Rows that spell `mnemonic`; several when they differ in their operands alone.
pub fn candidates(mnemonic: &str) -> Vec<(&'static Form, Modifiers)> {
    let mut parts = mnemonic.split('.');
    let head = parts.next().unwrap_or_default();
    let modifiers: Vec<&str> = parts.collect();
    let rows = BY_HEAD.get(head).into_iter().flatten();
    rows.filter_map(|form| Some((*form, form.spelling.matches(&modifiers)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mnemonic_means_two_things() {
        for form in FORMS.iter() {
            for mnemonic in form.spelling.examples() {
                let found = candidates(&mnemonic);
                let shapes: Vec<_> = found.iter().map(|(form, _)| form.operands.text()).collect();
                let mut distinct = shapes.clone();
                distinct.dedup();
                assert!(found.iter().any(|(found, _)| std::ptr::eq(*found, form)), "{mnemonic} is not read back");
                assert_eq!(shapes, distinct, "{mnemonic} is spelled by two rows with equal operands");
            }
        }
    }

    #[test]
    fn modifiers_may_stand_in_any_order() {
        let orders = [
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
            "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16",
            "ldmatrix.sync.aligned.trans.m8n8.x4.shared.b16",
        ];
        for mnemonic in orders {
            let (form, chosen) = &candidates(mnemonic)[0];
            assert_eq!(form.spelling.print(chosen), orders[0]);
        }
    }

    #[test]
    fn what_the_manual_does_not_write_is_refused() {
        for mnemonic in ["ldmatrix.sync.aligned.m8n8.trans.shared.b16", "add.b32", "add.s32.s32", "bar", "mul.s32"] {
            assert!(candidates(mnemonic).is_empty(), "{mnemonic}");
        }
    }
}
