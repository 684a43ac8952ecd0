//! The prefetch part of an engine: predictions in, copies planned ahead, and those taken back that
//! the router proved wrong.

use hotset_policies::{ExpertCache, Policy};

use crate::forecast::Forecaster;
use crate::host_side::HostSide;
use crate::meter::Meter;
use crate::prefill::PrefillService;
use crate::{Device, Timeline};

/// What a prefetch adds to beside the cache.
pub(crate) struct Beside<'e, const L: bool> {
    pub meter: &'e mut Meter<L>,
    pub prefill: &'e mut PrefillService,
    pub host: Option<&'e mut HostSide>,
    pub device: Option<&'e mut dyn Device>,
    pub timelines: &'e mut [Timeline],
}

/// Prefetches for one run.
pub(crate) struct Prefetching<'a> {
    forecaster: Forecaster<'a>,
    /// Whether each expert of the layer is wanted by the event, where prefetches are cancelled;
    /// else empty.
    wanted: Vec<bool>,
    cancelled: Vec<u32>,
}

impl<'a> Prefetching<'a> {
    /// `widest`: experts of the widest layer.
    pub fn new(forecaster: Forecaster<'a>, widest: u32) -> Self {
        let cancels = forecaster.control().cancel;
        let wanted = vec![false; if cancels { widest as usize } else { 0 }];
        Self { forecaster, wanted, cancelled: Vec::new() }
    }

    /// The cache as the control protects its predictions.
    pub fn protecting<P: Policy>(&self, cache: ExpertCache<P>) -> ExpertCache<P> {
        self.forecaster.control().protecting(cache)
    }

    /// Whether copies that have not begun are taken back.
    #[inline(always)]
    pub fn cancels(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// A step begins.
    pub fn begin_step(&mut self, step: usize) {
        self.forecaster.begin_step(step);
    }

    /// The router has decided a layer of a step that goes past the cache.
    pub fn observe(&mut self, layer: usize) {
        self.forecaster.observe(layer);
    }

    /// The router has decided a layer and its own misses are queued: what it predicts follows.
    pub fn prefetch<P: Policy, const L: bool>(
        &mut self,
        layer: usize,
        cache: &mut ExpertCache<P>,
        beside: Beside<'_, L>,
    ) {
        let Beside { meter, prefill, mut host, mut device, timelines } = beside;
        self.forecaster.observe(layer);
        for target in self.forecaster.targets(layer) {
            if let Some(lower) = host.as_deref_mut().and_then(HostSide::prefetched_cache) {
                let plan = self.forecaster.prefetch_below(cache, lower, layer, target);
                meter.bucket().tiers.reads_ahead[target] += u64::from(plan.fetches);
                timelines.iter_mut().for_each(|timeline| timeline.read_ahead(target, &plan));
                continue;
            }
            let plan = self.forecaster.prefetch(cache, layer, target);
            if let Some(device) = device.as_deref_mut() {
                device.prefetch(target, &plan);
            }
            let bucket = meter.bucket();
            bucket.prefetches[target] += u64::from(plan.fetches);
            bucket.prefetches_wasted += u64::from(plan.wasted);
            bucket.refetches += prefill.refetches(target, &plan);
            let reads = match &mut host {
                None => &[][..],
                Some(host) => host.serve_ahead(target, &plan, bucket),
            };
            for timeline in &mut *timelines {
                timeline.prefetch(target, &plan, reads);
            }
        }
    }

    /// The experts whose copies were taken back last.
    pub fn cancelled(&self) -> &[u32] {
        &self.cancelled
    }

    /// Takes back the prefetches for a layer that have not begun and that the event does not want.
    #[cold]
    pub fn cancel_unwanted<P: Policy, const L: bool>(
        &mut self,
        layer: usize,
        experts: &[u16],
        cache: &mut ExpertCache<P>,
        meter: &mut Meter<L>,
        timelines: &mut [Timeline],
    ) {
        let mark = |wanted: &mut [bool], to| {
            experts.iter().for_each(|&expert| wanted[usize::from(expert)] = to);
        };
        mark(&mut self.wanted, true);
        let (wanted, cancelled) = (&self.wanted, &mut self.cancelled);
        cancelled.clear();
        for timeline in timelines {
            timeline.route_and_cancel(layer, |expert| {
                let unwanted = !wanted[expert as usize];
                if unwanted {
                    cancelled.push(expert);
                }
                unwanted
            });
        }
        mark(&mut self.wanted, false);
        let bucket = meter.bucket();
        for &expert in &self.cancelled {
            cache.discard(layer, expert);
            bucket.prefetches[layer] -= 1;
            bucket.prefetches_cancelled += 1;
        }
    }
}
