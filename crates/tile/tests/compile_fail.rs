//! What Rust's compiler refuses, with the message that it was recorded with.

#[test]
fn refused_with_the_recorded_message() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
