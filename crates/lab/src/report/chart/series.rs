//! Which points belong together, and which colour belongs to whom.

use attention::Problem;

use crate::bench::Point;

/// The candidate's name in legends; it is always the first contender.
pub(crate) const CANDIDATE: &str = "candidate";

/// Points that differ in their length alone, the shortest first.
pub(crate) struct Family<'a> {
    pub name: String,
    pub points: Vec<(u32, &'a Point)>,
}

/// In the order of the first point of each. What is no problem that we know belongs to none.
pub(crate) fn families(points: &[Point]) -> Vec<Family<'_>> {
    let mut families: Vec<Family> = Vec::new();
    for point in points {
        let Ok(problem) = point.problem.parse::<Problem>() else { continue };
        let (name, length) = (name(&problem, point), problem.keys());
        match families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.points.push((length, point)),
            None => families.push(Family { name, points: vec![(length, point)] }),
        }
    }
    families.iter_mut().for_each(|family| family.points.sort_by_key(|(length, _)| *length));
    families
}

/// The problem without its batch and its length, and how it was measured.
fn name(problem: &Problem, point: &Point) -> String {
    let is_length = |word: &str| {
        let digits = word.strip_prefix("Sk").or_else(|| word.strip_prefix(['B', 'S']));
        digits.is_some_and(|digits| digits.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let text = problem.to_string();
    let words: Vec<&str> = text.split(' ').filter(|word| !is_length(word)).collect();
    format!("{}, {}", words.join(" "), how(point))
}

/// `graph, cold`.
pub(crate) fn how(point: &Point) -> String {
    format!("{}, {}", point.plan.contract, if point.plan.is_cold() { "cold" } else { "warm" })
}

/// `16k` for 16,384.
pub(crate) fn length_text(length: u32) -> String {
    if length >= 1024 && length.is_multiple_of(1024) { format!("{}k", length / 1024) } else { length.to_string() }
}

/// Everybody who was timed or should have been, in the order in which points name them; the candidate is the first.
pub(crate) fn contenders(points: &[Point]) -> Vec<&str> {
    let mut names = vec![CANDIDATE];
    for point in points {
        let timed = point.contenders.iter().skip(crate::bench::CANDIDATES).map(|contender| contender.name.as_str());
        for name in timed.chain(point.missing.iter().map(|missing| missing.name.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The class that gives a contender of a point its colour: the candidate's two names share theirs.
pub(crate) fn class(names: &[&str], point: &Point, contender: usize) -> String {
    let own = contender < crate::bench::CANDIDATES;
    let name = point.contenders.get(contender).map(|contender| contender.name.as_str()).filter(|_| !own);
    let place = name.and_then(|name| names.iter().position(|other| *other == name)).unwrap_or(0);
    format!("c{}", place % COLOURS)
}

/// Colours that the style sheet has.
pub(crate) const COLOURS: usize = 6;
