//! The engine that copies nothing: it drives the real cache, counts its plans, and its timelines
//! follow them.

mod aside;

use hotset_policies::miss::{Asked, MissDispatcher};
use hotset_policies::{CacheError, ExpertCache, Policy, Slots};
use hotset_traces::Phase;

use self::aside::Aside;
use crate::forecast::ProfileFollower;
use crate::host_side::HostSide;
use crate::meter::{Meter, Served};
use crate::prefetching::{Beside, Prefetching};
use crate::prefill::PrefillService;
use crate::timeline::{LayerDemand, Timeline};
use crate::{Change, Counts, Device, EventSink, PassedExpert};

/// What an engine does beside evicting: one part each.
pub(crate) struct EngineParts<'a> {
    pub prefill: PrefillService,
    /// `None`: every miss is fetched.
    pub misses: Option<MissDispatcher<u16>>,
    /// Whether that one looks at router weights.
    pub weighs_misses: bool,
    pub prefetching: Option<Prefetching<'a>>,
    /// The conversation profiles of a policy that goes by them.
    pub profiles: Option<ProfileFollower<'a>>,
    /// The tier under the cache; `None`: host memory holds everything.
    pub host: Option<HostSide>,
    /// Slots from given tokens on, ascending.
    pub resizes: &'a [Change<Slots>],
    /// What does the work, where work is done.
    pub device: Option<&'a mut dyn Device>,
}

/// Drives one cache through a trace; any number of timelines, one a link, follow its plans.
pub(crate) struct Engine<'a, P> {
    cache: ExpertCache<P>,
    parts: EngineParts<'a>,
    meter: Meter<true>,
    timelines: Vec<Timeline>,
    /// Tokens of the running step, and how many want each expert of the next event; none: one does.
    step_tokens: u32,
    wanted_by: Vec<u32>,
    /// The first change of slots that the cache refused.
    refused: Option<CacheError>,
}

impl<'a, P: Policy> Engine<'a, P> {
    /// A run that has not begun, counted by `meter`.
    pub fn new(
        cache: ExpertCache<P>,
        parts: EngineParts<'a>,
        meter: Meter<true>,
        timelines: Vec<Timeline>,
    ) -> Self {
        let cache = cache.with_ordered_copies();
        let (cache, cancels) = match &parts.prefetching {
            Some(prefetching) => (prefetching.protecting(cache), prefetching.cancels()),
            None => (cache, false),
        };
        let timelines = match cancels {
            true => timelines.into_iter().map(Timeline::with_cancelling).collect(),
            false => timelines,
        };
        Self {
            cache,
            parts,
            meter,
            timelines,
            step_tokens: 0,
            wanted_by: Vec::new(),
            refused: None,
        }
    }

    /// Counts, times and recordings of the run.
    ///
    /// # Errors
    /// The cache refused a change of its slots.
    pub fn finish(self) -> Result<(Counts, Vec<Timeline>), CacheError> {
        match self.refused {
            Some(refused) => Err(refused),
            None => Ok((self.meter.finish(), self.timelines)),
        }
    }

    /// Gives the policy the profile of the running conversations, if that has changed.
    fn follow_profile(&mut self) {
        if let Some(profiles) = &mut self.parts.profiles
            && let Some(profile) = profiles.changed()
        {
            self.cache.set_profile(profile);
        }
    }

    fn note(&mut self, changed: Result<(), CacheError>) {
        if let Err(refused) = changed {
            self.refused.get_or_insert(refused);
        }
    }

    fn resize(&mut self) {
        while let Some(Change { token, to }) = self.parts.resizes.first()
            && *token <= self.meter.clock().tokens()
        {
            self.parts.resizes = &self.parts.resizes[1..];
            let changed = self.cache.resize(to);
            if let Ok(resized) = &changed {
                if let Some(host) = &mut self.parts.host {
                    host.come_down(&resized.evicted, self.meter.bucket());
                }
                if let Some(device) = &mut self.parts.device {
                    device.resized(resized);
                }
            }
            self.note(changed.map(|_| ()));
        }
    }

    fn pass_by(&mut self, layer: usize, experts: &[u16]) {
        let distinct = experts.len() as u32;
        let passed = self.parts.prefill.pass_by(&self.cache, layer, experts);
        let (hits, copies, unplaced) = (passed.hits, passed.copies, passed.unplaced);
        self.meter.serve(layer, Served { distinct, hits, copies, unplaced, ..Served::default() });
        let streams = self.parts.prefill.streams();
        self.device_passes_by(layer, experts, streams);
        for timeline in &mut self.timelines {
            if streams {
                timeline.stream_layer(layer, distinct);
            } else {
                timeline.demand(LayerDemand::unplanned(layer, distinct, copies, 0));
                timeline.finish_layer();
            }
        }
    }

    /// Has the device serve a layer past the cache.
    fn device_passes_by(&mut self, layer: usize, experts: &[u16], streams: bool) {
        let Some(device) = &mut self.parts.device else { return };
        if streams {
            device.stream(layer, experts);
        } else {
            let passed = |&expert: &u16| {
                let expert = u32::from(expert);
                PassedExpert { expert, slot: self.cache.slot_of(layer, expert) }
            };
            device.pass_by(layer, &experts.iter().map(passed).collect::<Vec<_>>());
        }
        device.finish_layer();
    }

