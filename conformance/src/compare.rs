//! One event's plan and an engine's decision, side by side: where they differ, and which rule says
//! so.

use hotset_policies::{Action, AdmissionSpec, ExpertId, Key, Placement, Plan};

use crate::compared::Compared;
use crate::decision::{Decision, Evicted, Expert, expert_of, victim};
use crate::divergence::ids;
use crate::slot_book::{SlotBook, SlotFault};

/// A mark's place once the engine has accounted for the expert.
const ACCOUNTED: u32 = u32::MAX;

/// A difference between an engine and the policy.
pub(crate) struct Finding {
    /// What differs.
    pub what: String,
    /// The rule about it.
    pub rule: String,
}

/// When an expert was last part of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The event's number, from 1; 0: never.
    pub event: u64,
    /// The expert's place in the event's plan, or [`ACCOUNTED`].
    pub place: u32,
}

/// The event's experts in the order asked, each once.
pub(crate) fn in_rank_order<E: ExpertId>(experts: &[E], mut distinct: Vec<u32>) -> Vec<u32> {
    let rank = |id: u32| experts.iter().position(|expert| expert.index() == id);
    distinct.sort_by_key(|&id| rank(id));
    distinct
}

/// One event's plan and decision, looked at side by side.
pub(crate) struct Comparison<'a> {
    pub plan: &'a Plan<'a>,
    pub decision: &'a Decision,
    pub bases: &'a [Key],
    pub admission: AdmissionSpec,
}

