//! `sanitize --format sarif` has the shape that SARIF 2.1.0 asks for. The required properties are those of the OASIS schema.

use serde_json::Value;
use std::process::Command;

/// A thread reads shared memory that another wrote, without a barrier; `.loc` says who wrote the kernel.
const RACE: &str = r#"//@ [[launch]]
//@ grid = [1, 1, 1]
//@ block = [64, 1, 1]
//@ args = []
.version 7.0
.target sm_80
.address_size 64
.visible .entry k()
{
    .reg .b32 %place, %value;
    .shared .align 4 .b32 values[64];
    .loc 1 7 3
    mov.u32 %place, %tid.x;
    shl.b32 %place, %place, 2;
    st.shared.u32 [%place], %place;
    .loc 1 9 5
    xor.b32 %place, %place, 128;
    ld.shared.u32 %value, [%place];
    ret;
}
.file 1 "kernels/my kernel.cu"
"#;

fn sarif(more: &[&str], text: &str) -> (i32, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("k.ptx"), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_veriflash"));
    command.current_dir(folder.path()).args(["sanitize", "k.ptx", "--format", "sarif"]).args(more);
    let output = command.output().expect("the binary runs");
    let code = output.status.code().expect("it was not killed");
    (code, serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("`{name}` of {value:#}"))
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} of {value:#}"))
}

/// A `location` of the schema: a URI without blanks, lines and columns from one.
fn check_location(location: &Value) {
    let uri = text(location, "/physicalLocation/artifactLocation/uri");
    assert!(!uri.is_empty() && !uri.contains(' '), "{uri}");
    for field in ["startLine", "startColumn"] {
        let number = location.pointer(&format!("/physicalLocation/region/{field}")).and_then(Value::as_u64);
        assert!(number.is_some_and(|number| number >= 1), "{field} of {location:#}");
    }
}

#[test]
fn a_document_has_what_the_schema_requires() {
    let (code, document) = sarif(&[], RACE);
    assert_eq!(code, 1);
    assert_eq!(text(&document, "/version"), "2.1.0");
    let [run] = list(&document, "runs") else { panic!("one run") };
    let driver = &run["tool"]["driver"];
    assert_eq!(text(driver, "/name"), "veriflash");
    for rule in list(driver, "rules") {
        assert!(text(rule, "/help/markdown").contains("\nFix: "), "{rule:#}");
        assert!(!text(rule, "/shortDescription/text").is_empty());
        assert!(["error", "warning", "note"].contains(&text(rule, "/defaultConfiguration/level")));
    }
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    assert_eq!(run["invocations"][0]["exitCode"], 1);
    let results = list(run, "results");
    assert!(!results.is_empty());
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(driver["rules"][index]["id"], result["ruleId"]);
        assert!(!text(result, "/message/text").is_empty());
        list(result, "locations").iter().chain(list(result, "relatedLocations")).for_each(check_location);
    }
}

#[test]
fn a_race_points_to_both_instructions_and_their_source() {
    let (_, document) = sarif(&[], RACE);
    let result = document.pointer("/runs/0/results/0").expect("a finding");
    assert_eq!((text(result, "/ruleId"), text(result, "/level")), ("race-shared", "error"));
    let place = |location: &Value| {
        let place = &location["physicalLocation"];
        (text(place, "/artifactLocation/uri").to_string(), place["region"]["startLine"].as_u64().expect("a line"))
    };
    assert_eq!(place(&result["locations"][0]), ("k.ptx".into(), 18));
    let related: Vec<_> = list(result, "relatedLocations").iter().map(place).collect();
    let source = "kernels/my%20kernel.cu".to_string();
    assert_eq!(related, [("k.ptx".into(), 15), (source.clone(), 9), (source, 7)]);
}

#[test]
fn a_fingerprint_survives_when_code_moves() {
    let fingerprint = |text: &str| {
        let (_, document) = sarif(&[], text);
        document.pointer("/runs/0/results/0/partialFingerprints").expect("fingerprints").clone()
    };
    let moved = RACE.replace(".version 7.0", "// One more line.\n.version 7.0");
    assert_eq!(fingerprint(RACE), fingerprint(&moved));
    let other = RACE.replace("ld.shared.u32 %value", "ld.shared.s32 %value");
    assert_ne!(fingerprint(RACE), fingerprint(&other));
}

#[test]
fn a_clean_kernel_has_no_results() {
    let (code, document) = sarif(&[], &RACE.replace("    ld.shared.u32 %value, [%place];\n", ""));
    assert_eq!((code, list(&document["runs"][0], "results").len()), (0, 0));
}
