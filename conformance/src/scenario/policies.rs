//! One file for each policy: the same pseudo-random calls for all, answered by each.

use hotset_policies::{ADMISSIONS, Need, POLICIES, PolicyInfo, PolicySpec};

use super::calls::{demand_of, prefetch_of};
use super::{Call, SCHEMA, Scenario, ScenarioFile, SlotCounts};

/// Layers of 6 and 5 experts, two a token: small enough to follow by hand.
const EXPERTS: [u32; 2] = [6, 5];
const TOP_K: [u32; 2] = [2, 2];

/// A file a policy that an engine can run, and one for admission.
pub(super) fn files() -> Vec<(String, ScenarioFile)> {
    let mut files = Vec::new();
    for info in POLICIES {
        let online = info.name.parse::<PolicySpec>().is_ok_and(|policy| policy.is_online());
        if online {
            files.push((format!("{}.json", info.name), of_policy(info)));
        }
    }
    files.push(("admission.json".to_owned(), of_admission()));
    files
}

fn file(about: String, scenarios: Vec<Scenario>) -> ScenarioFile {
    ScenarioFile { schema: SCHEMA.to_owned(), about, mistake: None, scenarios }
}

fn of_policy(info: &PolicyInfo) -> ScenarioFile {
    let weighted = info.needs == Need::Weights;
    let with = |name: &str, slots, ordered_copies, calls| Scenario {
        name: name.to_owned(),
        policy: info.name.to_owned(),
        experts: EXPERTS.to_vec(),
        top_k: TOP_K.to_vec(),
        slots,
        ordered_copies,
        calls,
    };
    file(
        format!("{}: {}", info.name, info.definition),
        vec![
            with(
                "one pool, steps of one token",
                SlotCounts::Global(6),
                true,
                steps(1, 20, 1, weighted),
            ),
            with(
                "a pool a layer, steps of two tokens",
                SlotCounts::Layer(vec![4, 3]),
                true,
                steps(2, 10, 2, weighted),
            ),
            with(
                "predictions and copies in flight",
                SlotCounts::Global(7),
                false,
                predicted_steps(3, 8, weighted),
            ),
        ],
    )
}

fn of_admission() -> ScenarioFile {
    let scenarios = ADMISSIONS
        .iter()
        .filter(|info| info.name != "always")
        .map(|info| {
            let parameters = match info.name {
                "upload-cap" => ":n=1",
                "tinylfu" => ":sample=2",
                _ => ":every=3",
            };
            Scenario {
                name: format!("{}: {}", info.name, info.definition),
                policy: format!("lru+{}{parameters}", info.name),
                experts: EXPERTS.to_vec(),
                top_k: TOP_K.to_vec(),
                slots: SlotCounts::Global(5),
                ordered_copies: true,
                calls: steps(4, 16, 1, false),
            }
        })
        .collect();
    file("admission in front of a policy, here LRU".to_owned(), scenarios)
}

/// Numbers that are the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u32) -> u32 {
        // Knuth's MMIX generator; its upper bits are the good ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    /// The experts of one layer for some tokens: lower ids are likelier, as routing is skewed.
    fn experts(&mut self, layer: usize, tokens: u32) -> Vec<u32> {
        let mut experts = Vec::new();
        for _ in 0..tokens {
            let start = experts.len();
            while experts.len() < start + TOP_K[layer] as usize {
                let expert = self.below(EXPERTS[layer]).min(self.below(EXPERTS[layer]));
                if !experts[start..].contains(&expert) {
                    experts.push(expert);
                }
            }
        }
        experts
    }

    /// Sixteenths, which every float holds exactly.
    fn weights(&mut self, count: usize, wanted: bool) -> Vec<f32> {
        if !wanted {
            return Vec::new();
        }
        (0..count).map(|_| (1 + self.below(15)) as f32 / 16.0).collect()
    }
}

/// Steps of `tokens` tokens; each layer is released before the next one asks.
fn steps(seed: u64, steps: u32, tokens: u32, weighted: bool) -> Vec<Call> {
    let mut draws = Draws(seed);
    let mut calls = Vec::new();
    for _ in 0..steps {
        calls.push(Call::BeginStep { tokens });
        for layer in 0..EXPERTS.len() {
            let experts = draws.experts(layer, tokens);
            let weights = draws.weights(experts.len(), weighted);
            calls.push(demand_of(layer as u32, experts, weights));
            calls.push(Call::Release { layer: layer as u32 });
        }
    }
    calls
}

/// While a layer's demand is open the next one's experts are predicted. Demanded copies complete
/// before the release, predicted ones only when the step ends.
fn predicted_steps(seed: u64, steps: u32, weighted: bool) -> Vec<Call> {
    let mut draws = Draws(seed);
    let mut calls = Vec::new();
    for _ in 0..steps {
        calls.push(Call::BeginStep { tokens: 1 });
        let mut in_flight: Vec<(u32, u32)> = Vec::new();
        for layer in 0..EXPERTS.len() {
            let experts = draws.experts(layer, 1);
            let weights = draws.weights(experts.len(), weighted);
            calls.push(demand_of(layer as u32, experts.clone(), weights));
            let next = (layer + 1) % EXPERTS.len();
            let predicted = draws.experts(next, 1);
            in_flight.extend(predicted.iter().map(|&expert| (next as u32, expert)));
            calls.push(prefetch_of(next as u32, predicted));
            let layer = layer as u32;
            for expert in experts {
                calls.push(Call::Complete { layer, expert, was_pending: false });
            }
            calls.push(Call::Release { layer });
        }
        for (layer, expert) in in_flight {
            calls.push(Call::Complete { layer, expert, was_pending: false });
        }
    }
    calls
}
