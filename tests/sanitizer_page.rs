//! docs/sanitizer.md: its tables follow from what compute-sanitizer said (docs/log/compute-sanitizer.tsv.gz, which
//! `.ci/compute_sanitizer` writes on a machine with a GPU) and from the cases in filetests/fail. `BLESS=1` rewrites them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/sanitizer.md";
const LOG: &str = "docs/log/compute-sanitizer.tsv.gz";
const TOOLS: [&str; 4] = ["memcheck", "racecheck", "synccheck", "initcheck"];

/// A `fail` case: its name and the checks of ours that its `//~` lines name.
struct Case {
    name: String,
    ours: Vec<String>,
    theirs: [Option<String>; 4],
}

impl Case {
    fn found(&self, tool: usize) -> bool {
        self.theirs[tool].as_deref() == Some("found")
    }

    fn found_by_any(&self) -> bool {
        (0..TOOLS.len()).any(|tool| self.found(tool))
    }

    fn was_run(&self) -> bool {
        self.theirs.iter().all(Option::is_some)
    }

    /// The folder: the check that the case is about.
    fn check(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

fn cases() -> Vec<Case> {
    let log = launch::module_text::read(Path::new(LOG)).unwrap();
    let mut said: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for line in log.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns.len(), 4, "{LOG}: {line}");
        assert!(["found", "silent", "hang", "crash", "refused"].contains(&columns[2]), "{LOG}: {line}");
        said.insert((columns[0], columns[1]), columns[2]);
    }
    let mut files = vec![];
    walk(Path::new("filetests/fail"), &mut files);
    files.sort();
    let case = |path: &PathBuf| {
        let full = path.strip_prefix("filetests").unwrap().display().to_string();
        let text = std::fs::read_to_string(path).unwrap();
        let named = text.lines().filter_map(|line| line.split_once("//~ ")?.1.split_once('[')?.1.split_once(']'));
        let mut ours: Vec<String> = named.map(|(check, _)| check.to_string()).collect();
        ours.sort();
        ours.dedup();
        let theirs = TOOLS.map(|tool| said.get(&(full.as_str(), tool)).map(ToString::to_string));
        Case { name: full.trim_start_matches("fail/").trim_end_matches(".ptx").to_string(), ours, theirs }
    };
    files.iter().map(case).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, files),
            false => files.push(path),
        }
    }
}

/// Cases that both sides were asked about, by check.
fn summary(cases: &[Case]) -> String {
    let run: Vec<&Case> = cases.iter().filter(|case| case.was_run()).collect();
    let theirs = run.iter().filter(|case| case.found_by_any()).count();
    let mut table = format!(
        "{} cases: ours finds {}, theirs {theirs}, both {theirs}, neither 0.\n\n\
         | check of ours | cases | any tool | memcheck | racecheck | synccheck | initcheck | hangs | stops, unexplained |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        run.len(),
        run.len()
    );
    let mut checks: Vec<&str> = run.iter().map(|case| case.check()).collect();
    checks.dedup();
    for check in checks {
        let of_check: Vec<&&Case> = run.iter().filter(|case| case.check() == check).collect();
        let silent = |case: &&&&Case, word: &str| {
            !case.found_by_any() && case.theirs.iter().any(|said| said.as_deref() == Some(word))
        };
        let count = |holds: &dyn Fn(&&&&Case) -> bool| of_check.iter().filter(|case| holds(case)).count();
        write!(table, "| `{check}` | {} | {}", of_check.len(), count(&|case| case.found_by_any())).unwrap();
        (0..TOOLS.len()).for_each(|tool| write!(table, " | {}", count(&|case| case.found(tool))).unwrap());
        writeln!(table, " | {} | {} |", count(&|case| silent(case, "hang")), count(&|case| silent(case, "crash")))
            .unwrap();
    }
    table
}

fn by_case(cases: &[Case]) -> String {
    let mut table =
        String::from("| case | ours | memcheck | racecheck | synccheck | initcheck |\n|---|---|---|---|---|---|\n");
    for case in cases {
        let ours: Vec<String> = case.ours.iter().map(|check| format!("`{check}`")).collect();
        let cells = case.theirs.iter().map(|said| match said.as_deref() {
            Some("silent") => "–",
            Some("found") => "**found**",
            Some("crash") => "stops",
            Some(other) => other,
            None => "not run",
        });
        let cells: Vec<&str> = cells.collect();
        writeln!(table, "| {} | {} | {} |", case.name, ours.join(", "), cells.join(" | ")).unwrap();
    }
    table
}

/// The page with a table between its markers.
fn with(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{PAGE}: no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{PAGE}: no {end}"));
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn the_tables_are_what_the_log_says() {
    let (page, cases) = (std::fs::read_to_string(PAGE).unwrap(), cases());
    let new = with(&with(&page, "summary", &summary(&cases)), "cases", &by_case(&cases));
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(PAGE, new).unwrap();
    }
    assert!(page == new, "run `BLESS=1 cargo test --test sanitizer_page`");
}

/// A log of cases that are gone would count what nobody can repeat.
#[test]
fn the_log_names_cases_that_exist() {
    for line in launch::module_text::read(Path::new(LOG)).unwrap().lines() {
        let case = line.split('\t').next().unwrap();
        assert!(Path::new("filetests").join(case).exists(), "{LOG}: {case}");
    }
}
