//! Two kernels side by side: what they take, what their loops are made of, and a diff of their machine code.

use super::table::{head, loop_name};
use lab::sass::{Class, Counts, normal};
use lab::{Build, Code, Inspection, Taken};
use similar::{Algorithm, ChangeTag, TextDiff};
use std::fmt::Write;

pub struct Difference<'a> {
    left: &'a Inspection,
    right: &'a Inspection,
    pub pairs: Vec<Pair>,
}

/// The two kernels on one target.
pub struct Pair {
    /// Both targets, where the kernels are for different ones.
    pub target: String,
    pub rows: Vec<Row>,
    /// Of machine code without addresses, as `diff -u` writes it; empty if there is none.
    pub code: String,
    pub removed: usize,
    pub added: usize,
}

/// One figure of both; none where one of them has no such thing.
pub struct Row {
    /// The entry or the loops.
    pub of: String,
    pub figure: &'static str,
    pub left: Option<u64>,
    pub right: Option<u64>,
    /// It is shown where it is equal, too.
    always: bool,
}

impl<'a> Difference<'a> {
    /// Instructions that differ in the numbers of their registers are the same, unless those are kept.
    pub fn new(left: &'a Inspection, right: &'a Inspection, keep_registers: bool) -> Difference<'a> {
        let builds = left.builds.iter().zip(&right.builds);
        let pairs = builds.map(|(left, right)| Pair::of(left, right, keep_registers)).collect();
        Difference { left, right, pairs }
    }

    /// Resources and sizes, and whatever else differs; other figures that are equal are counted.
    pub fn table(&self) -> String {
        let mut text = format!("- {}+ {}", head(self.left), head(self.right));
        for pair in &self.pairs {
            let _ = writeln!(text, "\n{:<38} {:>10} {:>10} {:>10}", pair.target, "-", "+", "change");
            let mut last = "";
            for row in pair.rows.iter().filter(|row| row.is_shown()) {
                if row.of != last {
                    let _ = writeln!(text, "{}", row.of);
                    last = &row.of;
                }
                text.push_str(&row.line());
            }
            let equal = pair.rows.iter().filter(|row| !row.is_shown()).count();
            let _ = writeln!(text, "{equal} more figures are equal");
            let _ = writeln!(text, "machine code: {} instructions removed, {} added", pair.removed, pair.added);
        }
        text
    }

    /// The diff of machine code.
    pub fn code(&self) -> String {
        self.pairs.iter().map(|pair| pair.code.as_str()).collect()
    }
}

impl Row {
    fn is_shown(&self) -> bool {
        self.always || self.left != self.right
    }

    fn line(&self) -> String {
        let cell = |value: Option<u64>| value.map_or("none".into(), |value| value.to_string());
        let change = match (self.left, self.right) {
            (Some(left), Some(right)) if left != right => format!("{:+}", right as i64 - left as i64),
            _ => String::new(),
        };
        let line = format!("  {:<36} {:>10} {:>10} {change:>10}", self.figure, cell(self.left), cell(self.right));
        format!("{}\n", line.trim_end())
    }
}

impl Pair {
    fn of(left: &Build, right: &Build, keep_registers: bool) -> Pair {
        let same = left.target == right.target;
        let target = if same { left.target.to_string() } else { format!("{} and {}", left.target, right.target) };
        let mut rows = Vec::new();
        for (left, right) in both(&left.launches, &right.launches) {
            rows.extend(resources(left, right));
        }
        for (left, right) in both(&left.code, &right.code) {
            rows.extend(counts(left, right));
        }
        let lines = |build: &Build| -> String {
            let code = build.code.iter().flat_map(|code| code.function.without_padding());
            code.map(|one| normal(one, keep_registers) + "\n").collect()
        };
        let (old, new) = (lines(left), lines(right));
        let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(&old, &new);
        let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (removed, added) = (count(ChangeTag::Delete), count(ChangeTag::Insert));
        let header = |build: &Build| format!("{} {:.16}", build.target, build.cubin);
        let code = diff.unified_diff().header(&header(left), &header(right)).to_string();
        Pair { target, rows, code, removed, added }
    }
}

