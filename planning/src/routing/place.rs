//! Slots counted in steps: where they lie between one step's experts and all.

/// Where slots for `share` of all experts lie between a step's experts (0) and all (1), when a step
/// needs `distinct` of a layer's `experts`.
pub(super) fn place(share: f64, distinct: f64, experts: f64) -> f64 {
    if share >= 1.0 {
        return 1.0;
    }
    let steps = experts / distinct;
    if share <= 0.0 || steps.is_nan() || steps <= 1.0 || share * steps < 1.0 {
        return -1.0;
    }
    libm::log(share * steps) / libm::log(steps)
}

/// The share of all experts at `place`.
pub(super) fn share_at(place: f64, distinct: f64, experts: f64) -> f64 {
    match place {
        place if place >= 1.0 => 1.0,
        place => libm::pow(experts / distinct, place - 1.0),
    }
}
