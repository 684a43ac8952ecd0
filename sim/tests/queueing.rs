//! Timelines worked by hand.

use crate::common::decode_trace;
use hotset_cost_models::{HbmModel, HostContention, HostKernel, Link, Picos};
use hotset_policies::miss::MissHandler;
use hotset_policies::{PolicySpec, Slots};
use hotset_sim::timeline::Recorder;
use hotset_sim::{
    Compute, CopyOrder, Futures, PhaseFilter, Prefetch, Semantics, Setting, Spent, Steps,
    TimeModel, Timeline, Wait, Window, replay_timed,
};
use hotset_traces::{Ids, Phase, Trace};

/// Three layers of four experts with top-1; a copy takes 10.
///
/// | token | layer 0 | layer 1 | layer 2 |
/// |---|---|---|---|
/// | 0 | needs 0, predicts 1 and 2 for layer 1 | needs 2, predicts 3 for layer 2 | needs 0 |
fn three_layers() -> Trace {
    let none = 255;
    let predictions = vec![none, none, 1, 2, 3, none];
    decode_trace(4, 1 << 20, &[&[&[0], &[2], &[0]]])
        .predictions(1, 2, Ids::U8(predictions))
        .build()
        .unwrap()
}

fn lru(slots: u32, prefetch: bool) -> Setting {
    let prefetch = if prefetch { "ahead".parse().unwrap() } else { Prefetch::None };
    Setting { prefetch, ..Setting::new(PolicySpec::Lru(Default::default()), Slots::Global(slots)) }
}

fn spent(trace: &Trace, setting: &Setting, link: &Link, model: &TimeModel) -> Spent {
    let steps = Steps::of(trace, 1);
    let futures = Futures::new(trace, &steps, Semantics::Event, PhaseFilter::All);
    let timeline = Timeline::new(trace.shape(), link, model);
    let (_, mut timelines) =
        replay_timed(trace, &steps, &futures, setting, vec![timeline]).unwrap();
    timelines.remove(0).finish().0.bucket(Phase::Decode, Window::All)
}

/// Zero compute: the time is that of the copies in their queue.
///
/// ```text
/// t     link                          compute
/// 0     copies 0:0 (demand)           layer 0 waits for it
/// 10    copies 1:1 (prefetch, wrong)  layer 0 runs; layer 1 needs 1:2, which is queued: late
/// 20    copies 1:2 (prefetch)         still waiting
/// 30    copies 2:3 (prefetch, wrong)  layer 1 runs; layer 2 needs 2:0, queued behind
/// 40    copies 2:0 (demand)           waiting: 10 for its own copy, 10 for the prefetch before it
/// 50                                  layer 2 runs, the end
/// ```
/// Layer 1's prefetch is queued when layer 1 begins, at 10, but so is layer 2's: with no compute
/// both events lie at the same time as the layer before ends. Demand is exposed for 10 + 10,
/// prefetch for 20 (a late one behind a wrong one) + 10.
#[test]
fn with_zero_compute_the_time_is_the_queue_of_the_copies() {
    let link = Link::affine("ten", 10, 0);
    let model = TimeModel::default();
    let spent = spent(&three_layers(), &lru(12, true), &link, &model);
    let expected = Spent { demand: 20, prefetch: 30, late: 1, ..Spent::default() };
    assert_eq!(spent, expected);
}

/// The same with wrong prefetches taken back. At 10 layer 1 needs 1:2; 1:1, about to begin, is
/// taken back, and 1:2 arrives at 20, late. At 20 so is 2:3, and 2:0 is copied at once, until 30.
#[test]
fn a_prefetch_that_has_not_begun_is_taken_back() {
    let link = Link::affine("ten", 10, 0);
    let cancel = |width: u32| Setting {
        prefetch: format!("ahead:cancel=true,width={width}").parse().unwrap(),
        ..lru(12, true)
    };
    let model = TimeModel::default();
    let found = spent(&three_layers(), &cancel(0), &link, &model);
    assert_eq!(found, Spent { demand: 20, prefetch: 10, late: 1, ..Spent::default() });

    let trace = three_layers();
    let steps = Steps::of(&trace, 1);
    let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
    let timeline = Timeline::new(trace.shape(), &link, &model);
    let run = |timelines| replay_timed(&trace, &steps, &futures, &cancel(0), timelines);
    let (counts, _) = run(vec![timeline]).unwrap();
    let bucket = counts.bucket(Phase::Decode, Window::All);
    assert_eq!(
        (bucket.prefetched(), bucket.prefetches_used, bucket.prefetches_cancelled),
        (1, 1, 2)
    );
    assert_eq!((bucket.demanded(), bucket.moved()), (2, 3));
    // With compute of 20 a layer, 10 of it before the routing, 1:1 has been copied by then.
    let compute = Compute::PerToken(Picos(60));
    let busy = TimeModel { compute, ..TimeModel::default() };
    let found = spent(&three_layers(), &cancel(0), &link, &busy);
    assert_eq!(found, spent(&three_layers(), &lru(12, true), &link, &busy));
    // Over several links each would take back another part.
    let two = || Timeline::new(trace.shape(), &link, &model);
    assert!(run(vec![two(), two()]).unwrap_err().to_string().contains("exactly one link"));
}