/// One beside the other, as far as the longer reaches.
fn both<'a, T>(left: &'a [T], right: &'a [T]) -> impl Iterator<Item = (Option<&'a T>, Option<&'a T>)> {
    (0..left.len().max(right.len())).map(|index| (left.get(index), right.get(index)))
}

/// `name`, or both names where they differ.
fn names(left: Option<&str>, right: Option<&str>) -> String {
    match (left, right) {
        (Some(left), Some(right)) if left != right => format!("{left} and {right}"),
        (left, right) => left.or(right).unwrap_or_default().into(),
    }
}

fn resources(left: Option<&Taken>, right: Option<&Taken>) -> Vec<Row> {
    type Figure = (&'static str, fn(&Taken) -> Option<u64>);
    const FIGURES: [Figure; 10] = [
        ("registers", |taken| Some(taken.function.registers.into())),
        ("static shared bytes", |taken| Some(taken.function.shared_bytes.into())),
        ("dynamic shared bytes", |taken| Some(taken.dynamic_shared_bytes.into())),
        ("stack bytes", |taken| Some(taken.function.stack_bytes.into())),
        ("spilled bytes", |taken| Some(taken.function.spill_store_bytes.into())),
        ("bytes loaded back", |taken| Some(taken.function.spill_load_bytes.into())),
        ("barriers", |taken| Some(taken.function.barriers.into())),
        ("threads a block", |taken| taken.threads.map(u64::from)),
        ("blocks a processor", |taken| taken.occupancy.as_ref().map(|one| one.blocks.into())),
        ("warps a processor", |taken| taken.occupancy.as_ref().map(|one| one.warps.into())),
    ];
    let entry = |taken: Option<&'_ Taken>| taken.map(|taken| taken.function.entry.clone());
    let of = names(entry(left).as_deref(), entry(right).as_deref());
    let row = |(figure, value): &Figure| Row {
        of: of.clone(),
        figure,
        left: left.and_then(value),
        right: right.and_then(value),
        always: true,
    };
    FIGURES.iter().map(row).collect()
}

/// The whole function, then loops: main beside main, and the others by their place before or after it.
fn counts(left: Option<&Code>, right: Option<&Code>) -> Vec<Row> {
    let name = |code: Option<&Code>| code.map(|code| code.function.name.clone());
    let whole = names(name(left).as_deref(), name(right).as_deref());
    let mut rows = classes(&whole, left.map(|code| code.counts), right.map(|code| code.counts), true);
    let main = |code: Option<&Code>| code.and_then(|code| code.main).unwrap_or(0) as isize;
    let (left_main, right_main) = (main(left), main(right));
    let length = |code: Option<&Code>| code.map_or(0, |code| code.loops.len()) as isize;
    let last = (length(left) - left_main).max(length(right) - right_main);
    for place in -left_main.max(right_main)..last {
        let at = |code: Option<&Code>, main: isize| {
            let (code, index) = (code?, usize::try_from(main + place).ok()?);
            let one = code.loops.get(index)?;
            Some((loop_name(one, code.main == Some(index)).trim_start().to_string(), one.counts))
        };
        let (left, right) = (at(left, left_main), at(right, right_main));
        let name = names(left.as_ref().map(|(name, _)| name.as_str()), right.as_ref().map(|(name, _)| name.as_str()));
        rows.extend(classes(&name, left.map(|(_, counts)| counts), right.map(|(_, counts)| counts), place == 0));
    }
    rows
}

/// All instructions, always shown if told so, and those of each class that one of them has.
fn classes(of: &str, left: Option<Counts>, right: Option<Counts>, always: bool) -> Vec<Row> {
    let row = |figure, value: &dyn Fn(Counts) -> usize| {
        let value = |counts: Option<Counts>| counts.map(|counts| value(counts) as u64);
        Row {
            of: of.into(),
            figure,
            left: value(left),
            right: value(right),
            always: always && figure == "instructions",
        }
    };
    let has = |class: &Class| [left, right].into_iter().flatten().any(|counts| counts.of(*class) > 0);
    let each = Class::ALL.into_iter().filter(has).map(|class| row(class.name(), &|counts| counts.of(class)));
    std::iter::once(row("instructions", &Counts::all)).chain(each).collect()
}
