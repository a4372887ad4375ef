//! What a cluster knows of others. Clusters that run in turns meet in global memory, and a clock holds only those of which
//! something was learnt.

use std::sync::Arc;

use super::clock::{Clock, Row};

/// A row, and the cluster that it belongs to if that is another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub abroad: Option<u32>,
    pub row: Row,
}

impl Origin {
    pub fn home(row: Row) -> Origin {
        Origin { abroad: None, row }
    }
}

/// The clock of another cluster, with the number of that.
type Foreign = (u32, Arc<Clock>);

/// Clocks of other clusters, by number. Shared: most views of a cluster know the same of the others.
#[derive(Clone, Default, Debug)]
pub struct Abroad(Option<Arc<Vec<Foreign>>>);

impl Abroad {
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn all(&self) -> &[Foreign] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub fn of(&self, cluster: u32) -> Option<&Clock> {
        let all = self.all();
        all.binary_search_by_key(&cluster, |(number, _)| *number).ok().map(|place| &*all[place].1)
    }

    pub fn join(&mut self, other: &Abroad) {
        let Some(theirs) = &other.0 else { return };
        match &self.0 {
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(_) => theirs.iter().for_each(|(cluster, clock)| self.join_shared(*cluster, clock)),
            None => self.0 = Some(theirs.clone()),
        }
    }

    fn join_shared(&mut self, cluster: u32, clock: &Arc<Clock>) {
        let all = Arc::make_mut(self.0.get_or_insert_default());
        match all.binary_search_by_key(&cluster, |(number, _)| *number) {
            Ok(place) if Arc::ptr_eq(&all[place].1, clock) => {}
            Ok(place) => Arc::make_mut(&mut all[place].1).join(clock),
            Err(place) => all.insert(place, (cluster, clock.clone())),
        }
    }

    pub fn join_one(&mut self, cluster: u32, clock: &Clock) {
        self.join_shared(cluster, &Arc::new(clock.clone()));
    }

    /// What is known of one cluster, and what of the rest.
    pub fn parted(&self, cluster: u32) -> (Clock, Abroad) {
        match self.of(cluster) {
            None => (Clock::default(), self.clone()),
            Some(clock) => {
                let rest: Vec<_> = self.all().iter().filter(|(number, _)| *number != cluster).cloned().collect();
                (clock.clone(), Abroad((!rest.is_empty()).then(|| Arc::new(rest))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_learns_of_itself_through_others() {
        let mut first = Clock::new(2);
        first.raise(1, u32::MAX, 5);
        let second = first.carried(0, 1);
        let at = |abroad, row| Origin { abroad, row };
        assert_eq!((second.unknown_at(at(Some(0), 1), 5, 7), second.unknown_at(at(None, 1), 5, 7)), (0, 7));
        let back = second.carried(1, 0);
        assert_eq!((back.floor(1), back.unknown_at(at(Some(0), 1), 1, 7)), (5, 7));
        let third = second.carried(1, 2);
        assert_eq!(third.floor_at(at(Some(0), 1)), 5);
    }
}