impl Comparison<'_> {
    /// Hits are hits, fetches are fetches, and every expert is accounted for once.
    pub fn actions(&self, marks: &mut [Mark], event: u64) -> Option<Finding> {
        let hits = self.decision.hits.iter().map(|held| (held.expert, Action::Hit));
        let fetches = self.decision.fetches.iter().map(|fetched| (fetched.expert, Action::Fetch));
        let unplaced = self.decision.unplaced.iter().map(|&expert| (expert, Action::Unplaced));
        let mut accounted = 0;
        for (expert, did) in hits.chain(fetches).chain(unplaced) {
            let mark = &mut marks[expert as usize];
            let place = std::mem::replace(&mut mark.place, ACCOUNTED);
            if mark.event != event {
                return Some(Finding {
                    what: format!(
                        "expert {expert}: {} for the engine, but nobody asked for it",
                        noun(did)
                    ),
                    rule: "An event concerns the experts that its layer asks for.".to_owned(),
                });
            }
            if place == ACCOUNTED {
                return Some(Finding {
                    what: format!("the engine counts expert {expert} twice"),
                    rule: "Tokens of a step share experts: duplicates are one demand, so no hits."
                        .to_owned(),
                });
            }
            let does = self.plan.placements[place as usize].action;
            let same = match does {
                Action::Hit | Action::PrefetchHit => did == Action::Hit,
                other => did == other,
            };
            if !same {
                return Some(Finding {
                    what: format!(
                        "expert {expert}: {} for the engine, {} for the policy",
                        noun(did),
                        noun(does)
                    ),
                    rule: self.action_rule(did, does),
                });
            }
            accounted += 1;
        }
        if accounted == self.plan.placements.len() {
            return None;
        }
        let left_out: Vec<u32> = self
            .plan
            .placements
            .iter()
            .map(|placement| placement.expert)
            .filter(|&expert| marks[expert as usize].place != ACCOUNTED)
            .collect();
        Some(Finding {
            what: format!("the engine says nothing of experts {}", ids(&left_out)),
            rule: "Every expert that a layer asks for is a hit, a fetch or served without a slot."
                .to_owned(),
        })
    }

    fn action_rule(&self, did: Action, does: Action) -> String {
        let rule = match (did, does) {
            (Action::Hit, _) => {
                "A hit is an expert that held a slot, its copy complete, before the event began."
            }
            (_, Action::Hit | Action::PrefetchHit) => {
                "An expert that holds a slot is used from there."
            }
            (_, Action::Unplaced) if self.plan.overflow => {
                "An event that needs more experts than its pool has slots admits nothing: its \
                 misses go through a transient buffer."
            }
            _ if self.admission != AdmissionSpec::Always => self.admission.info().definition,
            (_, Action::Unplaced) => {
                "The policy declines the expert, or nobody may leave for it: it is served without \
                 a slot."
            }
            _ => "The policy admits the expert: it takes a free slot or a victim's.",
        };
        rule.to_owned()
    }

    /// Each fetched expert takes the place of the same one.
    pub fn victims(&self, compared: &mut Compared) -> Option<Finding> {
        for fetched in &self.decision.fetches {
            let did = fetched.evicted;
            if did == Evicted::Unrecorded {
                continue;
            }
            compared.victims += 1;
            let does = self.plan.placements.iter().find(|own| own.expert == fetched.expert)?;
            let does = victim(does, self.bases);
            if did == does {
                continue;
            }
            let expert = fetched.expert;
            let what = match (did, does) {
                (Evicted::Expert(did), Evicted::Expert(does)) => {
                    format!("for expert {expert} the engine evicts {did}, the policy {does}")
                }
                (Evicted::Expert(did), _) => {
                    format!("for expert {expert} the engine evicts {did}, but a slot is free")
                }
                (_, Evicted::Expert(does)) => format!(
                    "for expert {expert} the engine evicts nobody, but no slot is free: the \
                     policy evicts {does}"
                ),
                _ => return None,
            };
            return Some(Finding { what, rule: self.victim_rule(did) });
        }
        None
    }

    fn victim_rule(&self, did: Evicted) -> String {
        let Evicted::Expert(did) = did else {
            return "The victim is the policy's, see its definition.".to_owned();
        };
        let needed = did.layer == self.decision.layer
            && self.plan.placements.iter().any(|own| own.expert == did.expert);
        let others = |own: &Placement| victim(own, self.bases) == Evicted::Expert(did);
        if needed {
            "No expert that the event needs may leave for another one of it.".to_owned()
        } else if self.plan.placements.iter().any(others) {
            "It leaves in this event, but for another expert: misses take victims in ascending id."
                .to_owned()
        } else {
            "The victim is the policy's, see its definition.".to_owned()
        }
    }

    /// Who left beside the victims, if the engine says.
    pub fn dropped(&self) -> Option<Finding> {
        let mut did = self.decision.dropped.clone()?;
        let mut does: Vec<Expert> =
            self.plan.dropped.iter().map(|&key| expert_of(self.bases, key)).collect();
        did.sort_unstable();
        does.sort_unstable();
        if did == does {
            return None;
        }
        let names = |experts: &[Expert]| match experts {
            [] => "nobody".to_owned(),
            _ => experts.iter().map(Expert::to_string).collect::<Vec<_>>().join(", "),
        };
        Some(Finding {
            what: format!("the engine lets {} go, the policy {}", names(&did), names(&does)),
            rule: "Who leaves without another taking the slot at once is the policy's, see its \
                   definition."
                .to_owned(),
        })
    }

    /// Slots are the engine's to number, but an expert stays in its slot, a slot holds one expert,
    /// and who comes in takes the slot of who leaves for it.
    pub fn slots(
        &self,
        book: &mut SlotBook,
        pool: u32,
        compared: &mut Compared,
    ) -> Option<Finding> {
        let base = self.bases[self.decision.layer as usize];
        let rule = || {
            "An expert stays in its slot, a slot holds one expert at a time, and a fetched expert \
             takes the slot of the one that left for it."
                .to_owned()
        };
        for fetched in &self.decision.fetches {
            let own = self.plan.placements.iter().find(|own| own.expert == fetched.expert)?;
            if let (Some(slot), Some(key)) = (fetched.slot, own.evicted())
                && let Some(before) = book.slot_of(key).filter(|&before| before != slot)
            {
                let left = expert_of(self.bases, key);
                let expert = fetched.expert;
                return Some(Finding {
                    what: format!(
                        "the engine copies expert {expert} into slot {slot}, but {left}, in whose \
                         place it comes, was in slot {before}"
                    ),
                    rule: rule(),
                });
            }
        }
        let left = self.plan.placements.iter().filter_map(Placement::evicted);
        for key in left.chain(self.plan.dropped.iter().copied()) {
            book.left(pool, key);
        }
        let hits = self.decision.hits.iter().map(|held| (held.expert, held.slot));
        let fetches = self.decision.fetches.iter().map(|fetched| (fetched.expert, fetched.slot));
        for (expert, slot) in hits.chain(fetches) {
            let Some(slot) = slot else { continue };
            compared.slots += 1;
            let what = match book.holds(pool, slot, base + expert) {
                Ok(()) => continue,
                Err(SlotFault::Elsewhere(other)) => {
                    format!("the engine has expert {expert} in slot {slot}, before in slot {other}")
                }
                Err(SlotFault::Taken(other)) => format!(
                    "the engine has expert {expert} in slot {slot}, which holds {}",
                    expert_of(self.bases, other)
                ),
            };
            return Some(Finding { what, rule: rule() });
        }
        None
    }
}

fn noun(action: Action) -> &'static str {
    match action {
        Action::Hit | Action::PrefetchHit => "a hit",
        Action::Pending => "on its way",
        Action::Fetch => "a fetch",
        Action::Unplaced => "served without a slot",
    }
}
