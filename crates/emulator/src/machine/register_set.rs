//! A set of registers, a bit for each.

use ptx::RegisterId;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(Vec<u64>);

impl RegisterSet {
    pub fn has(&self, register: RegisterId) -> bool {
        let (word, bit) = place(register);
        self.0.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    pub fn insert(&mut self, register: RegisterId) {
        let (word, bit) = place(register);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    pub fn remove(&mut self, register: RegisterId) {
        let (word, bit) = place(register);
        self.0.get_mut(word).into_iter().for_each(|word| *word &= !(1 << bit));
    }

    pub fn iter(&self) -> impl Iterator<Item = RegisterId> {
        let all = (0..).zip(&self.0);
        all.flat_map(|(index, word)| bits(*word).map(move |bit| RegisterId(index * 64 + bit)))
    }

    /// Takes what the other has; true if that is more.
    pub fn join(&mut self, other: &RegisterSet) -> bool {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        let mut more = false;
        for (word, new) in self.0.iter_mut().zip(&other.0) {
            more |= new & !*word != 0;
            *word |= new;
        }
        more
    }

    /// Keeps what both have; true if that is less.
    pub fn meet(&mut self, other: &RegisterSet) -> bool {
        let mut less = false;
        for (index, word) in self.0.iter_mut().enumerate() {
            let kept = *word & other.0.get(index).copied().unwrap_or(0);
            less |= kept != *word;
            *word = kept;
        }
        less
    }

    /// The first register that both have.
    pub fn common(&self, other: &RegisterSet) -> Option<RegisterId> {
        let words = self.0.iter().zip(&other.0).map(|(one, two)| one & two);
        let (index, word) = words.enumerate().find(|(_, word)| *word != 0)?;
        Some(RegisterId(index as u32 * 64 + word.trailing_zeros()))
    }
}

fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        (word != 0).then(|| word &= word - 1).map(|()| bit)
    })
}

fn place(register: RegisterId) -> (usize, u32) {
    (register.0 as usize / 64, register.0 % 64)
}

impl FromIterator<RegisterId> for RegisterSet {
    fn from_iter<T: IntoIterator<Item = RegisterId>>(registers: T) -> RegisterSet {
        let mut set = RegisterSet::default();
        registers.into_iter().for_each(|register| set.insert(register));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(registers: &[u32]) -> RegisterSet {
        registers.iter().map(|register| RegisterId(*register)).collect()
    }

    #[test]
    fn sets_of_different_length_meet() {
        let mut both = set(&[1, 70, 200]);
        assert!(both.meet(&set(&[1, 70])));
        assert!(both.has(RegisterId(70)) && !both.has(RegisterId(200)));
        assert!(!both.meet(&set(&[1, 70, 300])));
    }

    #[test]
    fn sets_join_and_give_up() {
        let mut all = set(&[1, 70]);
        assert!(all.join(&set(&[1, 200])) && !all.join(&set(&[200])));
        all.remove(RegisterId(70));
        assert_eq!(all.iter().collect::<Vec<_>>(), [RegisterId(1), RegisterId(200)]);
    }

    #[test]
    fn the_first_common_register() {
        assert_eq!(set(&[3, 130]).common(&set(&[4, 130, 131])), Some(RegisterId(130)));
        assert_eq!(set(&[3]).common(&set(&[300])), None);
    }
}
