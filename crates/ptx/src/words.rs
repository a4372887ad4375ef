//! Misspelt words, and what was meant.

/// The candidate closest to `word` by edit distance, if it is close enough to be a slip.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Distances of very long words say nothing and cost time.
    if word.len() > 64 {
        return None;
    }
    let scored = candidates.map(|candidate| (distance(word, candidate), candidate));
    scored.filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3).min().map(|(_, candidate)| candidate)
}

/// Edits that turn one word into another.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let words = || ["missing-wait", "misaligned", "race-shared"].into_iter();
        assert_eq!(nearest("mising-wait", words()), Some("missing-wait"));
        assert_eq!(nearest("race-global-x", words()), None);
        assert_eq!(nearest(&"x".repeat(65), words()), None);
        assert_eq!((distance("", "abc"), distance("bar", "bra"), distance("é", "e")), (3, 2, 1));
    }
}
