//! Calls whose answers the reference fills in; where no layer is given, of the only layer.

use super::{Call, Planned, SlotCounts};

pub(super) fn begin(tokens: u32) -> Call {
    Call::BeginStep { tokens }
}

pub(super) fn demand(experts: &[u32]) -> Call {
    demand_of(0, experts.to_vec(), Vec::new())
}

pub(super) fn demand_of(layer: u32, experts: Vec<u32>, weights: Vec<f32>) -> Call {
    let (plan, residents) = (Planned::default(), Vec::new());
    Call::Demand { layer, experts, weights, plan, residents }
}

pub(super) fn prefetch(experts: &[u32]) -> Call {
    prefetch_of(0, experts.to_vec())
}

pub(super) fn prefetch_of(layer: u32, experts: Vec<u32>) -> Call {
    let (plan, residents) = (Planned::default(), Vec::new());
    Call::Prefetch { layer, experts, plan, residents }
}

pub(super) fn complete(expert: u32) -> Call {
    Call::Complete { layer: 0, expert, was_pending: false }
}

pub(super) fn release() -> Call {
    Call::Release { layer: 0 }
}

pub(super) fn slot_of(expert: u32) -> Call {
    Call::SlotOf { layer: 0, expert, slot: None }
}

pub(super) fn resize(slots: u32) -> Call {
    Call::Resize {
        slots: SlotCounts::Global(slots),
        refused: false,
        evicted: Vec::new(),
        moved: Vec::new(),
        residents: Vec::new(),
    }
}

pub(super) fn invalidate(first: u32, end: u32) -> Call {
    let (left, residents) = (Vec::new(), Vec::new());
    Call::Invalidate { pool: 0, first, end, refused: false, left, residents }
}
