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
    assert_eq!(blocks.len(), 6);
    for block in blocks {
        let recipe = Recipe::parse("docs/recipe.md", block).unwrap_or_else(|error| panic!("{error}"));
        recipe.resolve(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn gates_in_the_documentation_are_gates() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let blocks = blocks(include_str!("../docs/gates.md"), "toml");
    assert_eq!(blocks.len(), 1);
    let path = folder.path().join(lab::SETTINGS);
    std::fs::write(&path, blocks[0]).expect("a file");
    let gates = lab::gates_of(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(gates.iter().map(lab::Gate::name).collect::<Vec<_>>(), ["nightly", "release"]);
}

#[test]
fn every_command_is_in_the_readme() {
    let readme = include_str!("../README.md");
    for command in [
        "prove",
        "sanitize",
        "run",
        "bisect",
        "leaderboard",
        "mutate",
        "ptx",
        "inspect",
        "filetests",
        "explain",
        "doctor",
        "verify",
        "report",
        "compare",
    ] {
        assert!(readme.contains(&format!("| `{command}` |")), "{command}");
    }
}

/// The line that the README deletes from a kernel of ours is the barrier behind the wait that its report speaks of.
#[test]
fn the_finding_of_the_readme_can_be_repeated() {
    let readme = include_str!("../README.md");
    let number = readme.split("veriflash ptx --config 1 | sed ").nth(1).and_then(|rest| rest.split_once('d'));
    let number: usize = number.and_then(|(number, _)| number.parse().ok()).expect("a line");
    let (problem, config) = (attention::Problem::builder().build(), attention::configs::Config::by_id(1));
    let kernel =
        attention::kernels::kernel(&problem.expect("a problem"), &config.expect("config 1")).expect("a kernel");
    let mut lines = kernel.parsed.source.text.lines().skip(number - 2).map(str::trim);
    assert_eq!([lines.next(), lines.next()], [Some("cp.async.wait_group 1;"), Some("bar.sync 0;")]);
    assert!(readme.contains(&format!("emit `bar.sync 0` in every warp after the wait at line {}", number - 1)));
}

#[test]
fn the_support_page_is_what_the_program_says() {
    let committed = include_str!("../docs/support.md");
    assert!(committed == veriflash::support::page(), "run `veriflash explain support > docs/support.md`");
}

/// Every row once, with whether it runs.
#[test]
fn the_support_page_has_every_form() {
    let page = include_str!("../docs/support.md");
    for form in veriflash::ptx::forms::FORMS.iter() {
        let word = if veriflash::emulator::executes(form) { "runs  " } else { "parses" };
        let (version, target) = (form.version.to_string(), form.target.to_string());
        let row = format!("{word}  {version:<4} {target:<6}  {} {}", form.spelling, form.operands.text());
        let rows = page.lines().filter(|line| *line == row.trim_end()).count();
        assert_eq!(rows, 1, "{row}");
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

#[test]
fn every_policy_is_in_the_page_of_schedules() {
    for policy in launch::Policy::ALL {
        let row = format!("| `{policy}` | {} |", policy.about());
        assert!(include_str!("../docs/schedules.md").contains(&row), "{row}");
    }
}

/// Every bug of the page has its cases.
#[test]
fn the_cases_of_every_bug_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/fail");
    let rows: Vec<&str> = include_str!("../docs/bugs.md").lines().filter(|line| line.starts_with("| ")).collect();
    let rows: Vec<&str> = rows.into_iter().filter(|row| !row.starts_with("| bug ")).collect();
    assert!(rows.len() >= 60, "{}", rows.len());
    for row in rows {
        let cases: Vec<&str> = row.rsplit('|').nth(1).expect("two columns").split('`').skip(1).step_by(2).collect();
        assert!(!cases.is_empty(), "{row}");
        for case in cases {
            assert!(root.join(format!("{case}.ptx")).is_file(), "{case} of {row}");
        }
    }
}

/// Every word that the page of problems lists is one, and no other word is.
#[test]
fn the_page_of_problems_has_its_words() {
    let rows = include_str!("../docs/problem.md").lines().filter_map(|line| line.strip_prefix("| `"));
    let words: Vec<&str> = rows.flat_map(|row| row.split('|').next().unwrap_or_default().split(['`', ' '])).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    assert!(words.len() > 25, "{words:?}");
    for word in words {
        // Lists of lengths come in pairs.
        let line = match word {
            "Sq1,1" => "Sq1,1 Sk512,90",
            "Sk512,90" => continue,
            alone => alone,
        };
        line.parse::<attention::Problem>().unwrap_or_else(|error| panic!("{word}: {error}"));
    }
}
