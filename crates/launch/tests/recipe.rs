//! The recipe reader as a user meets it: what it accepts, what it says when it refuses, and that it never panics.

use launch::buffer::Init;
use launch::expectation::Expect;
use launch::packed::Packed;
use launch::resolved::Placement;
use launch::tensor_map::ResolvedMap;
use launch::{Buffer, Element, Expr, Kernel, Limits, Memory, Recipe, cure, header};
use proptest::prelude::*;

/// Every key of the grammar.
const FULL: &str = r#"
ptx = "kernel.ptx"
target = "sm_90a"
[let]
n = 1024
m = "n / 2 + 1"
[buffer.x]
type = "bf16"
shape = ["n", 128]
init = "normal(1.0)"
[buffer.lookup]
type = "u8"
shape = [16]
file = "lookup.bin"
[buffer."odd name"]
type = "s64"
shape = [2]
init = "const(-3)"
expect = [-3, "n"]
[buffer.out]
type = "f32"
shape = ["n"]
expect = "out.npy"
expect_type = "f64"
tolerance = "rel_l2(1e-3)"
[buffer.list]
type = "u32"
shape = [3]
init = [0xffffffff, "n", 7]
[buffer.words]
type = "f16"
shape = [3]
init.hex = """
3c00 bc00  # one and minus one
7E00
"""
expect = { hex = "3ff0000000000000 bff0000000000000 7ff8000000000000" }
expect_type = "f64"
[buffer.report]
type = "u64"
shape = [1]
init = "zeros"
[buffer.bits]
type = "e4m3"
shape = [4]
expect = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
[[launch]]
entry = "first"
grid = ["ceil_div(n, 128)", 2, 1]
block = [128, 1, 1]
cluster = [2, 1, 1]
shared = "48 * 1024"
repeat = 3
args = [
  { buffer = "x", offset = "2 * m" }, { u32 = "n" }, { f32 = 0.125, name = "scale_log2" }, { null = true },
  { s8 = -1 }, { u64 = "18446744073709551615" }, { f16 = inf }, { f64 = nan },
  { map = "x", dims = [64, "n"], strides = [128], box = [64, 64], element_strides = [1, 1], swizzle = "128B", interleave = "none", l2 = "256B", oob = "zero" },
  { bytes = "params.bin", patch = [{ at = 16, buffer = "x" }, { at = 24, u32 = "m" }] },
]
[[launch]]
grid = [1, 1, 1]
block = [32, 1, 1]
[attention]
q = "x"
k = "x"
v = "x"
o = "out"
lse = "out"
scale = { arg = "scale_log2", factor = "log2e" }
strides = { q = [1, 2, 3, 1], k = ["n", 2, 3, 1], v = [1, 2, 3, 1], o = [1, 2, 3, 1] }
mask = "window(n, 0)"
lengths = { q = "n", k = "m", batch = 1, heads = 2, kv_heads = 1, dim = 192, value_dim = 128 }
[assertions]
report = "report"
list = [{ message = "\"scores\" are //~ finite", at = "kernel.rs:7" }, { message = "" }]
"#;

/// Bits as words, with and without comments.
const WORDS: &str = r#"
[buffer.x]
type = "f32"
shape = [20]
init.hex = """
  3f800000 40000000 40400000 40800000 40a00000 40c00000 40e00000 41000000 41100000 41200000  # one to ten
  3F800000 40000000 40400000 40800000 40A00000 40C00000 40E00000 41000000 41100000 41200000
"""
expect.hex = """
  3f800000 40000000 40400000 40800000 40a00000 40c00000 40e00000 41000000 41100000 41200000
  # Once more.
  3f800000 40000000 40400000 40800000 40a00000 40c00000 40e00000 41000000 41100000 41200000"""
"#;

/// One to four, packed: what `gzip -9n | base64` prints of them as f32, and as f64.
const PACKED: &str = r#"
[let]
n = 1
[buffer.x]
type = "f32"
shape = ["2 * n", 2]
init.packed = """
H4sIAAAAAAACA2NgaLBn  # a comment
YGBwACIgbnAAAFQUp4sQAAAA
"""
expect = { packed = "H4sIAAAAAAACA2NgAIEP9gwQ4AChOKC0gAMAK2LtDCAAAAA=" }
expect_type = "f64"
"#;

const SMALL: &str = r#"
[let]
n = 1024

