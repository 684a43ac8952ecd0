//! What real engines got wrong: a file a mistake.

use super::calls::{begin, complete, demand, invalidate, prefetch, release, resize, slot_of};
use super::{Call, SCHEMA, Scenario, ScenarioFile, SlotCounts};

/// A file for each mistake.
pub(super) fn files() -> Vec<(String, ScenarioFile)> {
    vec![
        evicts_what_the_step_needs(),
        duplicates_counted_as_hits(),
        prefetch_counted_as_demand_hit(),
        slot_used_before_its_copy_is_complete(),
        borrowed_slots_left_mapped(),
        resize_under_load(),
        more_experts_than_slots(),
    ]
}

fn file(
    name: &str,
    about: &str,
    mistake: &str,
    scenarios: Vec<Scenario>,
) -> (String, ScenarioFile) {
    let file = ScenarioFile {
        schema: SCHEMA.to_owned(),
        about: about.to_owned(),
        mistake: Some(mistake.to_owned()),
        scenarios,
    };
    (format!("engine-{name}.json"), file)
}

/// One layer of six experts.
fn scenario(name: &str, policy: &str, slots: u32, calls: Vec<Call>) -> Scenario {
    Scenario {
        name: name.to_owned(),
        policy: policy.to_owned(),
        experts: vec![6],
        top_k: vec![2],
        slots: SlotCounts::Global(slots),
        ordered_copies: false,
        calls,
    }
}

fn ordered(mut scenario: Scenario) -> Scenario {
    scenario.ordered_copies = true;
    scenario
}

/// Steps of one token each, released at once.
fn steps(events: &[&[u32]]) -> Vec<Call> {
    events.iter().flat_map(|experts| [begin(1), demand(experts), release()]).collect()
}

fn evicts_what_the_step_needs() -> (String, ScenarioFile) {
    let calls = || steps(&[&[0, 1], &[2, 0], &[3, 4], &[5, 3]]);
    let policies = ["fifo", "lru", "lfu", "clock"];
    file(
        "evicts-needed",
        "An event's experts arrive together: none of them may leave for another, whatever the \
         policy thinks of it. FIFO would let 0 go for 2 although the event needs both.",
        "The victim was chosen without looking at the running step: an expert that the step needs \
         was evicted for another one of it, and its slot overwritten before use (vLLM #37190).",
        policies
            .iter()
            .map(|policy| {
                let name = format!("{policy}: nobody leaves for another of the same event");
                ordered(scenario(&name, policy, 2, calls()))
            })
            .collect(),
    )
}

fn duplicates_counted_as_hits() -> (String, ScenarioFile) {
    let calls = vec![
        begin(4),
        demand(&[1, 1, 2, 1]),
        release(),
        begin(4),
        demand(&[2, 1, 1, 2]),
        release(),
        begin(3),
        demand(&[3, 1, 3]),
        release(),
    ];
    file(
        "duplicates",
        "Tokens of a step share experts. An event is a set: four entries that name two experts are \
         two accesses and need two slots.",
        "Every entry of the routing table was looked up by itself: the first one missed, its \
         duplicates counted as hits, and the hit rate rose with the batch size.",
        vec![ordered(scenario("a batch of tokens that share experts", "lru", 2, calls))],
    )
}

fn prefetch_counted_as_demand_hit() -> (String, ScenarioFile) {
    let used = vec![
        begin(1),
        prefetch(&[3]),
        complete(3),
        demand(&[3]),
        release(),
        begin(1),
        demand(&[3]),
        release(),
    ];
    let wasted = vec![
        begin(1),
        prefetch(&[0, 1]),
        complete(0),
        complete(1),
        demand(&[2]),
        complete(2),
        release(),
    ];
    let untouched = vec![
        begin(1),
        demand(&[0]),
        complete(0),
        release(),
        begin(1),
        demand(&[1]),
        complete(1),
        release(),
        prefetch(&[0]),
        begin(1),
        demand(&[2]),
        complete(2),
        release(),
    ];
    file(
        "prefetch-hit",
        "What a prefetch brought in is told apart when it is first asked for, and counted as \
         wasted when it leaves before that. A prediction of a resident expert is no use of it.",
        "A prefetched expert counted as a hit and its bytes as nothing: 6.9 bytes were spent to \
         save one while the hit rate rose (mlx-lm #1588).",
        vec![
            scenario("used: the first hit is the prefetch's, the next one is not", "lru", 2, used),
            scenario("wasted: it left before anybody asked", "lru", 2, wasted),
            scenario("predicting a resident expert does not make it recent", "lru", 2, untouched),
        ],
    )
}

