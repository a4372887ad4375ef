//! Two packs of one kernel: what got worse is named, and what is the same is not.
#![cfg(unix)]

mod support;

use lab::compare::{Comparison, Verdict, compare};
use lab::{Error, Request, Silent, Toolbox, prove};
use std::fs;
use std::path::{Path, PathBuf};
use support::{CODE, SAID, kernel_text, request, tools};

struct Packs {
    folder: tempfile::TempDir,
}

impl Packs {
    fn new() -> Packs {
        Packs { folder: tempfile::tempdir().unwrap() }
    }

    /// A pack of a kernel of which ptxas and nvdisasm say this.
    fn make(&self, name: &str, text: &str, said: &str, code: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        let request = Request { tools: tools(&folder, said, code), ..request(text, &folder.join("pack")) };
        prove(&request, &Silent).unwrap().folder
    }

    fn standard(&self, name: &str) -> PathBuf {
        self.make(name, &kernel_text(), SAID, CODE)
    }
}

fn compared(left: &Path, right: &Path) -> Comparison {
    compare(left, right).unwrap()
}

fn worse(comparison: &Comparison) -> Vec<String> {
    let of_stages = comparison.stages.iter().filter(|pair| pair.verdict() == Verdict::Worse);
    let of_figures = comparison.changes.iter().filter(|change| change.verdict == Verdict::Worse);
    let figure = |change: &lab::compare::Change| format!("{}: {:?} {:?}", change.figure, change.left, change.right);
    of_stages.map(|pair| pair.stage().to_string()).chain(of_figures.map(figure)).collect()
}

#[test]
fn a_pack_made_again_is_the_same() {
    let packs = Packs::new();
    let comparison = compared(&packs.standard("old"), &packs.standard("new"));
    assert_eq!((comparison.verdict(), comparison.changes.len(), comparison.circumstances.len()), (Verdict::Same, 0, 0));
    assert_eq!(comparison.kernels[0].sentence(), "same");
}

#[test]
fn registers_and_fewer_blocks_are_worse_and_the_other_way_better() {
    let packs = Packs::new();
    let said = SAID.replace("Used 96", "Used 232");
    let (old, new) = (packs.standard("old"), packs.make("new", &kernel_text(), &said, CODE));
    let comparison = compared(&old, &new);
    assert_eq!(comparison.verdict(), Verdict::Worse);
    let expected = ["sm_80", "sm_89", "sm_90"];
    let registers = expected.map(|sm| format!("registers of attention_forward on {sm}: Some(96) Some(232)"));
    assert!(registers.iter().all(|one| worse(&comparison).contains(one)), "{:?}", worse(&comparison));
    assert!(worse(&comparison).iter().any(|one| one.starts_with("blocks a processor")), "{:?}", worse(&comparison));
    assert_eq!(compared(&new, &old).verdict(), Verdict::Better);
}

#[test]
fn machine_code_that_changed_is_no_worse_unless_it_touches_local_memory() {
    let packs = Packs::new();
    let old = packs.standard("old");
    let longer = CODE.replace("EXIT ;", "NOP ;\n        /*0040*/                   EXIT ;");
    let changed = compared(&old, &packs.make("longer", &kernel_text(), SAID, &longer));
    assert_eq!((changed.verdict(), changed.changes[0].figure.as_str()), (Verdict::Changed, "instructions on sm_80"));
    let local = CODE.replace("EXIT ;", "STL [R1], R5 ;");
    let comparison = compared(&old, &packs.make("local", &kernel_text(), SAID, &local));
    assert_eq!(comparison.verdict(), Verdict::Worse);
    let stage_and_figure = ["code", "accesses of local memory on sm_80: Some(0) Some(1)"];
    assert!(
        stage_and_figure.iter().all(|one| worse(&comparison).contains(&one.to_string())),
        "{:?}",
        worse(&comparison)
    );
}

#[test]
fn a_barrier_that_was_removed_is_a_new_finding() {
    let packs = Packs::new();
    let broken = kernel_text().replacen("bar.sync 0;", "", 1);
    let (old, new) = (packs.standard("old"), packs.make("new", &broken, SAID, CODE));
    let comparison = compared(&old, &new);
    let worse = worse(&comparison);
    assert!(worse.contains(&"sanitize".into()), "{worse:?}");
    assert!(worse.iter().any(|one| one.starts_with("findings error[race-shared]: None Some(")), "{worse:?}");
    assert_eq!(comparison.kernels[0].sentence(), "other module, same recipe");
    assert_eq!(compared(&new, &old).verdict(), Verdict::Better);
}

#[test]
fn a_stage_that_is_not_run_any_more_is_worse() {
    let packs = Packs::new();
    let bare = packs.folder.path().join("bare");
    let without = Request { tools: Toolbox::none(), ..request(&kernel_text(), &bare) };
    prove(&without, &Silent).unwrap();
    let old = packs.standard("old");
    let comparison = compared(&old, &bare);
    assert_eq!(worse(&comparison), ["resources", "code"]);
    let differs: Vec<&str> = comparison.circumstances.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(differs, ["machine.ptxas", "machine.nvdisasm"]);
    assert_eq!(compared(&bare, &old).verdict(), Verdict::Better);
}

#[test]
fn a_pack_that_was_edited_is_not_compared() {
    let packs = Packs::new();
    let (old, new) = (packs.standard("old"), packs.standard("new"));
    fs::write(new.join("logs/parity.json"), "{}").unwrap();
    let error = compare(&old, &new).unwrap_err();
    assert!(matches!(&error, Error::BrokenPack { why, .. } if why.contains("logs/parity.json")), "{error}");
    assert!(matches!(compare(&old, packs.folder.path()).unwrap_err(), Error::Folder { .. }));
}
