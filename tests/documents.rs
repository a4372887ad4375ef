//! What the documentation shows is what the program reads.

use launch::{Limits, Recipe};

/// The blocks of a language in a page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

#[test]
fn recipes_in_the_documentation_are_recipes() {
    let blocks = blocks(include_str!("../docs/recipe.md"), "toml");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let recipe = Recipe::parse("docs/recipe.md", block).unwrap_or_else(|error| panic!("{error}"));
        recipe.resolve(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn every_command_is_in_the_readme() {
    let readme = include_str!("../README.md");
    for command in ["prove", "sanitize", "run", "ptx", "filetests", "explain", "doctor", "verify"] {
        assert!(readme.contains(&format!("| `{command}` |")), "{command}");
    }
}

/// A figure that was to be filled in later.
#[test]
fn no_placeholder_is_left() {
    for page in [include_str!("../README.md"), include_str!("../docs/status.md")] {
        let is_one = |word: &&str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
        let left: Vec<&str> = page.split('@').skip(1).step_by(2).filter(is_one).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
