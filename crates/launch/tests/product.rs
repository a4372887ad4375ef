//! Results that are the product of two other buffers.

use launch::{Contents, Limits, Memory, Recipe};

const RECIPE: &str = r#"
[buffer.a]
type = "f16"
shape = [2, 3]
init = [1, 2, 3, 4, 5, 6]
[buffer.b]
type = "s8"
shape = [3, 2]
init = [1, 0, -1, 2, 0, 1]
[buffer.c]
type = "f32"
shape = [2, 2]
expect = "product(a, b)"
[[launch]]
grid = [1, 1, 1]
block = [32, 1, 1]
args = [{ buffer = "a" }, { buffer = "b" }, { buffer = "c" }]
"#;

/// What is wrong where `c` holds these numbers.
fn judged(text: &str, found: &[f32]) -> Result<(), String> {
    let recipe = Recipe::parse("kernel.toml", text).map_err(|error| error.to_string())?;
    assert_eq!(Recipe::parse("again", &recipe.to_toml()).unwrap(), recipe);
    let resolved = recipe.resolve(&Limits::default()).map_err(|error| error.to_string())?;
    let mut memory = Memory::new(&resolved, 0).unwrap();
    let bytes: Vec<u8> = found.iter().flat_map(|number| number.to_le_bytes()).collect();
    memory.buffers[2].contents = Contents::from(bytes);
    memory.check(&resolved).map_err(|error| error.to_string())
}

#[test]
fn rows_times_columns() {
    assert_eq!(judged(RECIPE, &[-1.0, 7.0, -1.0, 16.0]), Ok(()));
    let wrong = judged(RECIPE, &[-1.0, 7.0, -1.0, 16.5]).unwrap_err();
    insta::assert_snapshot!(wrong, @"buffer `c`: 1 of 4 elements differ (exact), first at [1, 1]: expected 16.0 (0x4030000000000000), found 16.5 (0x41840000)");
}

#[test]
fn rows_times_rows() {
    let text = RECIPE.replace("shape = [3, 2]", "shape = [2, 3]").replace("(a, b)", "(a, transposed( b ))");
    assert!(judged(&text, &[-1.0, 7.0, -1.0, 16.0]).is_err());
    assert_eq!(judged(&text, &[-2.0, 5.0, -2.0, 14.0]), Ok(()));
}

#[test]
fn matrices_of_a_batch_are_multiplied_each_for_itself() {
    let text = RECIPE.replace("shape = [2, 3]", "shape = [2, 1, 3]").replace("shape = [3, 2]", "shape = [2, 3, 1]");
    let text = text.replace("shape = [2, 2]", "shape = [2, 1, 1]");
    assert_eq!(judged(&text, &[-2.0, 14.0]), Ok(()));
}

#[test]
fn what_cannot_be_multiplied_is_refused() {
    let refused = |from: &str, to: &str| judged(&RECIPE.replacen(from, to, 1), &[0.0; 4]).unwrap_err();
    insta::assert_snapshot!(refused("(a, b)", "(a)"), @"kernel.toml:13:10: cannot read `product(a)`: expected product(a, b) or product(a, transposed(b)), of two buffers");
    insta::assert_snapshot!(refused("(a, b)", "(a, power(b))"), @"kernel.toml:13:10: cannot read `product(a, power(b))`: expected product(a, b) or product(a, transposed(b)), of two buffers");
    insta::assert_snapshot!(refused("(a, b)", "(a, b, a)"), @"kernel.toml:13:10: cannot read `product(a, b, a)`: expected product(a, b) or product(a, transposed(b)), of two buffers");
    insta::assert_snapshot!(refused("product(a, b)", "prodct(a, b)"), @"kernel.toml:13:10: unknown `prodct(…)`: expected a file, a list, `sha256:…`, product(a, b) or product(a, transposed(b))");
    insta::assert_snapshot!(refused("shape = [2, 2]", "shape = [4]"), @"kernel.toml:10:9: `product(a, b)`, which buffer `c` expects: the product is [2, 2]: expected that shape, and not [4]");
    insta::assert_snapshot!(refused("(a, b)", "(a, d)"), @"kernel.toml:10:9: `product(a, d)`, which buffer `c` expects: there is no buffer `d`: expected one of those before it, a, b");
    insta::assert_snapshot!(refused("(a, b)", "(a, c)"), @"kernel.toml:10:9: `product(a, c)`, which buffer `c` expects: there is no buffer `c`: expected one of those before it, a, b");
    insta::assert_snapshot!(refused("(a, b)", "(b, b)"), @"kernel.toml:10:9: `product(b, b)`, which buffer `c` expects: [3, 2] and [3, 2] cannot be multiplied: expected matrices with as many columns as the other has rows");
    insta::assert_snapshot!(refused("init = [1, 2, 3, 4, 5, 6]", ""), @"kernel.toml:10:9: `product(a, b)`, which buffer `c` expects: `a` has no content: give it an `init`");
    insta::assert_snapshot!(refused("init = [1, 2, 3, 4, 5, 6]", "init = \"normal(1.0)\""), @"kernel.toml:10:9: `product(a, b)`, which buffer `c` expects: what `a` holds changes with the run: give it a seed, as in normal(1.0, 7)");
    insta::assert_snapshot!(refused("expect =", "expect_type = \"f16\"\nexpect ="), @"kernel.toml:13:15: [buffer.c] expects a product, which is float64: remove `expect_type`");
    let huge = RECIPE.replacen("[2, 3]\ninit = [1, 2, 3, 4, 5, 6]", "[8000, 8000]\ninit = \"ramp\"", 1);
    let huge = huge.replacen("[3, 2]\ninit = [1, 0, -1, 2, 0, 1]", "[8000, 8000]\ninit = \"ramp\"", 1);
    let huge = huge.replacen("[2, 2]", "[8000, 8000]", 1);
    insta::assert_snapshot!(judged(&huge, &[]).unwrap_err(), @"kernel.toml:10:9: `product(a, b)`, which buffer `c` expects: more than 274877906944 multiplications: expect a file or a hash");
}

#[test]
fn squares_of_large_numbers_have_room() {
    let text =
        RECIPE.replace("f16", "f64").replace("[1, 2, 3, 4, 5, 6]", "\"const(1e200)\"").replace("\"f32\"", "\"f64\"");
    let text = text.replace("(a, b)\"", "(a, b)\"\ntolerance = \"rel_l2(1e-14)\"");
    let recipe = Recipe::parse("kernel.toml", &text).unwrap().resolve(&Limits::default()).unwrap();
    let mut memory = Memory::new(&recipe, 0).unwrap();
    let bytes = |numbers: [f64; 4]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    memory.buffers[2].contents = Contents::from(bytes([0.0, 3e200, 0.0, 3e200]));
    memory.check(&recipe).unwrap();
    memory.buffers[2].contents = Contents::from(bytes([0.0, 3e200, 0.0, 3.001e200]));
    assert!(memory.check(&recipe).is_err());
}

/// Before anything is launched.
#[test]
fn files_of_what_is_expected_are_there() {
    let text = RECIPE.replace("product(a, b)", "golden.bin");
    let recipe = Recipe::parse("kernel.toml", &text).unwrap().resolve(&Limits::default()).unwrap();
    let error = Memory::new(&recipe, 0).unwrap_err().to_string();
    assert!(error.starts_with("golden.bin: cannot open"), "{error}");
}
