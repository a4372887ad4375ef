//! What was tried, as people read it: a table, and the smallest change.

use lab::bisect::{Axis, Bisection, Effect, Tried};
use std::fmt::Write;

/// Of one kind of change, rows with the same result are counted where there are more.
const SHOWN: usize = 6;

pub fn report(file: &str, found: &Bisection) -> String {
    let mut text = match found.given.first() {
        Some(symptom) => format!("{file} fails as it is: {symptom}\n"),
        None => format!("{file} does not fail as it is\n"),
    };
    text.push_str(&section("changes that may turn it on", &found.provoked));
    text.push_str(&section("changes that may turn it off", &found.cured));
    text.push_str(&answer(found));
    text
}

fn section(title: &str, tried: &[Tried]) -> String {
    if tried.is_empty() {
        return String::new();
    }
    let rows = rows(tried);
    let width = rows.iter().map(|(_, what, _)| what.chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{title}\n");
    for (axis, what, result) in rows {
        let padding = " ".repeat(width - what.chars().count());
        // A String takes whatever is written.
        let _ = writeln!(text, "  {:<11} {what}{padding}  {result}", axis.name());
    }
    text
}

/// Axis, change and result of each row; many that say the same are one.
fn rows(tried: &[Tried]) -> Vec<(Axis, String, String)> {
    let mut rows: Vec<(Axis, String, String)> = vec![];
    let mut counted: Vec<(Axis, String, usize)> = vec![];
    for one in tried {
        let (axis, result) = (one.axis, result(&one.effect));
        let same = tried.iter().filter(|other| other.axis == axis && self::result(&other.effect) == result).count();
        if same <= SHOWN {
            rows.push((axis, one.what.clone(), result));
        } else if !counted.iter().any(|(of, what, _)| *of == axis && *what == result) {
            counted.push((axis, result.clone(), same));
            rows.push((axis, format!("{same} changes, the first: {}", one.what), result));
        }
    }
    rows
}

fn result(effect: &Effect) -> String {
    match effect {
        Effect::Untried(why) => format!("not tried: {}", why.lines().next().unwrap_or_default()),
        effect => match effect.symptom() {
            Some(symptom) => format!("{}: {symptom}", effect.word()),
            None => effect.word().into(),
        },
    }
}

fn answer(found: &Bisection) -> String {
    let Some(symptom) = &found.symptom else {
        return format!("\nnothing that was tried makes it fail: {} changes\n", found.provoked.len());
    };
    let line = |direction: &str, tried: &Tried| format!("smallest change that turns it {direction}: {}\n", tried.what);
    match (found.on(), found.off()) {
        (Some(on), Some(off)) => format!("\n{}{}", line("on", on), line("off again", off)),
        (Some(on), None) => format!("\n{}", line("on", on)),
        (None, Some(off)) => format!("\n{}", line("off", off)),
        (None, None) => format!("\nno single change that was tried turns it off: {symptom}\n"),
    }
}
