//! `report` as a user meets it: what it prints, what it writes, and its exit codes.

use std::path::Path;
use std::process::{Command, Output};

/// Without tools, so that every machine prints the same.
fn veriflash(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.args(arguments).env("PATH", "/nowhere").env_remove("CUDA_HOME").env_remove("VERIFLASH_TOOLS");
    command.output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_pack_has_a_page_and_a_summary_and_a_broken_one_has_neither() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pack = folder.path().join("pack");
    // Its first barrier is gone: a race, with lines to show.
    let printed = veriflash(&["ptx", "--problem", "B1 H1 Sq33 Sk130 D64", "--config", "1"]);
    let kernel = String::from_utf8(printed.stdout).expect("text").replacen("bar.sync 0;", "", 1);
    let file = folder.path().join("kernel.ptx");
    std::fs::write(&file, kernel).expect("the kernel is written");
    let proved = veriflash(&["prove", "--kernel", shown(&file), "--out", shown(&pack)]);
    assert_eq!(proved.status.code(), Some(1), "{}", text(&proved));

    let page = veriflash(&["report", shown(&pack)]);
    assert_eq!(page.status.code(), Some(0), "{}", text(&page));
    assert_eq!(page.stdout, std::fs::read(pack.join("report.html")).expect("a page"));
    let told = text(&page);
    assert!(told.starts_with("<!doctype html>") && told.contains("<h1>Gate merge failed</h1>"), "{told:.400}");
    assert!(told.contains("error[race-shared]") && told.contains("<span class=\"tag\">error</span> race-shared"));
    for elsewhere in ["src=\"", "url(", "@import", "<script", "http://", "https://"] {
        assert!(!told.contains(elsewhere), "the page speaks of {elsewhere}");
    }

    let summary = folder.path().join("summary.md");
    let written = veriflash(&["report", shown(&pack), "--format", "md", "--out", shown(&summary)]);
    assert_eq!((written.status.code(), text(&written).as_str()), (Some(0), ""));
    let expected = std::fs::read(pack.join("REPORT.md")).expect("a summary");
    assert_eq!(std::fs::read(&summary).expect("it was written"), expected);
    let nowhere = veriflash(&["report", shown(&pack), "--out", "/no/such/folder/report.html"]);
    assert_eq!(nowhere.status.code(), Some(2));
    let expected = "`--out /no/such/folder/report.html`: there is no folder /no/such/folder";
    assert!(text(&nowhere).contains(expected), "{}", text(&nowhere));

    // Files may have a few blocks: what was there stays whole, and nothing lies beside it.
    let kept = folder.path().join("kept").join("report.html");
    std::fs::create_dir(folder.path().join("kept")).expect("a folder");
    std::fs::write(&kept, "an older report").expect("a file");
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" report \"$1\" --out \"$2\"";
    let mut full = Command::new("sh");
    full.args(["-c", script, env!("CARGO_BIN_EXE_veriflash"), shown(&pack), shown(&kept)]);
    let full = full.output().expect("a shell");
    assert_eq!(full.status.code(), Some(2), "{}", text(&full));
    assert!(text(&full).contains("kept/report.html` cannot be written: File too large"), "{}", text(&full));
    assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "an older report");
    assert_eq!(kept.parent().map(|folder| folder.read_dir().expect("a folder").count()), Some(1));

    std::fs::write(pack.join("report.html"), told.replace("merge failed", "merge holds")).expect("a page");
    let broken = veriflash(&["report", shown(&pack), "--format", "md"]);
    assert_eq!(broken.status.code(), Some(4), "{}", text(&broken));
    assert!(text(&broken).contains("the pack is broken: report.html is not what SHA256SUMS says"), "{}", text(&broken));
}

#[test]
fn what_is_no_pack_has_no_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let empty = veriflash(&["report", shown(folder.path())]);
    assert_eq!(empty.status.code(), Some(2), "{}", text(&empty));
    assert!(text(&empty).contains("is no pack: it has neither manifest.json nor SHA256SUMS"), "{}", text(&empty));
    let missing = veriflash(&["report", "/no/such/pack"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing).starts_with("error: /no/such/pack: "), "{}", text(&missing));
}
