//! Every filetest as a test of its own name.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::PathBuf;
use std::process::ExitCode;
use veriflash::filetests::{Case, Judge, Verdict, find};

fn main() -> ExitCode {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let cases = find(&[folder]).expect("the folder of filetests is readable");
    let trial = |case: Case| Trial::test(case.name.clone(), move || judge(&case));
    libtest_mimic::run(&Arguments::from_args(), cases.into_iter().map(trial).collect()).exit_code()
}

fn judge(case: &Case) -> Result<(), Failed> {
    match Judge::default().judge(case) {
        Verdict::Failed(problems) => Err(problems.join("\n").into()),
        Verdict::Passed | Verdict::Skipped(_) => Ok(()),
    }
}
