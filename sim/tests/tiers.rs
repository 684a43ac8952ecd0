//! Host memory over disk under the accelerator's cache: against a naive reference, and what must
//! stay as it is.

use hotset_cost_models::{Disk, Link};
use hotset_policies::{Slots, TierMode};
use hotset_sim::{
    Change, Compute, CopyOrder, Counts, Futures, HostSetting, LruCurve, PhaseFilter, Semantics,
    Setting, Steps, TimeModel, Timeline, Times, Window, replay, replay_timed,
};
use hotset_traces::testing::shared;
use hotset_traces::{Format, ImportOptions, Phase, Trace, bundled, import};
use proptest::prelude::*;

use crate::common::{Numbers, random_trace};

/// LRU in event semantics, written out: most recent last.
struct NaiveLru {
    order: Vec<(usize, u32)>,
    slots: usize,
}

impl NaiveLru {
    fn new(slots: u32) -> Self {
        Self { order: Vec::new(), slots: slots as usize }
    }

    fn remove(&mut self, key: (usize, u32)) -> bool {
        let found = self.order.iter().position(|&other| other == key);
        found.map(|place| self.order.remove(place)).is_some()
    }

    /// Hits, and per miss, ascending: the expert, whether it came in, and who left for it.
    fn event(&mut self, layer: usize, experts: &[u32]) -> (u64, Vec<Miss>) {
        let (mut hits, mut missing) = (0, Vec::new());
        for &expert in experts {
            if self.remove((layer, expert)) {
                self.order.push((layer, expert));
                hits += 1;
            } else {
                missing.push(expert);
            }
        }
        missing.sort_unstable();
        let fits = experts.len() <= self.slots;
        let of_event = |key: &(usize, u32)| key.0 == layer && experts.contains(&key.1);
        let mut misses = Vec::new();
        for expert in missing {
            let mut left = None;
            if fits && self.order.len() == self.slots {
                let oldest = self.order.iter().position(|key| !of_event(key)).unwrap();
                left = Some(self.order.remove(oldest));
            }
            if fits {
                self.order.push((layer, expert));
            }
            misses.push(Miss { expert, placed: fits, left });
        }
        (hits, misses)
    }
}

struct Miss {
    expert: u32,
    placed: bool,
    left: Option<(usize, u32)>,
}

/// Hits above, hits in host memory, reads, and experts kept, of two tiers of LRU.
fn naive(trace: &Trace, steps: &Steps, gpu: u32, host: &HostSetting) -> [u64; 4] {
    let (mut upper, mut lower) = (NaiveLru::new(gpu), NaiveLru::new(host.slots.total()));
    let mut counted = [0; 4];
    for step in 0..steps.len() {
        for layer in 0..trace.shape().layers().len() {
            let mut experts: Vec<u32> = Vec::new();
            for place in steps.places(step) {
                for expert in trace.layer_ids(steps.row(place), layer).iter() {
                    if !experts.contains(&expert) {
                        experts.push(expert);
                    }
                }
            }
            let (hits, misses) = upper.event(layer, &experts);
            counted[0] += hits;
            let mut asked = Vec::new();
            for miss in &misses {
                if host.mode == TierMode::Inclusive || !miss.placed {
                    asked.push(miss.expert);
                } else if lower.remove((layer, miss.expert)) {
                    counted[1] += 1;
                } else {
                    counted[2] += 1;
                }
            }
            let (hits, reads) = lower.event(layer, &asked);
            counted[1] += hits;
            counted[2] += reads.len() as u64;
            if host.mode == TierMode::Exclusive {
                for left in misses.iter().filter_map(|miss| miss.left) {
                    if lower.order.len() == lower.slots {
                        lower.order.remove(0);
                    }
                    lower.order.push(left);
                    counted[3] += 1;
                }
            }
        }
    }
    counted
}

fn host(slots: u32, mode: TierMode) -> HostSetting {
    HostSetting { mode, ..HostSetting::new("lru".parse().unwrap(), slots) }
}

fn over(gpu: u32, host: Option<HostSetting>) -> Setting {
    Setting { host, ..Setting::new("lru".parse().unwrap(), Slots::Global(gpu)) }
}

fn run(trace: &Trace, steps: &Steps, setting: &Setting) -> Counts {
    replay(trace, steps, &Futures::new(trace, steps, Semantics::Event, PhaseFilter::All), setting)
        .unwrap()
}

