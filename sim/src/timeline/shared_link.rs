//! Two queues of copies over one link: demands, and prefetches that must not delay them.
//!
//! The link does work at one rate; an order says whose. Work is a copy's time behind others, in
//! half picoseconds, so that two queues with half of the link each stay exact. A prefetch is known
//! by its *mark*: the work of its queue up to its end.

use std::collections::VecDeque;

/// Ends of queued copies that are remembered; more are joined into the last.
const REMEMBERED: usize = 4096;

#[derive(Debug)]
pub(super) struct SharedLink {
    /// Whether both queues run at once, each with half of the link; else demands go first.
    two_engines: bool,
    at: u64,
    /// Work left of the prefetch copy that runs: not interrupted where demands go first.
    running: u64,
    demand: u64,
    /// Marks of the prefetches' work that was queued and that was done.
    queued: u64,
    done: u64,
    /// Ends of the queued prefetches, ascending, and where the first of them begins.
    ends: VecDeque<u64>,
    begins: u64,
}

impl SharedLink {
    pub fn new(two_engines: bool) -> Self {
        let ends = VecDeque::with_capacity(REMEMBERED);
        Self { two_engines, at: 0, running: 0, demand: 0, queued: 0, done: 0, ends, begins: 0 }
    }

    /// Lets the link work until `now`.
    pub fn advance(&mut self, now: u64) {
        let mut time = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        if self.two_engines {
            let both = time.min(self.demand).min(self.queued - self.done);
            self.demand -= both;
            self.done += both;
            time -= both;
        }
        let mut work = time.saturating_mul(2);
        let running = work.min(self.running);
        self.running -= running;
        work -= running;
        let demand = work.min(self.demand);
        self.demand -= demand;
        work -= demand;
        self.done = (self.done + running).saturating_add(work).min(self.queued);
        while let Some(&end) = self.ends.front()
            && end <= self.done
        {
            self.begins = end;
            self.ends.pop_front();
        }
    }

    /// Queues `work` picoseconds of copies that something waits for, now.
    pub fn demand(&mut self, work: u64) {
        if self.demand == 0 && work > 0 && !self.two_engines && self.done > self.begins {
            self.running = self.ends.front().map_or(0, |&end| end - self.done);
        }
        self.demand = self.demand.saturating_add(work.saturating_mul(2));
    }

    /// Queues a prefetch of `work` picoseconds, now; returns its mark.
    pub fn prefetch(&mut self, work: u64) -> u64 {
        self.queued = self.queued.saturating_add(work.saturating_mul(2));
        if self.ends.len() == REMEMBERED {
            self.ends.pop_back();
        }
        self.ends.push_back(self.queued);
        self.queued
    }

    /// When the demands are done, if nothing else is queued.
    pub fn demand_end(&self) -> u64 {
        let first = match self.two_engines {
            true => self.demand.min(self.queued - self.done),
            false => self.running,
        };
        self.at.saturating_add(self.demand.saturating_add(first) / 2)
    }

    /// When the prefetch of this mark is done, if nothing else is queued.
    pub fn mark_end(&self, mark: u64) -> u64 {
        let ahead = mark.saturating_sub(self.done);
        let demand = match self.two_engines {
            true => self.demand.min(ahead),
            false if ahead <= self.running => 0,
            false => self.demand,
        };
        self.at.saturating_add(ahead.saturating_add(demand) / 2)
    }

    /// When everything queued is done.
    pub fn end(&self) -> u64 {
        self.at.saturating_add((self.demand + (self.queued - self.done)) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_waits_for_the_copy_that_runs_and_passes_the_others() {
        let mut link = SharedLink::new(false);
        let marks = [10, 10, 10].map(|work| link.prefetch(work));
        link.advance(4);
        link.demand(5);
        // The first ends at 10, the demand at 15, then the other two.
        assert_eq!(link.demand_end(), 15);
        assert_eq!(marks.map(|mark| link.mark_end(mark)), [10, 25, 35]);
        link.advance(12);
        assert_eq!((link.demand_end(), link.mark_end(marks[1])), (15, 25));
        link.advance(20);
        link.demand(1);
        assert_eq!((link.demand_end(), link.mark_end(marks[1]), link.end()), (26, 25, 36));
    }

    #[test]
    fn nothing_that_runs_is_interrupted_for_a_demand_between_two_copies() {
        let mut link = SharedLink::new(false);
        let marks = [10, 10].map(|work| link.prefetch(work));
        link.advance(10);
        link.demand(5);
        assert_eq!((link.demand_end(), link.mark_end(marks[1])), (15, 25));
    }

    #[test]
    fn two_engines_share_the_link_while_both_run() {
        let mut link = SharedLink::new(true);
        let mark = link.prefetch(10);
        link.advance(4);
        link.demand(3);
        // Half speed each: the demand takes 6, to 10; the prefetch has 3 left then, to 13.
        assert_eq!((link.demand_end(), link.mark_end(mark), link.end()), (10, 13, 13));
        link.advance(5);
        assert_eq!((link.demand_end(), link.mark_end(mark), link.end()), (10, 13, 13));
        link.advance(11);
        assert_eq!((link.demand_end(), link.mark_end(mark)), (11, 13));
    }
}