fn slot_used_before_its_copy_is_complete() -> (String, ScenarioFile) {
    let visible =
        vec![begin(1), demand(&[0]), slot_of(0), complete(0), slot_of(0), complete(0), release()];
    let late = vec![
        begin(1),
        prefetch(&[4]),
        demand(&[4]),
        slot_of(4),
        complete(4),
        release(),
        begin(1),
        demand(&[4]),
        release(),
    ];
    let pinned = vec![
        begin(1),
        demand(&[0]),
        release(),
        begin(1),
        demand(&[1]),
        release(),
        complete(0),
        begin(1),
        demand(&[1]),
        complete(1),
        release(),
    ];
    file(
        "in-flight",
        "A slot is not readable until its copy is complete; an expert on its way is neither a hit \
         nor fetched twice; and its slot is nobody's to take.",
        "The expert was entered in the slot table when its copy was submitted: a later kernel read \
         the slot while the copy was still running, and a hit was counted for bytes not there.",
        vec![
            scenario("the slot shows only once the copy is complete", "lru", 2, visible),
            scenario("a late prefetch is pending, not a hit", "lru", 2, late),
            scenario("a slot that a copy is running into is not a victim", "lru", 1, pinned),
        ],
    )
}

fn borrowed_slots_left_mapped() -> (String, ScenarioFile) {
    let borrowed = vec![
        begin(1),
        demand(&[0, 1]),
        release(),
        begin(1),
        demand(&[2, 3]),
        invalidate(1, 3),
        release(),
        invalidate(0, 2),
        slot_of(0),
        slot_of(1),
        slot_of(2),
        begin(1),
        demand(&[0, 2]),
        release(),
    ];
    file(
        "borrowed-slots",
        "A prefill that borrows slots as buffers overwrites them: whoever was there is not \
         resident any more, and the slots are free again. Slots in use cannot be borrowed.",
        "Prefill streamed whole layers through slots of the decode cache and left them mapped: \
         decode then read another layer's weights as hits (FreeToken invalidates them).",
        vec![ordered(scenario("two slots are overwritten", "lru", 4, borrowed))],
    )
}

fn resize_under_load() -> (String, ScenarioFile) {
    let shrink = vec![
        begin(1),
        demand(&[0, 1]),
        complete(0),
        complete(1),
        release(),
        begin(1),
        demand(&[2, 3]),
        complete(2),
        resize(2),
        complete(3),
        resize(2),
        release(),
        resize(2),
        slot_of(2),
        slot_of(3),
        begin(1),
        demand(&[2, 3]),
        release(),
    ];
    let grow = vec![
        begin(1),
        demand(&[0, 1]),
        resize(4),
        complete(0),
        complete(1),
        release(),
        begin(1),
        demand(&[2, 3]),
        complete(2),
        complete(3),
        release(),
        slot_of(0),
    ];
    file(
        "resize",
        "Shrinking waits for open demands and for copies in flight, lets the policy choose who \
         leaves, and moves the others out of the slots that go away. Growing needs no wait.",
        "Slots that the KV cache takes while serving (asked for in SGLang #37797) were unmapped \
         although a layer's kernel still read them, or a copy into them was running.",
        vec![
            scenario("shrinking waits for who is in use, then moves", "lru", 4, shrink),
            scenario("growing under an open demand", "lru", 2, grow),
        ],
    )
}

fn more_experts_than_slots() -> (String, ScenarioFile) {
    let calls = vec![
        begin(1),
        demand(&[0, 1]),
        release(),
        begin(2),
        demand(&[2, 0, 3, 4]),
        release(),
        begin(1),
        demand(&[1, 0]),
        release(),
    ];
    file(
        "overflow",
        "An event that needs more experts than its pool has slots uses who is there and admits \
         nobody: its misses go through a transient buffer.",
        "A prefill larger than the cache washed through it and evicted decode's experts for \
         nothing: three times the misses (imp #1408).",
        vec![ordered(scenario("four experts, two slots", "lru", 2, calls))],
    )
}
