//! What a cache did in one event, as engines log it.

use std::fmt;

use hotset_policies::{Action, Key, Placement, Plan};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

/// An expert of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expert {
    /// MoE layer, from 0.
    pub layer: u32,
    /// Its id in the layer.
    pub expert: u32,
}

impl fmt::Display for Expert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expert {} of layer {}", self.expert, self.layer)
    }
}

/// An expert that was resident, as an id or with its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Its id in the event's layer.
    pub expert: u32,
    /// Its slot in the engine's numbering, if logged.
    pub slot: Option<u32>,
}

/// Who left for a fetched expert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Evicted {
    /// The engine does not say (the field is absent).
    #[default]
    Unrecorded,
    /// The slot was free (null).
    Nobody,
    /// This one.
    Expert(Expert),
}

impl Evicted {
    /// Expert `expert` of MoE layer `layer`.
    #[must_use]
    pub fn expert(layer: u32, expert: u32) -> Self {
        Self::Expert(Expert { layer, expert })
    }

    fn is_unrecorded(&self) -> bool {
        *self == Self::Unrecorded
    }
}

impl Serialize for Evicted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unrecorded | Self::Nobody => serializer.serialize_none(),
            Self::Expert(expert) => expert.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Evicted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expert = Option::<Expert>::deserialize(deserializer)?;
        Ok(expert.map_or(Self::Nobody, Self::Expert))
    }
}

/// An expert that was copied into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetched {
    /// Its id in the event's layer.
    pub expert: u32,
    /// Its slot in the engine's numbering, if logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Who left for it.
    #[serde(default, skip_serializing_if = "Evicted::is_unrecorded")]
    pub evicted: Evicted,
}

/// What a cache did in one event: one layer of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The step in the engine's numbering, if logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// MoE layer, from 0.
    pub layer: u32,
    /// Experts found resident, each once.
    pub hits: Vec<Held>,
    /// Experts copied into slots.
    pub fetches: Vec<Fetched>,
    /// Experts served without a slot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<u32>,
    /// Experts that left without another taking their slot in this event, if logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Vec<Expert>>,
}

impl Decision {
    /// A decision about `layer` that has nobody in it yet.
    #[must_use]
    pub fn of(layer: u32) -> Self {
        Self { layer, ..Self::default() }
    }

    /// Adds a hit.
    #[must_use]
    pub fn hit(mut self, expert: u32) -> Self {
        self.hits.push(Held { expert, slot: None });
        self
    }

    /// Adds a fetch.
    #[must_use]
    pub fn fetch(mut self, expert: u32, evicted: Evicted) -> Self {
        self.fetches.push(Fetched { expert, slot: None, evicted });
        self
    }

    /// Adds an expert that was served without a slot.
    #[must_use]
    pub fn bypass(mut self, expert: u32) -> Self {
        self.unplaced.push(expert);
        self
    }
}

impl Serialize for Held {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(slot) = self.slot else {
            return serializer.serialize_u32(self.expert);
        };
        let mut fields = serializer.serialize_struct("Held", 2)?;
        fields.serialize_field("expert", &self.expert)?;
        fields.serialize_field("slot", &slot)?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Held {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdOrFields;

        impl<'de> Visitor<'de> for IdOrFields {
            type Value = Held;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expert's id or {\"expert\": id, \"slot\": slot}")
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Held, E> {
                let expert = u32::try_from(id).map_err(|_| {
                    E::invalid_value(de::Unexpected::Unsigned(id), &"an expert's id")
                })?;
                Ok(Held { expert, slot: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Held, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Fields {
                    expert: u32,
                    slot: Option<u32>,
                }
                let map = de::value::MapAccessDeserializer::new(map);
                let Fields { expert, slot } = Fields::deserialize(map)?;
                Ok(Held { expert, slot })
            }
        }

        deserializer.deserialize_any(IdOrFields)
    }
}

/// The expert with a dense key; `bases` has the key of each layer's expert 0.
pub(crate) fn expert_of(bases: &[Key], key: Key) -> Expert {
    let layer = bases.partition_point(|&base| base <= key) - 1;
    Expert { layer: layer as u32, expert: key - bases[layer] }
}

/// A plan as an engine would log it.
pub(crate) fn reference(plan: &Plan<'_>, layer: u32, bases: &[Key]) -> Decision {
    let mut decision = Decision::of(layer);
    for placement in plan.placements {
        let (expert, slot) = (placement.expert, Some(placement.slot));
        match placement.action {
            Action::Hit | Action::PrefetchHit | Action::Pending => {
                decision.hits.push(Held { expert, slot });
            }
            Action::Fetch => {
                let evicted = victim(placement, bases);
                decision.fetches.push(Fetched { expert, slot, evicted });
            }
            Action::Unplaced => decision.unplaced.push(expert),
        }
    }
    if !plan.dropped.is_empty() {
        decision.dropped = Some(plan.dropped.iter().map(|&key| expert_of(bases, key)).collect());
    }
    decision
}

/// Who leaves for a placed expert.
pub(crate) fn victim(placement: &Placement, bases: &[Key]) -> Evicted {
    placement.evicted().map_or(Evicted::Nobody, |key| Evicted::Expert(expert_of(bases, key)))
}
