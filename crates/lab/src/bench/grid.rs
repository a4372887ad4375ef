//! Named lists of problems, fixed before anything is measured.

use attention::Problem;

/// A named list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The standard problem, full and causal: bound by launch and latency.
    Small,
    /// 16,384 tokens of a model 2,048 wide, cut into ever longer sequences.
    Main,
    /// One query against ever more keys: bound by the memory that they are read from.
    Decode,
}

impl Grid {
    pub const ALL: [Grid; 3] = [Grid::Small, Grid::Main, Grid::Decode];

    pub fn name(self) -> &'static str {
        match self {
            Grid::Small => "small",
            Grid::Main => "main",
            Grid::Decode => "decode",
        }
    }

    pub fn by_name(name: &str) -> Option<Grid> {
        Grid::ALL.into_iter().find(|grid| grid.name() == name)
    }

    pub fn problems(self) -> Result<Vec<Problem>, attention::Error> {
        let texts: Vec<String> = match self {
            Grid::Small => ["full", "causal"].map(|mask| format!("B2 H8 S512 D64 {mask}")).into(),
            Grid::Main => main(),
            Grid::Decode => decode(),
        };
        texts.iter().map(|text| text.parse()).collect()
    }
}

fn main() -> Vec<String> {
    const TOKENS: u32 = 16_384;
    let mut texts = vec![];
    for (dim, heads) in [(64, 32), (128, 16)] {
        for length in [512, 1024, 2048, 4096, 8192, 16_384] {
            for mask in ["full", "causal"] {
                texts.push(format!("B{} H{heads} S{length} D{dim} {mask}", TOKENS / length));
            }
        }
    }
    texts
}

fn decode() -> Vec<String> {
    let mut texts = vec![];
    for heads in ["8", "32/8", "32"] {
        for keys in [1024, 4096, 8192, 16_384, 65_536] {
            texts.push(format!("B1 H{heads} Sq1 Sk{keys} D128"));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_one() {
        let counts = Grid::ALL.map(|grid| grid.problems().unwrap().len());
        assert_eq!(counts, [2, 24, 15]);
        assert_eq!(Grid::by_name("main"), Some(Grid::Main));
        assert_eq!(Grid::by_name("other"), None);
    }
}
