//! Slots that come and go during a run: a KV cache that grows takes memory from the experts.

use std::str::FromStr;

use hotset_policies::Slots;
use hotset_traces::Shape;

use crate::{Capacity, Scope, SimError};

/// From the first step on before which `token` tokens ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<T> {
    /// Tokens before it.
    pub token: u64,
    /// What holds from there on.
    pub to: T,
}

/// Capacities from given tokens on, ascending; the run begins with the cache's own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schedule {
    changes: Vec<Change<Capacity>>,
}

impl Schedule {
    /// Capacities, each from the first step on before which so many tokens ran.
    ///
    /// # Errors
    /// Tokens that do not ascend.
    pub fn new(changes: Vec<Change<Capacity>>) -> Result<Self, SimError> {
        match changes.windows(2).find(|pair| pair[0].token >= pair[1].token) {
            Some(pair) => {
                Err(SimError::ScheduleOrder { before: pair[0].token, after: pair[1].token })
            }
            None => Ok(Self { changes }),
        }
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The slots of each change for a model in a scope, in a run of `tokens` tokens.
    ///
    /// # Errors
    /// An impossible capacity, or a change at or behind the end of the run.
    pub fn slots(
        &self,
        shape: &Shape,
        scope: Scope,
        tokens: u64,
    ) -> Result<Vec<Change<Slots>>, SimError> {
        let slots = |change: &Change<Capacity>| {
            let token = change.token;
            if token >= tokens {
                return Err(SimError::SchedulePastEnd { token, tokens });
            }
            Ok(Change { token, to: change.to.slots(shape, scope)? })
        };
        self.changes.iter().map(slots).collect()
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Change { token, to: capacity }) in self.changes.iter().enumerate() {
            write!(f, "{}{token}:{capacity}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl serde::Serialize for Schedule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Schedule {
    type Err = SimError;

    /// Reads `TOKENS:CAPACITY,TOKENS:CAPACITY`: `1000:25%,5000:20%`.
    fn from_str(text: &str) -> Result<Self, SimError> {
        let change = |part: &str| {
            let wrong = || SimError::ScheduleText { text: part.to_owned() };
            let (token, capacity) = part.split_once(':').ok_or_else(wrong)?;
            let token = token.trim().parse().map_err(|_| wrong())?;
            Ok(Change { token, to: capacity.parse()? })
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        Self::new(parts.map(change).collect::<Result<_, SimError>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_and_checked() {
        let shape = Shape::uniform(4, 8, 2).unwrap();
        let schedule: Schedule = "0:50%,100:8".parse().unwrap();
        let slots = schedule.slots(&shape, Scope::Global, 101).unwrap();
        let change = |token, slots| Change { token, to: Slots::Global(slots) };
        assert_eq!(slots, [change(0, 16), change(100, 8)]);
        let told = |text: &str| {
            let read = text.parse::<Schedule>().and_then(|s| s.slots(&shape, Scope::Global, 100));
            read.unwrap_err().to_string()
        };
        assert!(told("100:8").contains("at token 100 lies past the end of the run of 100 tokens"));
        assert!(told("7:8,7:9").contains("7 after 7"));
        assert!(told("8").contains("'8'"));
        assert!(told("3:101%").contains("more than all 32 experts"));
        assert_eq!(schedule.to_string(), "0:50%,100:8");
        assert!("".parse::<Schedule>().unwrap().is_empty());
    }
}