fn agree(trace: &Trace, chunk: u32, gpu: u32, below: &HostSetting) {
    let steps = Steps::of(trace, chunk);
    let total = run(trace, &steps, &over(gpu, Some(below.clone()))).total();
    let found = [total.hits, total.tiers.host_hits, total.tiers.misses(), total.tiers.kept];
    assert_eq!(found, naive(trace, &steps, gpu, below), "{}: {gpu}, {below:?}", trace.name());
    assert_eq!(total.misses(), total.tiers.host_hits + total.tiers.misses());
}

const MODES: [TierMode; 2] = [TierMode::Inclusive, TierMode::Exclusive];

#[test]
fn two_tiers_of_lru_are_the_naive_ones_on_the_bundled_trace() {
    let trace = bundled().unwrap();
    for mode in MODES {
        for (gpu, below) in [(96, 192), (192, 512), (384, 100)] {
            agree(&trace, 512, gpu, &host(below, mode));
        }
    }
}

#[test]
fn two_tiers_of_lru_are_the_naive_ones_on_recorded_traces() {
    let sets = [
        (Format::Npz, "data/h200-two-turn/routes.npz"),
        (Format::Nvmoe, "data/nvmoe/olmoe-smoke.jsonl"),
        (Format::Warp, "data/warp/trace_olmoe_299.jsonl"),
    ];
    for (format, path) in sets {
        let Some(path) = shared(path) else { continue };
        let trace = import(format, path, &ImportOptions::default()).unwrap();
        let eighth = trace.shape().total_experts() / 8;
        for mode in MODES {
            agree(&trace, 512, eighth, &host(3 * eighth, mode));
        }
    }
}

/// Times of each step over a link, and what was counted.
fn timed(trace: &Trace, setting: &Setting, model: &TimeModel) -> (Counts, Times) {
    let steps = Steps::of(trace, 4);
    let futures = Futures::new(trace, &steps, Semantics::Event, PhaseFilter::All);
    let link = Link::affine("l", 1_000_000, 900_000_000);
    let timeline = Timeline::new(trace.shape(), &link, model).with_steps();
    let (counts, mut timelines) =
        replay_timed(trace, &steps, &futures, setting, vec![timeline]).unwrap();
    (counts, timelines.remove(0).finish().0)
}

fn wall(times: &Times) -> u64 {
    Phase::ALL.iter().map(|&phase| times.bucket(phase, Window::All).wall()).sum()
}

/// A disk without latency that costs a read what the link costs a copy.
fn as_the_link() -> Disk {
    let mut disk = Disk::of_rate("d", 1e9, 0.0);
    disk.transfers[0].ps = 900_000_000;
    disk
}

fn instant() -> Disk {
    let mut disk = as_the_link();
    disk.transfers[0].ps = 0;
    disk
}

fn setting_of(trace: &Trace, numbers: &mut Numbers) -> Setting {
    let total = trace.shape().total_experts();
    let policy = ["lru", "fifo", "lfu", "s3-fifo", "td-table"][numbers.below(5) as usize];
    let mut setting =
        Setting::new(policy.parse().unwrap(), Slots::Global(1 + numbers.below(total)));
    let prefetch = ["none", "ahead", "previous-token"][numbers.below(3) as usize];
    if trace.shape().layers().len() > 1 {
        setting.prefetch = prefetch.parse().unwrap();
    }
    setting.misses =
        ["fetch", "host", "upload-cap:n=1"][numbers.below(3) as usize].parse().unwrap();
    setting
}

fn host_of(trace: &Trace, numbers: &mut Numbers) -> HostSetting {
    let slots = 1 + numbers.below(trace.shape().total_experts());
    let policy = ["lru", "page-cache", "2q", "random"][numbers.below(4) as usize];
    HostSetting {
        mode: MODES[numbers.below(2) as usize],
        read_ahead: numbers.below(3),
        ..HostSetting::new(policy.parse().unwrap(), slots)
    }
}