[buffer.x]
type = "f32"
shape = ["n"]
init = "ramp"
expect = [1.0]
tolerance = "2ulp"

[[launch]]
grid = ["ceil_div(n, 128)", 1, 1]
block = [128, 1, 1]
args = [{ buffer = "x" }, { u32 = "n" }]
"#;

fn failure(from: &str, to: &str) -> String {
    let text = SMALL.replace("expect = [1.0]\ntolerance = \"2ulp\"\n", "");
    assert!(text.contains(from), "{from}");
    let recipe = Recipe::parse("kernel.toml", &text.replace(from, to));
    recipe.and_then(|recipe| recipe.resolve(&Limits::default())).unwrap_err().to_string()
}

#[test]
fn the_whole_grammar_reads_back() {
    let recipe = Recipe::parse("kernel.toml", FULL).unwrap();
    assert_eq!(recipe.buffers.len(), 8);
    assert_eq!(recipe.buffers[2].name, "odd name");
    assert_eq!(recipe.launches[0].args.len(), 10);
    let printed = recipe.to_toml();
    assert_eq!(Recipe::parse("again", &printed).unwrap(), recipe, "{printed}");
    let header = recipe.to_header();
    assert!(header.lines().all(|line| line.starts_with("//@ ")));
    assert_eq!(header::read("again.ptx", &format!("{header}.version 8.0\n")).unwrap().unwrap(), recipe);
    assert_eq!(recipe.hash(), header::read("again.ptx", &header).unwrap().unwrap().hash());
}

fn word_failure(from: &str, to: &str) -> String {
    header_failure(WORDS, from, to)
}

/// The error of a recipe with one thing changed, as lines of a `.ptx`.
fn header_failure(recipe: &str, from: &str, to: &str) -> String {
    assert!(recipe.contains(from), "{from}");
    let header: String =
        recipe.replacen(from, to, 1).trim_start().lines().map(|line| format!("//@ {line}\n")).collect();
    let recipe = header::read("case.ptx", &header).map(Option::unwrap);
    recipe.and_then(|recipe| recipe.resolve(&Limits::default())).unwrap_err().to_string()
}

#[test]
fn words_are_bits() {
    let recipe = Recipe::parse("kernel.toml", WORDS).unwrap();
    let memory = Memory::new(&recipe.resolve(&Limits::default()).unwrap(), 0).unwrap();
    let values: Vec<f32> =
        memory.buffers[0].contents.to_vec().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values[..10], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    assert_eq!(values[..10], values[10..]);
    memory.check(&recipe.resolve(&Limits::default()).unwrap()).unwrap();
    assert_eq!(Recipe::parse("again", &recipe.to_toml()).unwrap(), recipe);
}

#[test]
fn wrong_words_are_named() {
    insta::assert_snapshot!(word_failure("41200000  #", "4120000  #"), @"case.ptx:5:88: `init` of [buffer.x]: word 10 is `4120000`: expected 8 digits for f32, found 7");
    insta::assert_snapshot!(word_failure("40A00000", "0x40A000"), @"case.ptx:6:43: `init` of [buffer.x]: word 15 is `0x40A000`: `x` is no hexadecimal digit");
    insta::assert_snapshot!(word_failure("40A00000", "040A00000"), @"case.ptx:6:43: `init` of [buffer.x]: word 15 is `040A00000`: expected 8 digits for f32, found 9");
    insta::assert_snapshot!(word_failure("41200000  #", "#"), @"case.ptx:1:13: `init` of buffer `x` lists 19 values: it has 20 elements");
    insta::assert_snapshot!(word_failure("  # Once more.", "  3f800000"), @"case.ptx:1:13: `expect` of buffer `x` lists 21 values: it has 20 elements");
    insta::assert_snapshot!(word_failure("40A00000", "40,A0000é"), @"case.ptx:6:43: `init` of [buffer.x]: word 15 is `40,A0000é`: `,` is no hexadecimal digit");
    insta::assert_snapshot!(word_failure("init.hex", "init.words"), @"case.ptx:4:10: unknown key `words` in `init` of [buffer.x]: expected one of hex, packed");
}

