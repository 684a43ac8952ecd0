//! Belady's MIN with bypass: the bound where a miss may be served without being admitted.
//!
//! Source: L. A. Belady, 1966, with the bypass of S. McFarling, "Cache replacement with dynamic
//! exclusion", ISCA 1992. After an event its experts and the residents are candidates alike; the
//! ones needed again soonest stay, so an expert just used may go unadmitted, or leave right after
//! its hit. Every engine that can serve a miss from the host can in principle do this.
//!
//! It is no [`Policy`](crate::Policy): that could not evict the running event's own experts. It
//! reads a recorded stream and counts. Like MIN it is a bound for experts of one size only.

use std::sync::Arc;

use crate::structures::memory::array;
use crate::structures::position_set::PositionSet;
use crate::{Future, Need, PolicyInfo, PoolShape};

/// What people are told of it.
pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "belady-bypass",
    summary: "the bound with bypass: keeps what is needed soonest",
    definition: "After each event the residents and the event's experts are candidates; those whose next use is nearest stay, as many as there are slots. A miss that is not among them was served without being admitted, and a hit may leave. Optimal for experts of one size only.",
    source: "L. A. Belady, 1966; bypass: S. McFarling, Cache replacement with dynamic exclusion, ISCA 1992",
    needs: Need::Future,
    parameters: &[],
};

/// Marks an absent key in the table of positions.
const ABSENT: u32 = u32::MAX;

/// Bytes that the bound allocates beside what grows with the stream.
pub(super) fn memory(pool: &PoolShape) -> u64 {
    // First uses, places, and the events of the admissions.
    array::<[u32; 3]>(pool.keys)
}

/// What one event cost under [`BypassBound`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BypassedEvent {
    /// Experts that were not resident.
    pub misses: u32,
    /// Misses that stayed.
    pub admitted: u32,
    /// Residents that left.
    pub evicted: u32,
}

/// The offline optimum with bypass, one event of a recorded stream after another.
///
/// The sequential form is the same with events of one access.
#[derive(Debug, Clone)]
pub struct BypassBound {
    future: Arc<Future>,
    /// Position in the stream of the next event.
    cursor: usize,
    /// The position of its next use under which a resident key is filed, else `ABSENT`.
    filed: Vec<u32>,
    residents: PositionSet,
    /// Where the event began that each key was last admitted in.
    entered: Vec<u32>,
    len: u32,
    capacity: u32,
}

impl BypassBound {
    /// An empty pool of `capacity` slots before the first access of `future`'s stream.
    #[must_use]
    pub fn new(future: Arc<Future>, capacity: u32) -> Self {
        Self {
            cursor: 0,
            filed: vec![ABSENT; future.keys() as usize],
            residents: PositionSet::new(future.accesses().len()),
            entered: vec![ABSENT; future.keys() as usize],
            len: 0,
            capacity,
            future,
        }
    }

    /// Serves the stream's next `distinct` accesses as one event; they must be distinct keys.
    ///
    /// # Panics
    /// If the stream has fewer accesses left.
    pub fn event(&mut self, distinct: usize) -> BypassedEvent {
        let start = self.cursor as u32;
        let positions = self.cursor..self.cursor + distinct;
        self.cursor = positions.end;
        let mut event = BypassedEvent::default();
        for position in positions {
            let key = self.future.accesses()[position];
            let filed = std::mem::replace(&mut self.filed[key as usize], ABSENT);
            let miss = filed == ABSENT;
            if miss {
                event.misses += 1;
            } else {
                self.residents.remove(filed);
                self.len -= 1;
            }
            if let Some(next) = self.future.next_use(position) {
                self.residents.insert(next);
                self.filed[key as usize] = next;
                self.len += 1;
                if miss {
                    self.entered[key as usize] = start;
                    event.admitted += 1;
                }
            } else if !miss {
                event.evicted += 1;
            }
        }
        while self.len > self.capacity
            && let Some(last) = self.residents.max()
        {
            let key = self.future.accesses()[last as usize] as usize;
            self.residents.remove(last);
            self.filed[key] = ABSENT;
            self.len -= 1;
            // One that came in with this very event was not admitted after all.
            if self.entered[key] == start {
                event.admitted -= 1;
            } else {
                event.evicted += 1;
            }
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(stream: &[u32], events: &[usize], capacity: u32) -> Vec<BypassedEvent> {
        let keys = stream.iter().max().map_or(0, |most| most + 1);
        let future = Arc::new(Future::new(stream.to_vec(), keys).unwrap());
        let mut bound = BypassBound::new(future, capacity);
        events.iter().map(|&distinct| bound.event(distinct)).collect()
    }

    /// One slot, events {0} {1} {0} {1 2} {0}. After {1} the candidates are 0, needed at the third
    /// event, and 1, needed at the fourth: 0 stays, and 1 was only served. The third event hits 0,
    /// needed again at the fifth, and nobody else is a candidate. The fourth misses 1 and 2,
    /// neither of which is needed again. The fifth hits 0, for the last time: 4 misses. Forced
    /// admission in sequence must take 1, then 0, then 1, 2, 0 and misses all six.
    #[test]
    fn what_is_needed_later_is_served_without_being_admitted() {
        let found = misses(&[0, 1, 0, 1, 2, 0], &[1, 1, 1, 2, 1], 1);
        let of = |misses, admitted, evicted| BypassedEvent { misses, admitted, evicted };
        assert_eq!(found, [of(1, 1, 0), of(1, 0, 0), of(0, 0, 0), of(2, 0, 0), of(0, 0, 1)]);
    }

    /// Two slots, events {0 1} {2 3} {2 3} {0 1}: after the second event 2 and 3 are needed first,
    /// so 0 and 1 make room. Events {0 1} {2 3} {0 2}: 0 and 2 are kept, 1 and 3 go.
    #[test]
    fn an_events_experts_compete_with_the_residents() {
        let count = |stream: &[u32], events: &[usize]| {
            misses(stream, events, 2).iter().map(|event| event.misses).collect::<Vec<_>>()
        };
        assert_eq!(count(&[0, 1, 2, 3, 2, 3, 0, 1], &[2, 2, 2, 2]), [2, 2, 0, 2]);
        assert_eq!(count(&[0, 1, 2, 3, 0, 2], &[2, 2, 2]), [2, 2, 0]);
    }
}
