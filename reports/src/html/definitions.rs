//! What each column says, in a sentence: `docs/metrics.md` has the formulas.

/// By the columns' names for programs.
const ALL: &[(&[&str], &str)] = &[
    (&["policy"], "Who is evicted: 'hotset policies NAME' defines it."),
    (&["arm"], "A policy, and behind a slash who says what to prefetch."),
    (&["phase"], "Prefill, decode or verify: the tokens counted; never mixed."),
    (&["scope"], "One pool of slots over all layers (global), or slots of each layer's own."),
    (&["link"], "Over which experts are copied, as measured: 'hotset link NAME' has its profile."),
    (&["capacity_slots", "slots"], "Experts that the cache holds at once, over all layers."),
    (&["capacity_percent", "slots_percent", "slots_share"], "Slots over all experts of the model."),
    (&["capacity_gib"], "What the slots take, with the largest expert in each."),
    (
        &["hit_percent", "hit", "hit_rate"],
        "Distinct experts found resident over those asked for, event by event.",
    ),
    (&["cold"], "The hit rate until the cache was full."),
    (&["steady"], "The hit rate once the cache was full."),
    (&["moved_per_token", "moved"], "Experts copied a token, whatever for."),
    (&["mib_per_token", "mib"], "MiB copied a token, whatever for."),
    (
        &["ms_per_token", "timeline_ms_per_token", "timeline"],
        "Time a token on the timeline: compute, copies and host beside each other; in sequential semantics one after another.",
    ),
    (&["tokens_per_s"], "1000 over ms a token: of one request, nothing else running."),
    (
        &["belady_ratio", "x_belady"],
        "Misses over those of Belady's MIN at the same size: 1 is the optimum of caches that fetch on a miss.",
    ),
    (&["serial_ms_per_token"], "Compute and every transfer one after another: the upper bound."),
    (&["prefetch_hidden_ms_per_token"], "Compute, demand, and what prefetch exceeds compute by."),
    (&["perfect_ms_per_token"], "The longer of compute and all transfers: the lower bound."),
    (&["compute_ms"], "Kernels alone."),
    (&["slowed_ms"], "What kernels take longer beside copies."),
    (&["exposed_demand_ms"], "Waiting for experts that were asked for, which nothing hides."),
    (&["exposed_prefetch_ms"], "Waiting that prefetched copies cause."),
    (&["exposed_disk_ms"], "Waiting for experts that are read from disk."),
    (&["exposed_host_ms"], "Waiting for experts that the host's cores serve."),
    (&["drained_ms"], "What is left to copy when the last kernel has ended."),
    (&["idle_link_ms"], "Time in which the link copies nothing."),
    (&["experts_per_step"], "Distinct experts that a step needs of a layer."),
    (&["demand_per_token"], "Experts copied a token because they were asked for."),
    (&["prefetch_per_token"], "Experts copied a token because they were predicted."),
    (&["repetition"], "Share of the tested sequences that repeat a document."),
    (
        &["hit_points", "hit_points_95"],
        "Hit rate minus LRU's on the same sequences, in points; ends: 95% of the bootstrap's draws.",
    ),
    (
        &["change_percent", "timeline_change", "timeline_change_95"],
        "Time a token over LRU's on the same sequences, minus 1; ends: 95% of the bootstrap's draws.",
    ),
    (&["measured_ms"], "Time a token of the live run, by the wall clock."),
    (&["predicted_ms"], "Time a token of the timeline, from link measurements alone."),
    (&["error_percent"], "|predicted - live| over live."),
    (&["gib"], "1 GiB is 1024 x 1024 x 1024 bytes."),
    (&["basis"], "Whether a number is exact, documented, measured, or somebody's guess."),
    (
        &["no_overlap_tokens_per_s"],
        "Tokens a second of all users if copies and compute take turns.",
    ),
    (
        &["timeline_tokens_per_s"],
        "Tokens a second of all users with copies beside compute, as the timeline has it.",
    ),
    (
        &["perfect_tokens_per_s"],
        "Tokens a second of all users if the longest part hides all others.",
    ),
];

/// The definition of a column.
pub(super) fn of(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(names, _)| names.contains(&name)).map(|(_, told)| *told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_defined_once() {
        let mut names: Vec<&str> =
            ALL.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(of("no such column"), None);
    }
}
