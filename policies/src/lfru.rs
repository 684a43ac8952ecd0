//! LFRU: least frequently and recently used, one quotient of uses and age.
//!
//! Source: tinyserve and vLLM pull request 37190, where the running step's own experts were at
//! first evicted by mistake; here they never may leave. Quotients are compared by exact products.

use serde::{Deserialize, Serialize};

use crate::resident_set::ResidentSet;
use crate::{Config, Event, Key, Need, Parameter, Policy, PolicyInfo, PoolShape, Room};

/// What people are told of it.
pub const INFO: PolicyInfo = PolicyInfo {
    name: "lfru",
    summary: "tinyserve: evicts the fewest uses an age",
    definition: "A key's uses are 1 on admission and one more with each hit; its age is clock - last + 1, where the clock counts events (or accesses, the present one included) and last is its value at the last use. The victim has the smallest uses / age; ties go to the least recent.",
    source: "tinyserve; vLLM pull request 37190",
    needs: Need::Nothing,
    parameters: &[Parameter {
        name: "clock",
        default: "event",
        meaning: "what the age counts: 'event' (a layer of a step) or 'access'",
    }],
};

/// What LFRU's clock counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LfruClock {
    /// Layers of steps.
    #[default]
    Event,
    /// Hits and admissions.
    Access,
}

/// Parameters of [`Lfru`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LfruConfig {
    /// What the clock counts.
    pub clock: LfruClock,
}

impl Config for LfruConfig {}

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    uses: u64,
    /// The clock at the last use.
    last: u64,
    /// Number of the last use: tells apart the uses of one event.
    tick: u64,
}

/// Uses over age.
#[derive(Debug, Clone)]
pub struct Lfru {
    residents: ResidentSet,
    uses: Vec<Use>,
    by_access: bool,
    clock: u64,
    tick: u64,
    capacity: u32,
}

impl Lfru {
    pub(crate) fn configured(pool: &PoolShape, config: &LfruConfig) -> Self {
        Self::new(pool, config)
    }

    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &LfruConfig) -> Self {
        Self {
            residents: ResidentSet::new(pool.keys),
            uses: vec![Use::default(); pool.keys as usize],
            by_access: config.clock == LfruClock::Access,
            clock: 0,
            tick: 0,
            capacity: pool.capacity,
        }
    }

    #[inline(always)]
    fn victim<R: Room>(&self, room: &R) -> Option<Key> {
        let mut best: Option<(u64, u64, u64, Key)> = None;
        for &key in self.residents.keys() {
            let Use { uses, last, tick } = self.uses[key as usize];
            let age = self.clock - last + 1;
            let better = match best {
                Some((lowest, of_age, of_tick, _)) => {
                    let (left, right) = (uses * of_age, lowest * age);
                    left < right || (left == right && tick < of_tick)
                }
                None => true,
            };
            if better && room.may_evict(key) {
                best = Some((uses, age, tick, key));
            }
        }
        best.map(|(_, _, _, key)| key)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.tick += 1;
        self.clock += u64::from(self.by_access);
    }
}

impl Policy for Lfru {
    const OBSERVES: bool = true;

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.residents.contains(key)
    }

    fn len(&self) -> u32 {
        self.residents.len()
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.advance();
        let uses = self.uses[key as usize].uses + 1;
        self.uses[key as usize] = Use { uses, last: self.clock, tick: self.tick };
    }

    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.advance();
        if self.residents.len() >= self.capacity && !self.evict_one(room) {
            return false;
        }
        self.uses[key as usize] = Use { uses: 1, last: self.clock, tick: self.tick };
        self.residents.insert(key);
        true
    }

    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let Some(victim) = self.victim(room) else {
            return false;
        };
        self.residents.remove(victim);
        room.evict(victim);
        true
    }

    fn remove(&mut self, key: Key) {
        self.residents.remove(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity;
    }

    #[inline(always)]
    fn begin_event(&mut self, _: &Event<'_>) {
        self.clock += u64::from(!self.by_access);
    }

    fn validate(&self) -> Result<(), String> {
        self.residents.validate(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Anyone;

    /// Accesses 0 0 0 1 2 with two slots, clock by access. At the admission of 2 the clock is 5:
    /// key 0 has 3 uses and age 5 - 3 + 1 = 3, quotient 1; key 1 has 1 use and age 2, quotient
    /// 1/2, and leaves. Then 2 2 3: at 3 the clock is 8; key 0 has 3/(8 - 3 + 1) = 1/2, key 2 has
    /// 3/(8 - 7 + 1) = 3/2: key 0 leaves.
    #[test]
    fn the_smallest_quotient_leaves() {
        let mut lfru = Lfru::new(&PoolShape::flat(2, 4), &LfruConfig { clock: LfruClock::Access });
        for key in [0, 0, 0, 1, 2, 2, 2] {
            if lfru.contains(key) {
                lfru.hit(key);
            } else {
                assert!(lfru.admit(key, &mut Anyone));
            }
        }
        assert!(lfru.contains(0) && !lfru.contains(1));
        assert!(lfru.admit(3, &mut Anyone));
        assert!(!lfru.contains(0) && lfru.contains(2));
        assert_eq!(lfru.validate(), Ok(()));
    }

    #[test]
    fn the_clock_is_read_by_name() {
        assert!("lfru:clock=access".parse::<crate::PolicySpec>().is_ok());
        assert!("lfru:clock=token".parse::<crate::PolicySpec>().is_err());
    }
}