    /// Nothing of the event is in the cache or comes in; the cache never hears of it.
    #[cold]
    fn leave_all(&mut self, layer: usize, aside: Aside) {
        let (distinct, host) = (aside.experts(), aside.host);
        let bucket = self.meter.serve(layer, Served { distinct, host, ..Served::default() });
        aside.count(bucket, layer, self.step_tokens);
        let demand = aside.added_to(LayerDemand::unplanned(layer, 0, 0, 0));
        let EngineParts { device, misses, .. } = &mut self.parts;
        aside.tell(device, misses.as_ref(), layer, (&[], &[]));
        let demand = match &mut self.parts.host {
            None => demand,
            Some(host) => {
                host.computes(self.parts.misses.as_ref());
                LayerDemand { tier: host.serve_past(layer, bucket), ..demand }
            }
        };
        for timeline in &mut self.timelines {
            timeline.demand(demand);
        }
        self.finish_layer(layer);
    }

    #[inline(always)]
    fn finish_layer(&mut self, layer: usize) {
        let Self { cache, parts, meter, timelines, .. } = self;
        if let Some(prefetching) = &mut parts.prefetching {
            let EngineParts { prefill, host, device, .. } = parts;
            let device = device.as_mut().map(|device| &mut **device as &mut dyn Device);
            let beside = Beside { meter, prefill, host: host.as_mut(), device, timelines };
            prefetching.prefetch(layer, cache, beside);
        }
        if let Some(device) = &mut parts.device {
            device.finish_layer();
        }
        for timeline in timelines {
            timeline.finish_layer();
        }
    }
}

impl<P: Policy> EventSink<u16> for Engine<'_, P> {
    const WEIGHTS: bool = P::OBSERVES;

    fn wants_weights(&self) -> bool {
        Self::WEIGHTS || self.parts.weighs_misses
    }

    fn wants_tokens(&self) -> bool {
        self.parts.misses.is_some()
    }

    fn wanted_by(&mut self, tokens: &[u32]) {
        self.wanted_by.clear();
        self.wanted_by.extend_from_slice(tokens);
    }

    fn begin_sequence(&mut self, sequence: u32) {
        self.meter.begin_sequence(sequence);
    }

    fn begin_step(&mut self, step: usize, phase: Phase, tokens: u32) {
        self.step_tokens = tokens;
        self.wanted_by.clear();
        self.resize();
        let cache = &self.cache;
        self.meter.begin_step(phase, tokens, || cache.resident() == cache.capacity());
        if self.parts.prefill.passes_by(phase) {
            let changed = self.parts.prefill.begin_step(&mut self.cache);
            self.note(changed);
        } else {
            self.cache.begin_step(tokens);
        }
        if let Some(host) = &mut self.parts.host {
            host.begin_step(tokens);
        }
        if let Some(profiles) = &mut self.parts.profiles {
            profiles.begin_step(step);
            self.follow_profile();
        }
        if let Some(prefetching) = &mut self.parts.prefetching {
            prefetching.begin_step(step);
        }
        if let Some(device) = &mut self.parts.device {
            device.begin_step(phase, tokens);
        }
        let steady = self.meter.clock().is_steady();
        for timeline in &mut self.timelines {
            timeline.begin_step(phase, steady, tokens);
        }
    }

    #[inline]
    fn event(&mut self, layer: usize, experts: &[u16], weights: &[f32]) {
        if let Some(profiles) = &mut self.parts.profiles {
            profiles.observe(layer);
            if layer == 0 {
                self.follow_profile();
            }
        }
        if self.parts.prefill.passes_by(self.meter.clock().phase()) {
            if let Some(prefetching) = &mut self.parts.prefetching {
                prefetching.observe(layer);
            }
            return self.pass_by(layer, experts);
        }
        let Self { cache, parts, meter, timelines, wanted_by, .. } = self;
        let step_tokens = self.step_tokens;
        if let Some(prefetching) = &mut parts.prefetching
            && prefetching.cancels()
        {
            prefetching.cancel_unwanted(layer, experts, cache, meter, timelines);
            if let Some(host) = &mut parts.host {
                host.keep_back(layer, prefetching.cancelled());
            }
        }
        let mut aside = Aside::default();
        let plan = match &mut parts.misses {
            None => cache.demand_weighted(layer, experts, weights),
            Some(dispatcher) => {
                let tokens = &wanted_by[..];
                let asked = Asked { layer, experts, weights, tokens, step_tokens };
                let event = dispatcher.choose(cache, &asked);
                aside = Aside::of(&event);
                if event.demanded.is_empty() {
                    return self.leave_all(layer, aside);
                }
                cache.demand_weighted(layer, event.demanded, event.weights)
            }
        };
        let served = Served::of(&plan);
        // Who stands in for a missing expert is there, but was not asked for.
        let served = Served {
            distinct: served.distinct + aside.experts() - aside.substituted,
            hits: served.hits - aside.substituted,
            host: aside.host,
            ..served
        };
        let bucket = meter.serve(layer, served);
        aside.count(bucket, layer, step_tokens);
        bucket.prefetches_used += u64::from(plan.prefetch_hits);
        bucket.prefetches_wasted += u64::from(plan.wasted);
        bucket.refetches += parts.prefill.refetches(layer, &plan);
        if parts.device.is_some() {
            let placed = (plan.placements, plan.dropped);
            aside.tell(&mut parts.device, parts.misses.as_ref(), layer, placed);
        }
        let demand = aside.added_to(LayerDemand::of(layer, &plan));
        let demand = match &mut parts.host {
            None => demand,
            Some(host) => {
                host.computes(parts.misses.as_ref());
                LayerDemand { tier: host.serve(layer, &plan, bucket), ..demand }
            }
        };
        for timeline in timelines {
            timeline.demand(demand);
        }
        self.finish_layer(layer);
        self.cache.release(layer);
    }

    fn end_step(&mut self) {
        if let Some(device) = &mut self.parts.device {
            device.end_step();
        }
        for timeline in &mut self.timelines {
            timeline.end_step();
        }
    }
}