/// The counts without what the tiers below did.
fn above(counts: &Counts) -> hotset_sim::Bucket {
    hotset_sim::Bucket { tiers: Default::default(), ..counts.total() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn two_tiers_of_lru_are_the_naive_ones_on_random_traces(seed in any::<u64>()) {
        let trace = random_trace(seed);
        let mut numbers = Numbers(seed ^ 5);
        let total = trace.shape().total_experts();
        // A host that holds everything begins with it.
        let (gpu, below) = (1 + numbers.below(total), 1 + numbers.below(total - 1));
        for mode in MODES {
            agree(&trace, 1 + numbers.below(6), gpu, &host(below, mode));
        }
    }

    #[test]
    fn a_host_that_holds_everything_is_as_none_whatever_the_disk(seed in any::<u64>()) {
        let trace = random_trace(seed);
        let mut numbers = Numbers(seed ^ 7);
        let mut two = setting_of(&trace, &mut numbers);
        // Slots that become fewer give experts up outside of any plan.
        let fewer = Slots::Global(1 + numbers.below(two.slots.total()));
        two.resizes = vec![Change { token: 2, to: fewer }];
        let whole = HostSetting {
            read_ahead: numbers.below(3),
            ..host(trace.shape().total_experts(), MODES[numbers.below(2) as usize])
        };
        let three = Setting { host: Some(whole.clone()), ..two.clone() };
        let disk = Disk::of_rate("slow", 1e6, 1e6);
        let model = TimeModel { compute: Compute::per_token_ms(0.5), ..TimeModel::default() };
        let (counts, times) = timed(&trace, &two, &model);
        let (below, over_disk) = timed(&trace, &three, &TimeModel { disk: Some(disk), ..model });
        prop_assert_eq!(above(&counts), above(&below));
        let tiers = below.total().tiers;
        prop_assert_eq!((tiers.misses(), tiers.ahead()), (0, 0), "{:?}", whole.mode);
        prop_assert_eq!(times, over_disk);
    }

    #[test]
    fn a_disk_that_takes_no_time_changes_none(seed in any::<u64>()) {
        let trace = random_trace(seed);
        let mut numbers = Numbers(seed ^ 9);
        let two = setting_of(&trace, &mut numbers);
        let three = Setting { host: Some(host_of(&trace, &mut numbers)), ..two.clone() };
        let copies = [CopyOrder::InOrder, CopyOrder::DemandFirst, CopyOrder::TwoEngines]
            [numbers.below(3) as usize];
        let model =
            TimeModel { compute: Compute::per_token_ms(0.5), copies, ..TimeModel::default() };
        let (counts, times) = timed(&trace, &two, &model);
        let (below, over_disk) =
            timed(&trace, &three, &TimeModel { disk: Some(instant()), ..model });
        prop_assert_eq!(above(&counts), above(&below));
        prop_assert_eq!(times, over_disk);
    }

    #[test]
    fn a_disk_as_fast_as_the_link_costs_nothing_read_through_and_a_read_an_event_else(
        seed in any::<u64>(),
    ) {
        let trace = random_trace(seed);
        let mut numbers = Numbers(seed ^ 11);
        let mut two = setting_of(&trace, &mut numbers);
        two.misses = "fetch".parse().unwrap();
        let below = HostSetting { read_ahead: 0, ..host_of(&trace, &mut numbers) };
        let three = Setting { host: Some(below), ..two.clone() };
        let model = TimeModel { compute: Compute::per_token_ms(0.5), ..TimeModel::default() };
        let over = |disk: Disk| TimeModel { disk: Some(disk), ..model.clone() };
        // Without what a copy costs beside its bytes, which a read does not.
        let (counts, times) = timed_over(&trace, &two, &model);
        let through = Disk { through: true, ..as_the_link() };
        let (_, read_through) = timed_over(&trace, &three, &over(through));
        prop_assert_eq!(wall(&times), wall(&read_through));
        let (_, whole) = timed_over(&trace, &three, &over(as_the_link()));
        prop_assert!(wall(&whole) >= wall(&times));
        if two.prefetch == hotset_sim::Prefetch::None {
            let events = counts.total().accesses;
            let read = trace.shape().layers().iter().map(|l| as_the_link().read_ps(l.expert_bytes));
            let most = read.max().unwrap();
            prop_assert!(wall(&whole) - wall(&times) <= events * most);
        }
    }

    #[test]
    fn host_memory_at_every_size_in_one_pass(seed in any::<u64>()) {
        let trace = random_trace(seed);
        let mut numbers = Numbers(seed ^ 13);
        let steps = Steps::of(&trace, 1 + numbers.below(6));
        let total = trace.shape().total_experts();
        let policy = ["lru", "lfu", "sieve", "td-table"][numbers.below(4) as usize];
        let upper = Setting::new(policy.parse().unwrap(), Slots::Global(1 + numbers.below(total)));
        one_pass(&trace, &steps, &upper, 1..total);
    }
}

fn timed_over(trace: &Trace, setting: &Setting, model: &TimeModel) -> (Counts, Times) {
    let steps = Steps::of(trace, 4);
    let futures = Futures::new(trace, &steps, Semantics::Event, PhaseFilter::All);
    let link = Link::affine("l", 0, 900_000_000);
    let timeline = Timeline::new(trace.shape(), &link, model);
    let (counts, mut timelines) =
        replay_timed(trace, &steps, &futures, setting, vec![timeline]).unwrap();
    (counts, timelines.remove(0).finish().0)
}

/// Compares the curve with a replay at each of `sizes`; returns how many it knew.
fn one_pass(
    trace: &Trace,
    steps: &Steps,
    upper: &Setting,
    sizes: impl Iterator<Item = u32>,
) -> usize {
    let curve = LruCurve::of_host(trace, steps, upper).unwrap();
    let mut known = 0;
    for size in sizes {
        let Some(found) = curve.counts(&Slots::Global(size)) else { continue };
        let below = Setting { host: Some(host(size, TierMode::Inclusive)), ..upper.clone() };
        let replayed = run(trace, steps, &below);
        for phase in Phase::ALL {
            let (found, replayed) =
                (found.bucket(phase, Window::All), replayed.bucket(phase, Window::All));
            assert_eq!(found.hits, replayed.tiers.host_hits, "{size} slots, {phase:?}");
            assert_eq!(found.demand_fetches, replayed.tiers.reads, "{size} slots, {phase:?}");
        }
        known += 1;
    }
    known
}

#[test]
fn host_memory_at_many_sizes_in_one_pass_on_the_bundled_trace() {
    let trace = bundled().unwrap();
    let steps = Steps::of(&trace, 512);
    let total = trace.shape().total_experts();
    let upper = over(total / 8, None);
    assert!(one_pass(&trace, &steps, &upper, (64..total).step_by(97)) > 4);
}

#[test]
fn predictions_that_fill_host_memory_leave_the_cache_above_alone_and_hide_reads() {
    let trace = bundled().unwrap();
    let (gpu, below) = (192, 640);
    let plain = over(gpu, Some(host(below, TierMode::Inclusive)));
    let mut ahead = plain.clone();
    ahead.prefetch = "oracle:width=8,lookahead=2".parse().unwrap();
    ahead.host.as_mut().unwrap().prefetches = true;
    let disk: Disk = "2GB/s:100us".parse().unwrap();
    let model =
        TimeModel { compute: Compute::per_token_ms(8.0), disk: Some(disk), ..TimeModel::default() };
    let (alone, alone_times) = timed(&trace, &plain, &model);
    let (filled, filled_times) = timed(&trace, &ahead, &model);
    assert_eq!(above(&alone), above(&filled));
    let reads = |counts: &Counts| counts.total().tiers.misses();
    assert!(reads(&filled) * 4 < reads(&alone), "{} {}", reads(&filled), reads(&alone));
    assert!(wall(&filled_times) < wall(&alone_times));
}

/// The tier below has room for everything, whatever the slots above give back: what was read once is
/// read never again, however often a queued copy is taken back on its way up.
#[test]
fn exclusive_tiers_lose_nothing_when_copies_are_taken_back() {
    let (mut cancelled, mut came_down) = (0, 0);
    for seed in 0..80 {
        let trace = random_trace(seed);
        if trace.shape().layers().len() < 2 {
            continue;
        }
        let total = trace.shape().total_experts();
        let gpu = 2 + Numbers(seed ^ 11).below(total - 2);
        for read_ahead in [0, 2] {
            let below = HostSetting { read_ahead, ..host(total, TierMode::Exclusive) };
            let setting = Setting {
                prefetch: "ahead:cancel=true,width=3".parse().unwrap(),
                ..over(gpu, Some(below))
            };
            let model = TimeModel { disk: Some(as_the_link()), ..TimeModel::default() };
            let (counts, _) = timed(&trace, &setting, &model);
            let bucket = counts.total();
            let read = bucket.tiers.misses() + bucket.tiers.ahead();
            assert!(read <= u64::from(total), "seed {seed}, {gpu} slots: {read} of {total} read");
            cancelled += bucket.prefetches_cancelled;
            came_down += bucket.tiers.kept;
        }
    }
    assert!(cancelled > 100 && came_down > 100, "{cancelled} {came_down}");
}
