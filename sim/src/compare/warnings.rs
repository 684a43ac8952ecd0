//! What a reader must know to read a comparison's rows right.

use hotset_policies::Slots;
use hotset_policies::miss::MissHandler;
use hotset_traces::Shape;

use crate::prepare::{Preparation, is_bound, is_sized, serves_as_bounds_do};
use crate::report::Row;
use crate::size::Size;
use crate::{Named, Resamples, Window};

/// All warnings, those of the sizes first.
pub(super) fn warnings(prepared: &Preparation<'_>, rows: &[Row]) -> Vec<String> {
    let request = prepared.request();
    let (shape, sizes) = (prepared.shape(), prepared.sizes());
    let mut warnings = left_out(prepared);
    warnings.extend(sizes.iter().filter_map(|size| fewer_than_a_token(size, shape)));
    warnings.extend(sizes.iter().filter_map(|size| overflows(size, rows)));
    warnings.extend(rows.iter().filter(|row| row.window == Window::All).flat_map(costly_overlap));
    if !is_sized(shape) {
        warnings.push(
            "the size of an expert is not recorded, so no bytes and no times: give \
             `Compare::expert_bytes`"
                .to_owned(),
        );
    }
    let bounds = request.policies.iter().filter(|policy| is_bound(&policy.value));
    warnings.extend(bounds.filter(|_| !serves_as_bounds_do(request)).map(|policy| {
        format!("{} is a bound: its rows are without prefetch, every miss fetched", policy.text)
    }));
    warnings.extend(keeps_all(prepared));
    warnings.extend(sampled(prepared, rows));
    warnings.extend(prepared.parts().split().map(|split| {
        format!(
            "all rows count the last {} sequences only; the first {} were trained on",
            split.tested_sequences, split.training_sequences
        )
    }));
    warnings
}

/// A bias that favours nobody in a token's own events.
fn keeps_all(prepared: &Preparation<'_>) -> Option<String> {
    let MissHandler::Bias { keep, .. } = prepared.request().serving.misses else { return None };
    let top_k = prepared.shape().layers().iter().map(|layer| layer.top_k).max().unwrap_or(0);
    (keep >= top_k).then(|| {
        format!(
            "bias with keep={keep} replaces none of a token's {top_k} experts: it changes steps of several \
             tokens alone; give keep below {top_k}"
        )
    })
}

/// What was sampled, and rows whose sequences are too few to tell how far they can be off.
fn sampled(prepared: &Preparation<'_>, rows: &[Row]) -> Vec<String> {
    let Some(sample) = prepared.parts().sample() else { return Vec::new() };
    let few = |row: &&Row| {
        row.window == Window::All
            && row.sampled.as_ref().is_some_and(|of| of.sequences < Resamples::FEWEST)
    };
    let few = rows.iter().filter(few).filter_map(|row| row.sampled.as_ref());
    let few = few.map(|of| of.sequences).min().map(|fewest| {
        format!(
            "rows of {fewest} sequences have no interval: it needs {} at least; give a larger \
             `Compare::sample`",
            Resamples::FEWEST
        )
    });
    [Some(sample.told()), few].into_iter().flatten().collect()
}

/// One warning for each policy and scope that would take too much memory.
fn left_out(prepared: &Preparation<'_>) -> Vec<String> {
    let (request, sizes) = (prepared.request(), prepared.sizes());
    let mut warnings = Vec::new();
    for (policy, Named { text: name, .. }) in request.policies.iter().enumerate() {
        for &scope in &request.scopes {
            let of_scope = |size: usize| sizes[size].scope == scope;
            let all = (0..sizes.len()).filter(|&size| of_scope(size)).count();
            let refused =
                prepared.refused().iter().filter(|r| r.policy == policy && of_scope(r.size));
            let (count, bytes) =
                refused.fold((0, 0), |(count, most), r| (count + 1, r.bytes.max(most)));
            if count > 0 {
                warnings.push(format!(
                    "policy '{name}', {} scope, would take {bytes} bytes of memory, but may take \
                     {}: left out at {count} of {all} sizes; give `Compare::policy_memory` to \
                     allow more",
                    scope.name(),
                    request.policy_memory,
                ));
            }
        }
    }
    warnings
}

fn fewer_than_a_token(size: &Size, shape: &Shape) -> Option<String> {
    let token = shape.experts_per_token();
    match size.slots {
        Slots::Global(slots) if slots < token => Some(format!(
            "{slots} slots are fewer than the {token} experts that one token uses: a global \
             LRU has evicted an expert before its layer's next turn and hits only by chance \
             of order; give at least {token} slots, or use `Compare::scopes` layer"
        )),
        Slots::Global(_) | Slots::Layer(_) => None,
    }
}

fn overflows(size: &Size, rows: &[Row]) -> Option<String> {
    let slots = size.slots.total();
    let of_size = |row: &&Row| {
        row.window == Window::All && row.scope == size.scope && row.capacity_slots == slots
    };
    let overflows = rows.iter().filter(of_size).map(|row| row.overflow_events).max().unwrap_or(0);
    let bypassed = rows.iter().filter(of_size).any(|row| row.bound != "belady");
    (overflows > 0).then(|| {
        format!(
            "{} scope, {slots} slots: {overflows} events need more experts than their pool has \
             slots; their misses went through a transient buffer and were not admitted{}",
            size.scope.name(),
            if bypassed { ", and the bound is MIN with bypass" } else { "" },
        )
    })
}

fn costly_overlap(row: &Row) -> impl Iterator<Item = String> + '_ {
    let costly =
        |link: &&crate::LinkPrice| link.time.is_some_and(|time| time.overlap_saves_ms < 0.0);
    row.links.iter().filter(costly).map(|link| {
        format!(
            "{}, {} scope, {} slots, {} over {}: overlap costs more than it hides; copies \
             and kernels slow each other by more than what runs at once saves",
            row.policy,
            row.scope.name(),
            row.capacity_slots,
            row.phase.name(),
            link.link,
        )
    })
}