#[test]
fn packed_words_are_bits() {
    let recipe = Recipe::parse("kernel.toml", PACKED).unwrap();
    let resolved = recipe.resolve(&Limits::default()).unwrap();
    let mut memory = Memory::new(&resolved, 0).unwrap();
    let bytes = memory.buffers[0].contents.to_vec();
    assert_eq!(bytes, [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
    assert!(memory.buffers[0].initialised);
    memory.check(&resolved).unwrap();
    memory.buffers[0].contents = [1f32, 2.0, 5.0, 4.0].map(f32::to_le_bytes).concat().into();
    insta::assert_snapshot!(memory.check(&resolved).unwrap_err(), @"buffer `x`: 1 of 4 elements differ (exact), first at [1, 0]: expected 3.0 (0x4008000000000000), found 5.0 (0x40a00000)");
    insta::assert_snapshot!(recipe.to_toml(), @r#"
    [let]
    n = 1
    [buffer.x]
    type = "f32"
    shape = ["2*n", 2]
    init.packed = """
    H4sIAAAAAAACA2NgaLBnYGBwACIgbnAAAFQUp4sQAAAA
    """
    expect.packed = """
    H4sIAAAAAAACA2NgAIEP9gwQ4AChOKC0gAMAK2LtDCAAAAA=
    """
    expect_type = "f64"
"#);
}

#[test]
fn wrong_packed_words_are_named() {
    let packed_failure = |from, to| header_failure(PACKED, from, to);
    insta::assert_snapshot!(packed_failure("n = 1", "n = 2"), @"case.ptx:7:1: `init` of buffer `x` unpacks to 16 bytes: expected 32, 8 elements of f32; pack exactly those or change `shape`");
    insta::assert_snapshot!(packed_failure("[\"2 * n\", 2]", "[3]"), @"case.ptx:7:1: `init` of buffer `x` unpacks to more than 12 bytes: expected 12, 3 elements of f32; pack exactly those or change `shape`");
    insta::assert_snapshot!(packed_failure("f64", "f32"), @"case.ptx:10:26: `expect` of buffer `x` unpacks to more than 16 bytes: expected 16, 4 elements of f32; pack exactly those or change `shape`");
    insta::assert_snapshot!(packed_failure("YGBw", "YG!w"), @"case.ptx:8:7: `init` of [buffer.x]: `!` is no digit of base64");
    insta::assert_snapshot!(packed_failure("YGBw", "YGB"), @"case.ptx:7:1: `init` of [buffer.x] is no base64 (Invalid padding): expected what `gzip -9n < x.bin | base64` prints");
    insta::assert_snapshot!(packed_failure("YGBw", "YGBx"), @"case.ptx:7:1: `init` of buffer `x` does not unpack (corrupt gzip stream does not have a matching checksum): expected what `gzip -9n < x.bin | base64` prints");
    insta::assert_snapshot!(packed_failure("H4sI", "AAAA"), @"case.ptx:7:1: `init` of buffer `x` does not unpack (invalid gzip header): expected what `gzip -9n < x.bin | base64` prints");
    insta::assert_snapshot!(packed_failure("p4sQAAAA", "p4sQAAAAAAAA"), @"case.ptx:7:1: `init` of buffer `x` does not unpack (unexpected end of file): expected what `gzip -9n < x.bin | base64` prints");
    insta::assert_snapshot!(packed_failure("p4sQAAAA", "p4sQ"), @"case.ptx:7:1: `init` of buffer `x` does not unpack (unexpected end of file): expected what `gzip -9n < x.bin | base64` prints");
    insta::assert_snapshot!(packed_failure("init.packed", "init.hex = \"\"\ninit.packed"), @"case.ptx:7:19: `init` of [buffer.x] has both `hex` and `packed`: remove one");
    insta::assert_snapshot!(packed_failure("{ packed", "{ pcked"), @"case.ptx:10:16: unknown key `pcked` in `expect` of [buffer.x]: did you mean `packed`?");
    insta::assert_snapshot!(packed_failure("= { packed = \"H4sIAAAAAAACA2NgAIEP9gwQ4AChOKC0gAMAK2LtDCAAAAA=\" }", "= {}"), @"case.ptx:10:14: `expect` of [buffer.x] has no `hex`: add one");
}

/// Of one bomb, the second half is cut off: whoever inflates all of it meets the cut and not the bound.
#[test]
fn packed_words_are_not_inflated_beyond_the_buffer() {
    let mut buffer = Buffer::new("x", Element::U32, vec![Expr::from(4u32)]);
    buffer.init = Init::Packed(Packed::new(&vec![0; 64 << 20]));
    let bomb = Recipe { buffers: vec![buffer], ..Recipe::default() }.to_toml();
    let lines: Vec<&str> = bomb.lines().collect();
    let cut = [&lines[..lines.len() / 2], &lines[lines.len() - 1..]].concat().join("\n");
    for text in [bomb, cut] {
        let error = Recipe::parse("bomb.toml", &text).unwrap().resolve(&Limits::default()).unwrap_err();
        insta::allow_duplicates! { insta::assert_snapshot!(error, @"bomb.toml:5:1: `init` of buffer `x` unpacks to more than 16 bytes: expected 16, 4 elements of u32; pack exactly those or change `shape`") }
    }
}

#[test]
fn buffers_keep_the_order_of_the_text() {
    let names: Vec<_> = Recipe::parse("kernel.toml", FULL).unwrap().buffers.into_iter().map(|b| b.name).collect();
    assert_eq!(names, ["x", "lookup", "odd name", "out", "list", "words", "report", "bits"]);
}

#[test]
fn files_are_relative_to_the_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.toml");
    std::fs::write(folder.path().join("params.bin"), [7u8; 32]).unwrap();
    let recipe = Recipe::parse(path.to_str().unwrap(), FULL).unwrap();
    let resolved = recipe.resolve(&Limits::default()).unwrap();
    let launch = &resolved.launches[0];
    assert_eq!((launch.grid, launch.shared, launch.repeat), ([8, 2, 1], 49152, 3));
    assert_eq!(launch.args[9].value.size(), 32);
    let lengths = resolved.lengths.unwrap();
    assert_eq!((lengths.k, lengths.dim, lengths.value_dim), (513, 192, 128));
    std::fs::write(folder.path().join("params.bin"), [7u8; 20]).unwrap();
    assert!(recipe.resolve(&Limits::default()).unwrap_err().to_string().contains("at is 16: expected 0 to 12"));
}

#[test]
fn slips_are_named() {
    insta::assert_snapshot!(failure("init", "innit"), @"kernel.toml:8:1: unknown key `innit` in [buffer.x]: did you mean `init`?");
    insta::assert_snapshot!(failure("[buffer.x]", "[bufer.x]"), @"kernel.toml:5:2: unknown key `bufer` in the recipe: did you mean `buffer`?");
    insta::assert_snapshot!(failure("{ buffer = \"x\" }", "{ buffr = \"x\" }"), @"kernel.toml:13:11: unknown key `buffr` in the argument: did you mean `buffer`?");
    insta::assert_snapshot!(failure("{ buffer = \"x\" }", "{ buffer = \"xs\" }"), @"kernel.toml:13:9: unknown buffer `xs`: did you mean `x`?");
    insta::assert_snapshot!(failure("{ u32 = \"n\" }", "{ u32 = \"n\", u64 = 1 }"), @"kernel.toml:13:27: the argument is both `u32` and `u64`: keep one");
    insta::assert_snapshot!(failure("{ u32 = \"n\" }", "{ u8 = \"n\" }"), @"kernel.toml:13:27: 1024 does not fit in u8: expected 0 to 255");
    insta::assert_snapshot!(failure("\"f32\"", "\"float\""), @"kernel.toml:6:8: unknown type `float`: expected one of u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 e4m3 e5m2");
    insta::assert_snapshot!(failure("block = [128, 1, 1]", "block = [128, 1]"), @"kernel.toml:12:9: list has 2 entries: expected 3");
    insta::assert_snapshot!(failure("block = [128, 1, 1]", "block = 128"), @"kernel.toml:12:9: expected a list, found the integer 128");
    insta::assert_snapshot!(failure("block = [128, 1, 1]\n", ""), @"kernel.toml:10:1: [[launch]] number 0 has no `block`: add one");
    insta::assert_snapshot!(failure("ceil_div(n, 128)", "ceil_div(n, 128"), @"kernel.toml:11:25: expected `)`, found the end of the expression");
    insta::assert_snapshot!(failure("ceil_div(n, 128)", "ceil_div(rows, 128)"), @"kernel.toml:11:19: unknown name `rows`: add `rows = …` under [let]");
    let assertions = |report: &str| failure("[let]", &format!("[assertions]\nreport = \"{report}\"\nlist = []\n[let]"));
    insta::assert_snapshot!(assertions("x"), @"kernel.toml:2:1: `report` is buffer `x` of f32: expected one of u64");
    let poisoned = "[assertions]\nreport = \"r\"\nlist = []\n[buffer.r]\ntype = \"u64\"\nshape = [1]\n[let]";
    insta::assert_snapshot!(failure("[let]", poisoned), @r#"kernel.toml:2:1: `report` is buffer `r`, which may say something already: expected `init = "zeros"`"#);
    insta::assert_snapshot!(assertions("y"), @"kernel.toml:2:1: unknown buffer `y`: did you mean `x`?");
    insta::assert_snapshot!(failure("[let]", "[let"), @"kernel.toml:2:5: not valid TOML: unclosed table, expected `]`");
}

#[test]
fn bounds_hold() {
    insta::assert_snapshot!(failure("n = 1024", "n = 1000000000"), @"kernel.toml:5:9: buffer `x` needs 4000000000 bytes, more than the limit of 1073741824");
    insta::assert_snapshot!(failure("[\"n\"]", "[\"n\", \"n*n*n\", \"n*n*n\"]"), @"kernel.toml:5:9: buffer `x` needs more than 2^64 bytes, more than the limit of 1073741824");
    insta::assert_snapshot!(failure("[\"n\"]", "[\"n\", 0]"), @"kernel.toml:7:15: shape is 0: expected at least 1");
    insta::assert_snapshot!(failure("block = [128, 1, 1]", "block = [128, 16, 1]"), @"kernel.toml:12:10: block has 2048 threads: expected at most 1024");
    insta::assert_snapshot!(failure("grid = [\"ceil_div(n, 128)\", 1, 1]", "grid = [1, 70000, 1]"), @"kernel.toml:11:12: grid.y is 70000: expected 1 to 65535");
    insta::assert_snapshot!(failure("block = [", "cluster = [3, 1, 1]\nblock = ["), @"kernel.toml:12:12: grid.x is 8: expected a multiple of the cluster's 3");
    insta::assert_snapshot!(failure("{ buffer = \"x\" }", "{ buffer = \"x\", offset = 4097 }"), @"kernel.toml:13:34: offset is 4097: expected 0 to 4096");
}

#[test]
fn the_limit_counts_all_buffers_together() {
    let text = "[buffer.a]\ntype = \"u8\"\nshape = [600]\n[buffer.b]\ntype = \"u8\"\nshape = [600]\n";
    let recipe = Recipe::parse("kernel.toml", text).unwrap();
    assert!(recipe.resolve(&Limits { memory_bytes: 1200 }).is_ok());
    insta::assert_snapshot!(recipe.resolve(&Limits { memory_bytes: 1000 }).unwrap_err(), @"kernel.toml:4:9: buffer `b` needs 600 bytes, more than the limit of 1000, of which 400 are left");
}

fn checked(kind: &str, init: &str, expect: &str, tolerance: &str) -> Result<(), String> {
    let expect_type = if kind.starts_with('f') { "expect_type = \"f64\"\n" } else { "" };
    let text = format!(
        "[buffer.x]\ntype = \"{kind}\"\nshape = [2, 2]\ninit = \"{init}\"\nexpect = {expect}\n{expect_type}tolerance = \"{tolerance}\"\n"
    );
    let resolved = Recipe::parse("kernel.toml", &text).unwrap().resolve(&Limits::default()).unwrap();
    Memory::new(&resolved, 0).unwrap().check(&resolved).map_err(|error| error.to_string())
}

#[test]
fn expectations_judge() {
    assert_eq!(checked("f32", "ramp", "[0.0, 1.0, 2.0, 3.0]", "exact"), Ok(()));
    assert_eq!(checked("s16", "ramp", "[0, 1, 2, 3]", "exact"), Ok(()));
    assert_eq!(checked("f32", "ramp", "[0.0, 1.00000012, 2.0, 3.0]", "1ulp"), Ok(()));
    assert_eq!(checked("f32", "const(0.1)", "[0.1, 0.1, 0.1, 0.1]", "exact"), Ok(()));
    assert_eq!(checked("f32", "ramp", "[0.0, 1.1, 2.0, 3.0]", "abs(0.11)"), Ok(()));
    assert_eq!(checked("f32", "ramp", "[0.0, 1.1, 2.0, 3.0]", "rel_l2(0.03)"), Ok(()));
    assert_eq!(checked("f32", "const(inf)", "[inf, inf, inf, inf]", "2ulp"), Ok(()));
    assert_eq!(checked("f32", "const(inf)", "[inf, inf, inf, inf]", "rel_l2(1e-3)"), Ok(()));
    assert!(checked("f32", "const(inf)", "[inf, -inf, inf, inf]", "rel_l2(1e-3)").is_err());
    for tolerance in ["exact", "9ulp", "abs(9.0)", "rel_l2(9.0)"] {
        let nan = checked("f32", "const(nan)", "[nan, nan, nan, nan]", tolerance);
        assert!(nan.unwrap_err().contains("4 of 4 elements differ"), "{tolerance}");
    }
    let failure = |kind, init, expect, tolerance| checked(kind, init, expect, tolerance).unwrap_err();
    insta::assert_snapshot!(failure("f32", "ramp", "[0.0, 1.0, 5.0, 6.0]", "exact"), @"buffer `x`: 2 of 4 elements differ (exact), first at [1, 0]: expected 5.0 (0x4014000000000000), found 2.0 (0x40000000)");
    insta::assert_snapshot!(failure("s16", "ramp", "[0, 1, 2, -3]", "exact"), @"buffer `x`: 1 of 4 elements differ (exact), first at [1, 1]: expected -3, found 3");
    insta::assert_snapshot!(failure("f32", "ramp", "[0.0, 1.00000024, 2.0, 3.0]", "1ulp"), @"buffer `x`: 1 of 4 elements differ (1ulp), first at [0, 1]: expected 1.00000024 (0x3ff00000406caca7), found 1.0 (0x3f800000)");
    insta::assert_snapshot!(failure("f32", "ramp", "[0.0, 1.1, 2.0, 3.0]", "abs(0.09)"), @"buffer `x`: 1 of 4 elements differ (abs(0.09)), first at [0, 1]: expected 1.1 (0x3ff199999999999a), found 1.0 (0x3f800000)");
    insta::assert_snapshot!(failure("f32", "ramp", "[0.0, 1.1, 2.0, 3.0]", "rel_l2(0.02)"), @"buffer `x`: rel_l2 is 2.653e-2: expected at most 0.02; 1 of 4 elements differ, first at [0, 1]: expected 1.1 (0x3ff199999999999a), found 1.0 (0x3f800000)");
    insta::assert_snapshot!(failure("f32", "poison", "[nan, nan, nan, nan]", "exact"), @"buffer `x`: 4 of 4 elements differ (exact), first at [0, 0]: expected NaN (0x7ff8000000000000), found NaN (0x7fa5a5a5)");
    insta::assert_snapshot!(failure("f32", "poison", "[nan, nan, nan, nan]", "rel_l2(1.0)"), @"buffer `x`: rel_l2 is NaN: expected at most 1.0; 4 of 4 elements differ, first at [0, 0]: expected NaN (0x7ff8000000000000), found NaN (0x7fa5a5a5)");
    insta::assert_snapshot!(failure("f32", "const(1)", "[0.0, 0.0, 0.0, 0.0]", "rel_l2(1.0)"), @"buffer `x`: rel_l2 is inf: expected at most 1.0; 4 of 4 elements differ, first at [0, 0]: expected 0.0 (0x0000000000000000), found 1.0 (0x3f800000)");
    insta::assert_snapshot!(failure("f32", "zeros", "[-0.0, 0.0, 0.0, 0.0]", "exact"), @"buffer `x`: 1 of 4 elements differ (exact), first at [0, 0]: expected -0.0 (0x8000000000000000), found 0.0 (0x00000000)");
}

#[test]
fn hashes_judge_bytes() {
    let text = |digits: &str| {
        format!("[buffer.x]\ntype = \"u8\"\nshape = [3]\ninit = \"const(97)\"\nexpect = \"sha256:{digits}\"\n")
    };
    let check = |digits: &str| {
        let resolved = Recipe::parse("kernel.toml", &text(digits))?.resolve(&Limits::default())?;
        Memory::new(&resolved, 0)?.check(&resolved)
    };
    assert!(check("9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0").is_ok());
    assert!(check(&"0".repeat(64)).unwrap_err().to_string().contains("found sha256:9834876d"));
    let tolerant = format!("{}tolerance = \"2ulp\"\n", text(&"0".repeat(64)));
    assert!(Recipe::parse("kernel.toml", &tolerant).unwrap_err().to_string().contains("which is always exact"));
    assert!(check("beef").unwrap_err().to_string().contains("is no SHA-256"));
}

#[test]
fn files_judge_and_fill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.toml");
    std::fs::write(folder.path().join("x.bin"), [1u8, 2, 3, 4]).unwrap();
    let text = "[buffer.x]\ntype = \"u8\"\nshape = [4]\nfile = \"x.bin\"\nexpect = \"x.bin\"\n";
    let resolved = Recipe::parse(path.to_str().unwrap(), text).unwrap().resolve(&Limits::default()).unwrap();
    let mut memory = Memory::new(&resolved, 0).unwrap();
    memory.check(&resolved).unwrap();
    let mut bytes = memory.buffers[0].contents.to_vec();
    bytes[2] = 9;
    memory.buffers[0].contents = bytes.into();
    insta::assert_snapshot!(memory.check(&resolved).unwrap_err(), @"buffer `x`: 1 of 4 elements differ (exact), first at [2]: expected 3, found 9");
}

#[test]
fn poison_counts_as_never_written() {
    let text = "[buffer.a]\ntype = \"f32\"\nshape = [1]\n[buffer.b]\ntype = \"f32\"\nshape = [1]\ninit = \"zeros\"\n";
    let resolved = Recipe::parse("kernel.toml", text).unwrap().resolve(&Limits::default()).unwrap();
    let memory = Memory::new(&resolved, 0).unwrap();
    assert!(!memory.buffer("a").unwrap().initialised);
    assert!(memory.buffer("b").unwrap().initialised);
    assert_eq!(memory.buffer("a").unwrap().contents.to_vec(), 0x7FA5_A5A5u32.to_le_bytes());
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    let deep = 100_000;
    let brackets = format!("[let]\nn = {}", "[".repeat(deep));
    let tables = format!("n = {}", "{ a = ".repeat(deep));
    let dotted = format!("[{}a]\nn = 1\n", "a.".repeat(deep));
    let key = format!("{}a = 1\n", "a.".repeat(deep));
    let sum = format!("[let]\nn = \"{}1\"\n", "1+".repeat(deep));
    for text in [brackets, tables, dotted, key, sum] {
        assert!(Recipe::parse("kernel.toml", &text).is_err());
    }
}

/// Puts buffers at round addresses and has no tensor maps.
struct Rack;

impl Placement for Rack {
    type Error = String;

    fn address(&mut self, buffer: usize) -> Result<u64, String> {
        Ok(0x1000 * (buffer as u64 + 1))
    }

    fn map(&mut self, map: &ResolvedMap) -> Result<[u8; 128], String> {
        Err(format!("no map of {}", map.buffer))
    }
}

#[test]
fn arguments_become_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.toml");
    std::fs::write(folder.path().join("params.bin"), [7u8; 32]).unwrap();
    let recipe = Recipe::parse(path.to_str().unwrap(), FULL).unwrap();
    let resolved = recipe.resolve(&Limits::default()).unwrap();
    let bytes = |index: usize| resolved.launches[0].args[index].value.bytes(&mut Rack);
    assert_eq!(bytes(0).unwrap(), (0x1000u64 + 2 * 513).to_le_bytes());
    assert_eq!(bytes(1).unwrap(), 1024u32.to_le_bytes());
    assert_eq!(bytes(2).unwrap(), 0.125f32.to_le_bytes());
    assert_eq!(bytes(3).unwrap(), [0; 8]);
    assert_eq!(bytes(4).unwrap(), [0xFF]);
    assert_eq!(bytes(8), Err("no map of 0".to_string()));
    let patched = bytes(9).unwrap();
    assert_eq!(patched[..16], [7; 16]);
    assert_eq!(patched[16..24], 0x1000u64.to_le_bytes());
    assert_eq!(patched[24..28], 513u32.to_le_bytes());
    assert_eq!(patched[28..], [7; 4]);
}

/// One edit of a text: a span replaced by a piece of another place or by hostile words.
fn mutate(text: &str, edits: &[(usize, usize, usize, String)]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for (from, length, source, word) in edits {
        let start = from % (characters.len() + 1);
        let end = (start + length).min(characters.len());
        let copied = source % (characters.len() + 1);
        let piece: Vec<char> = match word.is_empty() {
            true => characters[copied..(copied + length).min(characters.len())].to_vec(),
            false => word.chars().collect(),
        };
        characters.splice(start..end, piece);
    }
    characters.into_iter().collect()
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize, String)>> {
    let words = [
        "",
        "",
        "99999999999999999999",
        "-1",
        "\"",
        "[",
        "{",
        "]",
        "=",
        "\n",
        "é",
        "0",
        ".",
        "(",
        "n",
        "1e999",
        "#",
        "\"\"\"",
    ];
    let words = prop::sample::select(words.map(String::from).to_vec());
    prop::collection::vec((0usize..4000, 0usize..12, 0usize..4000, words), 1..6)
}

/// Small enough that even a mutant that is accepted runs at once.
const LIMITS: Limits = Limits { memory_bytes: 1 << 20 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_recipes_never_panic(edits in edits(), text in prop::sample::select(&[FULL, SMALL, WORDS, PACKED])) {
        let text = mutate(text, &edits);
        if let Ok(recipe) = Recipe::parse("kernel.toml", &text) {
            let printed = recipe.to_toml();
            prop_assert_eq!(&Recipe::parse("again", &printed).unwrap(), &recipe, "{}", printed);
            if let Ok(resolved) = recipe.resolve(&LIMITS)
                && let Ok(memory) = Memory::new(&resolved, 0)
            {
                let _ = memory.check(&resolved);
            }
        }
    }

    #[test]
    fn packed_says_what_hex_says(
        element in prop::sample::select(Element::all().collect::<Vec<_>>()),
        bytes in prop::collection::vec(any::<u8>(), 1..300),
        other in any::<prop::sample::Index>(),
    ) {
        let count = bytes.len() / element.bytes();
        prop_assume!(count > 0);
        let bytes = &bytes[..count * element.bytes()];
        let recipe = |init: Init, expect: Expect| {
            let shape = vec![Expr::from(count as u32)];
            let buffer = Buffer { init, expect: Some(expect), ..Buffer::new("x", element, shape) };
            Recipe { buffers: vec![buffer], ..Recipe::default() }
        };
        let words: Vec<u64> = (0..count).map(|index| element.read(bytes, index)).collect();
        let hex = recipe(Init::Words(words.clone()), Expect::Words(words));
        let packed = recipe(Init::Packed(Packed::new(bytes)), Expect::Packed(Packed::new(bytes)));
        prop_assert_eq!(&Recipe::parse("again", &packed.to_toml()).unwrap(), &packed);
        let [hex, packed] = [hex, packed].map(|recipe| recipe.resolve(&LIMITS).unwrap());
        let [mut from_hex, mut from_packed] = [&hex, &packed].map(|resolved| Memory::new(resolved, 0).unwrap());
        prop_assert_eq!(&from_hex, &from_packed);
        let verdicts = |a: &Memory, b: &Memory| [a.check(&hex), b.check(&packed)].map(|verdict| format!("{verdict:?}"));
        let [of_hex, of_packed] = verdicts(&from_hex, &from_packed);
        prop_assert_eq!(of_hex, of_packed);
        let mut changed = bytes.to_vec();
        changed[other.index(bytes.len())] ^= 1;
        for memory in [&mut from_hex, &mut from_packed] {
            memory.buffers[0].contents = changed.clone().into();
        }
        let [of_hex, of_packed] = verdicts(&from_hex, &from_packed);
        prop_assert!(of_hex.contains("differ"), "{}", of_hex);
        prop_assert_eq!(of_hex, of_packed);
    }

    #[test]
    fn mutated_headers_never_panic(edits in edits(), recipe in prop::sample::select(&[SMALL, WORDS, PACKED])) {
        let header = Recipe::parse("kernel.toml", recipe).unwrap().to_header();
        let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u32 n) { ret; }\n";
        let cures = "//@ fix launch.0.block = [64, 1, 1]\n//@ fix: ret;\n";
        let text = mutate(&format!("{header}{cures}{ptx}"), &edits);
        let _ = cure::cured("case.ptx", &text);
        if let Ok(kernel) = Kernel::parse("case.ptx", &text) {
            let _ = kernel.resolve(&LIMITS);
            let again = header::read("again.ptx", &kernel.recipe.to_header()).unwrap();
            prop_assert_eq!(again.unwrap_or_default(), kernel.recipe);
        }
    }
}
