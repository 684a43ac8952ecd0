//! The first event in which an engine and the policy differ, told to a person.

use std::fmt;

use serde::Serialize;

use crate::decision::{Decision, Evicted, Expert};

/// How every policy's events run, whatever it evicts.
pub const EVENT_RULE: &str = "An event is one layer of one step: its distinct experts, each \
counted once. Hits are touched in rank order; then the distinct misses, in ascending id, each take \
a free slot, else the slot of the policy's victim, which is none of the event's own experts. An \
event that needs more experts than its pool has slots admits nothing.";

/// Where an engine and the policy part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Number of the event, from 0.
    pub event: u64,
    /// Number of its step among those replayed, from 0.
    pub step: u64,
    /// Its MoE layer, from 0.
    pub layer: u32,
    /// What is different.
    pub what: String,
    /// The rule that decides it.
    pub rule: String,
    /// The policy's definition.
    pub definition: String,
    /// How events run under any policy.
    pub events: &'static str,
    /// What the event asked for, each expert once, best rank first.
    pub asked: Vec<u32>,
    /// What the engine did.
    pub engine: Decision,
    /// What the policy does; slots in the reference's numbering.
    pub policy: Decision,
    /// The experts that held a slot before the event, by layer, ascending.
    pub resident_before: Vec<Vec<u32>>,
}

/// Most ids that a list shows to a person.
const SHOWN: usize = 48;

/// A list of ids, abbreviated if it is long.
pub(crate) fn ids(list: &[u32]) -> String {
    let join = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    if list.len() <= SHOWN {
        return if list.is_empty() { "-".to_owned() } else { join(list) };
    }
    let half = SHOWN / 2;
    format!("{} ... {} ({})", join(&list[..half]), join(&list[list.len() - half..]), list.len())
}

impl Divergence {
    /// The layers whose residents matter to the event: its own, and those that somebody leaves.
    #[must_use]
    pub fn layers_concerned(&self) -> Vec<u32> {
        let leaving = |decision: &Decision| -> Vec<u32> {
            let evicted = decision.fetches.iter().filter_map(|fetched| match fetched.evicted {
                Evicted::Expert(expert) => Some(expert.layer),
                _ => None,
            });
            evicted.chain(decision.dropped.iter().flatten().map(|expert| expert.layer)).collect()
        };
        let mut layers = vec![self.layer];
        layers.extend(leaving(&self.engine));
        layers.extend(leaving(&self.policy));
        layers.sort_unstable();
        layers.dedup();
        layers.retain(|&layer| (layer as usize) < self.resident_before.len());
        layers
    }

    /// The residents of a layer before the event, abbreviated if they are many.
    #[must_use]
    pub fn residents_of(&self, layer: u32) -> String {
        self.resident_before.get(layer as usize).map_or_else(String::new, |list| ids(list))
    }

    /// What a decision did, one line an expert, for the experts that were asked for and any other.
    pub(crate) fn lines(&self, decision: &Decision) -> Vec<String> {
        let mut lines = Vec::new();
        let hits: Vec<u32> = decision.hits.iter().map(|held| held.expert).collect();
        lines.push(format!("hits {}", ids(&hits)));
        for fetched in &decision.fetches {
            lines.push(format!("fetches {}", Fetching(fetched.expert, fetched.evicted)));
        }
        if !decision.unplaced.is_empty() {
            lines.push(format!("serves without a slot {}", ids(&decision.unplaced)));
        }
        for dropped in decision.dropped.iter().flatten() {
            lines.push(format!("lets {dropped} go"));
        }
        lines
    }
}

/// One fetch in words.
pub(crate) struct Fetching(pub u32, pub Evicted);

impl fmt::Display for Fetching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Evicted::Unrecorded => write!(f, "{}", self.0),
            Evicted::Nobody => write!(f, "{} into a free slot", self.0),
            Evicted::Expert(Expert { layer, expert }) => {
                write!(f, "{} in place of expert {expert} of layer {layer}", self.0)
            }
        }
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, step, layer, .. } = self;
        writeln!(f, "event {event} (step {step}, layer {layer}): {}", self.what)?;
        writeln!(f, "asked for: {}", ids(&self.asked))?;
        writeln!(f, "the engine: {}", self.lines(&self.engine).join("; "))?;
        writeln!(f, "the policy: {}", self.lines(&self.policy).join("; "))?;
        writeln!(f, "resident before the event:")?;
        for layer in self.layers_concerned() {
            writeln!(f, "  layer {layer}: {}", self.residents_of(layer))?;
        }
        writeln!(f, "rule: {}", self.rule)?;
        writeln!(f, "policy: {}", self.definition)?;
        write!(f, "events: {}", self.events)
    }
}
