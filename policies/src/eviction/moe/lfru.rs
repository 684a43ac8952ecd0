//! LFRU: least frequently and recently used, one quotient of uses and age.
//!
//! Source: tinyserve and vLLM pull request 37190, where the running step's own experts were at
//! first evicted by mistake; here they never may leave. Quotients are compared by exact products.

use serde::{Deserialize, Serialize};

use crate::occupancy::counted_in;
use crate::registry::Listed;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};
use crate::{
    Config, Event, Key, Lfu, Need, NoConfig, Parameter, Policy, PolicyInfo, PoolShape, Room,
};

/// What people are told of it.
const INFO: PolicyInfo = PolicyInfo {
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

/// Uses over age.
#[derive(Debug, Clone)]
pub struct Lfru {
    /// Residents by uses; among equal uses the least recent leaves first, as LFU has it.
    by_uses: Lfu,
    /// Residents by recency: the back has the greatest age.
    links: Links,
    order: List,
    /// The clock at each key's last use.
    last: Vec<u64>,
    /// Number of each key's last use: tells apart the uses of one event.
    ticks: Vec<u64>,
    by_access: bool,
    clock: u64,
    tick: u64,
}

impl Lfru {
    /// An empty pool.
    #[must_use]
    pub fn new(pool: &PoolShape, config: &LfruConfig) -> Self {
        let links = Links::new(pool.keys, 1);
        Self {
            by_uses: Lfu::new(pool),
            order: links.list(0),
            links,
            last: vec![0; pool.keys as usize],
            ticks: vec![0; pool.keys as usize],
            by_access: config.clock == LfruClock::Access,
            clock: 0,
            tick: 0,
        }
    }

    /// Of the residents with equal uses only the least recent can win, so one for each number of
    /// uses competes, fewest uses first; it ends where even the greatest age of all would not help.
    #[inline(always)]
    fn victim(&self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let age = |key: Key| self.clock - self.last[key as usize] + 1;
        let greatest = age(self.links.back(self.order)?);
        let mut best: Option<(u64, u64, u64, Key)> = None;
        for (uses, key) in self.by_uses.oldest_by_count(&may_leave) {
            let (age, tick) = (age(key), self.ticks[key as usize]);
            if let Some((lowest, of_age, of_tick, _)) = best {
                if uses * of_age > lowest * greatest {
                    break;
                }
                let (left, right) = (uses * of_age, lowest * age);
                if left > right || (left == right && tick > of_tick) {
                    continue;
                }
            }
            best = Some((uses, age, tick, key));
        }
        best.map(|(_, _, _, key)| key)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.tick += 1;
        self.clock += u64::from(self.by_access);
    }

    #[inline(always)]
    fn used(&mut self, key: Key) {
        self.last[key as usize] = self.clock;
        self.ticks[key as usize] = self.tick;
    }
}

impl Listed for Lfru {
    type Config = LfruConfig;
    const INFO: &'static PolicyInfo = &INFO;

    fn configured(pool: &PoolShape, config: &LfruConfig) -> Self {
        Self::new(pool, config)
    }

    fn memory(pool: &PoolShape, _: &LfruConfig) -> u64 {
        sum([
            <Lfu as Listed>::memory(pool, &NoConfig {}),
            Links::memory(pool.keys, 1),
            array::<[u64; 2]>(pool.keys),
        ])
    }
}

impl Policy for Lfru {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = false;

    counted_in!(by_uses.slots);

    #[inline(always)]
    fn contains(&self, key: Key) -> bool {
        self.links.contains(key)
    }

    #[inline(always)]
    fn hit(&mut self, key: Key) {
        self.advance();
        self.used(key);
        self.by_uses.hit(key);
        self.links.move_to_front(self.order, key);
    }

    #[inline(always)]
    fn make_room<R: Room>(&mut self, _: Key, room: &mut R) -> bool {
        self.advance();
        self.free_a_slot(room)
    }

    #[inline(always)]
    fn enter(&mut self, key: Key) {
        self.used(key);
        self.by_uses.enter(key);
        self.links.push_front(self.order, key);
    }

    #[inline(always)]
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.victim(may_leave)?;
        self.discard(victim);
        Some(victim)
    }

    #[inline(always)]
    fn discard(&mut self, key: Key) {
        self.by_uses.discard(key);
        self.links.unlink(key);
    }

    #[inline(always)]
    fn begin_event(&mut self, _: &Event<'_>) {
        self.clock += u64::from(!self.by_access);
    }

    fn validate(&self) -> Result<(), String> {
        self.by_uses.validate()?;
        let length = self.links.validate(self.order)?;
        if length != self.len() {
            return Err(format!("{length} by recency, {} by uses", self.len()));
        }
        Ok(())
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