/// The same with demands first: layer 2's copy passes the wrong prefetch that has not started,
/// but not the one that runs. Layer 1 begins at 10 and queues 2:3 behind 1:1 and 1:2; it ends at
/// 30, when 2:3 would start. At that moment 2:0 is asked for and goes first: it arrives at 40. The
/// wrong prefetch is in flight until 50.
#[test]
fn a_demand_goes_before_prefetches_that_have_not_started() {
    let link = Link::affine("ten", 10, 0);
    let model = TimeModel { copies: CopyOrder::DemandFirst, ..TimeModel::default() };
    let spent = spent(&three_layers(), &lru(12, true), &link, &model);
    let expected = Spent { demand: 20, prefetch: 20, drained: 10, late: 1, ..Spent::default() };
    assert_eq!(spent, expected);
}

/// Two engines. Layer 1 waits for the second of two prefetches until 30, as before. Then 2:3
/// and 2:0 share the link at half speed: both arrive at 50.
#[test]
fn two_engines_share_the_link() {
    let link = Link::affine("ten", 10, 0);
    let model = TimeModel { copies: CopyOrder::TwoEngines, ..TimeModel::default() };
    let spent = spent(&three_layers(), &lru(12, true), &link, &model);
    let expected = Spent { demand: 20, prefetch: 30, late: 1, ..Spent::default() };
    assert_eq!(spent, expected);
}

/// Compute of 60, 20 a layer, half of it before the routing is known; a copy takes 10 and its
/// hand-off 1.
///
/// ```text
/// 0   dense 0              10  0:0 is queued, arrives at 21; 1:1 and 1:2 behind it, at 31 and 41
/// 21  experts 0            31  dense 1
/// 41  1:2 has arrived just now: not late; 2:3 is queued, arrives at 52 (the link was idle)
/// 41  experts 1            51  dense 2
/// 61  2:0 is queued, arrives at 72     72  experts 2, until 82
/// ```
#[test]
fn compute_hides_prefetch_and_an_idle_link_pays_the_hand_off() {
    let mut link = Link::affine("ten", 10, 0);
    link.submission.handoff_ps = 1;
    let compute = Compute::PerToken(Picos(60));
    let model = TimeModel { compute, ..TimeModel::default() };
    let spent = spent(&three_layers(), &lru(12, true), &link, &model);
    assert_eq!(spent, Spent { compute: 60, demand: 22, ..Spent::default() });
}

/// Kernels beside copies take 1.5 times as long, copies beside kernels 1.25 times; no hand-off.
///
/// Layer 0 waits until 20 for its copy (10 + 10). Its expert kernel of 10 then runs beside 20 of
/// prefetch: it takes 15, in which the link does 12 of its 20; dense 1 begins at 35 beside the 8
/// that are left, which take 10; until 45 the kernel does 6 of 10, and ends at 49. Layer 1's
/// expert has arrived; 2:3 is queued and takes 10 from 49 on beside experts 1: that would be 12
/// by 61, within them the kernel does 8, and ends at 63 (2 more). Rounded: a copy of 10 slowed is
/// 13 (12.5 up), the kernel has done 8 by then, and ends at 49 + 13 + 2 = 64.
#[test]
fn what_runs_beside_each_other_slows_each_other() {
    let mut link = Link::affine("ten", 10, 0);
    link.contention.kernel_beside_copy_permille = 1500;
    link.contention.copy_beside_kernel_permille = 1250;
    let compute = Compute::PerToken(Picos(60));
    let model = TimeModel { compute: compute.clone(), ..TimeModel::default() };
    let with = spent(&three_layers(), &lru(12, true), &link, &model);
    // 5 of experts 0, 4 of dense 1, 5 of experts 1.
    assert_eq!(with, Spent { compute: 60, slowed: 14, demand: 20, ..Spent::default() });
    let alone = TimeModel { compute, contention: false, ..TimeModel::default() };
    let without = spent(&three_layers(), &lru(12, true), &link, &alone);
    assert_eq!(without, Spent { compute: 60, demand: 20, ..Spent::default() });
}

/// One layer, top-2: expert 0 is resident from the first token, expert 1 is not. Hits first: the
/// kernel over the hit (5 of 10) runs while the copy (10) does, 5 are exposed. Else all 10 are.
#[test]
fn hits_run_while_the_misses_are_copied() {
    let rows: [&[&[u8]]; 2] = [&[&[0, 2]], &[&[0, 1]]];
    let trace = decode_trace(4, 1 << 20, &rows).build().unwrap();
    let link = Link::affine("ten", 10, 0);
    let compute = Compute::PerToken(Picos(20));
    let demand = |wait| {
        let model = TimeModel { compute: compute.clone(), wait, ..TimeModel::default() };
        let spent = spent(&trace, &lru(4, false), &link, &model);
        assert_eq!(spent.compute, 40);
        // The first token waits for two copies either way.
        spent.demand - 20
    };
    assert_eq!((demand(Wait::All), demand(Wait::HitsFirst)), (10, 5));
}

