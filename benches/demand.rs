//! What one batch-1 event costs an engine's decode thread: `demand` of eight experts of 48 layers of
//! 128, LRU over a quarter of them, in the cache alone and in the shared form.
//!
//! Each event is timed by itself, clock included, and the median event is given to Criterion: another
//! build's slice of the processor is no part of a demand. What is done between two events (completing,
//! releasing, waiting for the other thread) is not timed; the 99th percentile is printed beside it.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use hotset::policies::{ExpertCache, FetchState, Lru, Residency, SharedCache, Slots, Ticket};
use hotset::traces::{SynthConfig, synth};

const LAYERS: usize = 48;
const EXPERTS: u32 = 128;
const SLOTS: u32 = LAYERS as u32 * EXPERTS / 4;
const TOKENS: usize = 400;

/// The events of a synthetic trace, over and over.
struct Events {
    ids: Vec<[u8; 8]>,
    next: usize,
}

impl Events {
    fn new() -> Self {
        let config = SynthConfig { tokens: TOKENS, ..SynthConfig::default() };
        let trace = synth::generate(&config).expect("the default shape is possible");
        let of_row = |row| (0..LAYERS).map(move |layer| (row, layer));
        let ids = (0..TOKENS).flat_map(of_row).map(|(row, layer)| {
            let ids: Vec<u8> = trace.layer_ids(row, layer).iter().map(|id| id as u8).collect();
            ids.try_into().expect("eight experts a layer")
        });
        Self { ids: ids.collect(), next: 0 }
    }

    fn next(&mut self) -> (usize, [u8; 8]) {
        let event = self.next;
        self.next = (event + 1) % self.ids.len();
        (event % LAYERS, self.ids[event])
    }
}

fn cache() -> ExpertCache<Lru> {
    let slots = Slots::Global(SLOTS);
    ExpertCache::new(&[EXPERTS; LAYERS], &[8; LAYERS], &slots, |_, pool| Lru::new(pool))
        .expect("the shape is possible")
}

/// The times of events, in rooms that are taken once.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn timed<T>(&mut self, event: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = black_box(event());
        self.0.push(start.elapsed());
        result
    }

    /// The median event, so many times.
    fn median(&mut self, name: &str, times: u64) -> Duration {
        self.0.sort_unstable();
        let at = |share: usize| self.0[(self.0.len() - 1) * share / 100];
        let (median, late) = (at(50), at(99));
        if times > 100_000 {
            eprintln!("{name}: median {median:?}, 99th percentile {late:?} of {times} events");
        }
        self.0.clear();
        median * u32::try_from(times).unwrap_or(u32::MAX)
    }
}

/// Plans and hands each ticket over; waits for the copies of an event before the next one.
fn plan_beside(
    cache: &mut SharedCache<Lru>,
    events: &mut Events,
    times: &mut Times,
    queue: &Queue,
    count: u64,
) {
    let residency = cache.residency();
    let mut last = None;
    for _ in 0..count {
        let (layer, experts) = events.next();
        let plan = times.timed(|| {
            let plan = cache.demand(layer, &experts);
            for (_, ticket) in plan.copies() {
                queue.push(ticket);
                last = Some(ticket);
            }
            plan.plan.fetches
        });
        black_box(plan);
        while last.is_some_and(|ticket| residency.state(ticket) == FetchState::InFlight) {
            spin_loop();
        }
        cache.release(layer);
    }
}

/// A ring of tickets between one thread and another.
struct Queue {
    ring: Vec<AtomicU64>,
    pushed: AtomicUsize,
    ended: AtomicBool,
}

impl Queue {
    fn new() -> Self {
        let ring = (0..1024).map(|_| AtomicU64::new(0)).collect();
        Self { ring, pushed: AtomicUsize::new(0), ended: AtomicBool::new(false) }
    }

    fn push(&self, ticket: Ticket) {
        let place = self.pushed.load(Relaxed);
        self.ring[place % self.ring.len()].store(ticket.to_bits(), Relaxed);
        self.pushed.store(place + 1, Release);
    }

    /// Completes what is pushed, until the end.
    fn complete_all(&self, residency: &Residency) {
        let mut done = 0;
        while !self.ended.load(Acquire) {
            while done < self.pushed.load(Acquire) {
                let bits = self.ring[done % self.ring.len()].load(Relaxed);
                residency.complete(Ticket::from_bits(bits));
                done += 1;
            }
            spin_loop();
        }
    }
}

fn demands(criterion: &mut Criterion) {
    let mut events = Events::new();
    let mut times = Times::default();
    let mut group = criterion.benchmark_group("demand of 8 of 6144");

    group.bench_function("the clock alone", |bencher| {
        bencher.iter_custom(|count| {
            (0..count).for_each(|_| times.timed(|| ()));
            times.median("clock", count)
        });
    });

    let mut alone = cache();
    group.bench_function("the cache alone", |bencher| {
        bencher.iter_custom(|count| {
            for _ in 0..count {
                let (layer, experts) = events.next();
                times.timed(|| alone.demand(layer, &experts).fetches);
                for expert in experts {
                    alone.complete(layer, expert.into());
                }
                alone.release(layer);
            }
            times.median("alone", count)
        });
    });

    let mut shared = SharedCache::new(cache());
    let residency = shared.residency();
    group.bench_function("shared, completed by the same thread", |bencher| {
        bencher.iter_custom(|count| {
            for _ in 0..count {
                let (layer, experts) = events.next();
                let mut tickets = [None; 8];
                times.timed(|| {
                    for (place, (_, ticket)) in
                        tickets.iter_mut().zip(shared.demand(layer, &experts).copies())
                    {
                        *place = Some(ticket);
                    }
                });
                for ticket in tickets.into_iter().flatten() {
                    residency.complete(ticket);
                }
                shared.release(layer);
            }
            times.median("shared, same thread", count)
        });
    });

    let mut shared = SharedCache::new(cache());
    let (residency, queue) = (shared.residency(), Queue::new());
    std::thread::scope(|threads| {
        threads.spawn(|| queue.complete_all(&residency));
        group.bench_function("shared, beside a completing thread", |bencher| {
            bencher.iter_custom(|count| {
                plan_beside(&mut shared, &mut events, &mut times, &queue, count);
                times.median("shared, beside a thread", count)
            });
        });
        queue.ended.store(true, Release);
    });
    group.finish();
}

criterion_group!(benches, demands);
criterion_main!(benches);
