//! The replays of a comparison: which there are, and which answers which row.

use hotset_policies::PolicySpec;

use crate::Named;

/// One replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Belady's bound at a size, which every row of that size is held against.
    Bound {
        /// Place of the size.
        size: usize,
    },
    /// The bound with bypass at a size, where forced admission is none.
    Bypass {
        /// Place of the size.
        size: usize,
    },
    /// A policy at a size.
    Policy {
        /// Place of the policy.
        policy: usize,
        /// Place of the size.
        size: usize,
    },
}

/// A policy at a size in the results: the replays that its rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// Place of the policy.
    pub policy: usize,
    /// Place of the size.
    pub size: usize,
    /// Place of its replay among the jobs.
    pub replay: usize,
    /// Place of the bound's.
    pub bound: usize,
}

/// All replays of a comparison, in an order that a journal can rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jobs {
    pub list: Vec<Job>,
    pub cells: Vec<Cell>,
}

impl Jobs {
    /// The bound of each of `sizes` sizes first, then each policy at each size. The bound itself,
    /// asked for as a policy, is only replayed again where a timeline is to follow it.
    /// Neither is made of what `refused` says.
    pub fn of(
        policies: &[Named<PolicySpec>],
        sizes: usize,
        timed: bool,
        refused: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut list: Vec<Job> = (0..sizes).map(|size| Job::Bound { size }).collect();
        let mut cells = Vec::with_capacity(sizes * policies.len());
        for size in 0..sizes {
            for (policy, named) in policies.iter().enumerate() {
                if refused(policy, size) {
                    continue;
                }
                let replay = if named.value == PolicySpec::Belady && !timed {
                    size
                } else {
                    list.push(Job::Policy { policy, size });
                    list.len() - 1
                };
                cells.push(Cell { policy, size, replay, bound: size });
            }
        }
        Self { list, cells }
    }

    /// Holds what `is_bypass` says, by policy and size, against the bound with bypass: one more replay a
    /// size, behind all others.
    #[must_use]
    pub fn with_bypass(mut self, is_bypass: impl Fn(usize, usize) -> bool) -> Self {
        for cell in self.cells.iter_mut().filter(|cell| is_bypass(cell.policy, cell.size)) {
            let job = Job::Bypass { size: cell.size };
            cell.bound = self.list.iter().position(|&known| known == job).unwrap_or_else(|| {
                self.list.push(job);
                self.list.len() - 1
            });
        }
        self
    }
}

impl Cell {
    /// The policy that is its bound.
    pub fn bound(&self) -> PolicySpec {
        // The forced bound of each size stands at the size's own place.
        if self.bound == self.size { PolicySpec::Belady } else { PolicySpec::BeladyBypass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_replayed_once_where_no_timeline_follows() {
        let policies = ["lru", "belady"].map(|name| Named::new(name, name.parse().unwrap()));
        let jobs = Jobs::of(&policies, 2, false, |_, _| false);
        let (bound, lru) = (|size| Job::Bound { size }, |size| Job::Policy { policy: 0, size });
        assert_eq!(jobs.list, [bound(0), bound(1), lru(0), lru(1)]);
        let replays: Vec<usize> = jobs.cells.iter().map(|cell| cell.replay).collect();
        assert_eq!(replays, [2, 0, 3, 1]);
        let timed = Jobs::of(&policies, 2, true, |_, _| false);
        assert_eq!(timed.list.len(), 6);
        assert_eq!(timed.cells[1], Cell { policy: 1, size: 0, replay: 3, bound: 0 });
        let without = Jobs::of(&policies, 2, false, |policy, size| (policy, size) == (0, 0));
        assert_eq!(without.list, [bound(0), bound(1), lru(1)]);
        let kept: Vec<_> = without.cells.iter().map(|cell| (cell.policy, cell.size)).collect();
        assert_eq!(kept, [(1, 0), (0, 1), (1, 1)]);
    }

    #[test]
    fn the_bound_with_bypass_is_replayed_once_a_size_that_needs_it() {
        let policies = ["lru", "fifo"].map(|name| Named::new(name, name.parse().unwrap()));
        let jobs = Jobs::of(&policies, 2, false, |_, _| false).with_bypass(|_, size| size == 1);
        assert_eq!(jobs.list[6..], [Job::Bypass { size: 1 }]);
        let bounds: Vec<usize> = jobs.cells.iter().map(|cell| cell.bound).collect();
        assert_eq!(bounds, [0, 0, 6, 6]);
        assert_eq!(jobs.cells[0].bound(), PolicySpec::Belady);
        assert_eq!(jobs.cells[3].bound(), PolicySpec::BeladyBypass);
    }
}