/// Two experts, both missing, one fetched and one on the host: a copy of 10 beside host work of
/// 30. Alone, 20 of the host's time stick out. Beside each other the copy takes 1.2 times and the
/// host 1.5 times as long: the copy ends at 12, in which the host does 8; 22 are left, until 34.
#[test]
fn the_host_works_beside_the_copies() {
    let rows: [&[&[u8]]; 1] = [&[&[0, 1]]];
    let trace = decode_trace(4, 1 << 20, &rows).build().unwrap();
    let mut link = Link::affine("ten", 10, 0);
    link.host_kernel = Some(HostKernel { ps_per_mib: 30, more_ps_per_mib: 0 });
    let setting = Setting { misses: MissHandler::balanced(500), ..lru(4, false) };
    let alone = spent(&trace, &setting, &link, &TimeModel::default());
    let expected = Spent { demand: 10, host: 20, host_work: 30, ..Spent::default() };
    assert_eq!(alone, expected);
    link.contention.host = vec![HostContention {
        threads: 8,
        copy_permille: 1200,
        host_permille: 1500,
        host_ps_per_mib: 30,
        more_ps_per_mib: 0,
        handoff_ps: 0,
    }];
    let beside = spent(&trace, &setting, &link, &TimeModel::default());
    // Of the 12 that the copy takes, 10 are its own on an idle link.
    let expected = Spent { demand: 10, prefetch: 0, host: 22, host_work: 30, ..Spent::default() };
    assert_eq!(Spent { slowed: 0, ..beside }, Spent { prefetch: 2, ..expected });
}

/// A machine's kernels: the experts' kernel reads the distinct experts of a step.
#[test]
fn kernels_read_what_a_step_needs() {
    let chain = hotset_cost_models::BurstCurve {
        bytes: vec![1 << 20, 2 << 20],
        transfers: vec![1, 2],
        ps: vec![vec![5, 7], vec![6, 10]],
    };
    let hbm = HbmModel::new(0, chain);
    let rows: [&[&[u8]]; 2] = [&[&[0, 1]], &[&[1, 0]]];
    let trace = decode_trace(4, 1 << 20, &rows).build().unwrap();
    let waited = HbmModel { event_pair_ps: 50, ..hbm.clone() };
    let compute = Compute::Memory { hbm, dense_bytes: 2 << 20 };
    let model = TimeModel { compute, ..TimeModel::default() };
    // Each token: 6 for the dense bytes, 7 for two experts of 1 MiB.
    let free = Link::affine("free", 0, 0);
    assert_eq!(spent(&trace, &lru(4, false), &free, &model).compute, 26);
    // The host's wait for each step: 50, of which its two kernels have a hundredth each.
    let compute = Compute::Memory { hbm: waited, dense_bytes: 2 << 20 };
    let model = TimeModel { compute, ..TimeModel::default() };
    assert_eq!(model.compute.token_ps(trace.shape()), 13 + 49);
    assert_eq!(spent(&trace, &lru(4, false), &free, &model).compute, 26 + 2 * 49);
}

/// A recording changes nothing and holds every copy and kernel of the run.
#[test]
fn what_ran_can_be_recorded() {
    let trace = three_layers();
    let link = Link::affine("ten", 10, 0);
    let compute = Compute::PerToken(Picos(60));
    let model = TimeModel { compute, ..TimeModel::default() };
    let steps = Steps::of(&trace, 1);
    let futures = Futures::new(&trace, &steps, Semantics::Event, PhaseFilter::All);
    let timeline = Timeline::new(trace.shape(), &link, &model).with_recorder(Recorder::new(0, 100));
    let (_, mut timelines) =
        replay_timed(&trace, &steps, &futures, &lru(12, true), vec![timeline]).unwrap();
    let (times, recorder) = timelines.remove(0).finish();
    let plain = spent(&trace, &lru(12, true), &link, &model);
    assert_eq!(times.bucket(Phase::Decode, Window::All), plain);
    let recorder = recorder.unwrap();
    let copies: Vec<_> = recorder
        .spans()
        .iter()
        .filter(|span| span.expert.is_some())
        .map(|span| (span.layer, span.expert.unwrap(), span.begin, span.end))
        .collect();
    assert_eq!(
        copies,
        [(0, 0, 10, 20), (1, 1, 20, 30), (1, 2, 30, 40), (2, 3, 40, 50), (2, 0, 60, 70)]
    );
    assert_eq!(recorder.spans().len(), 5 + 6);
}
