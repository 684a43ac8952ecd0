//! Splits each event into what is demanded of the cache, what the host serves and what is gone
//! without.

use super::absent::{self, Absent};
use super::coselection::CoSelection;
use super::lossy::{self, Ranges};
use super::{Asked, Dispatched, FetchOrder, MissHandler, schedule};
use crate::{ExpertCache, ExpertId, Policy};

/// Applies a [`MissHandler`] to the events of one cache, and remembers when each expert was last
/// asked for. Memory: [`MissHandler::memory`]; nothing is allocated between events.
///
/// # Example
/// ```
/// use hotset_policies::miss::{Asked, MissDispatcher, MissHandler};
/// use hotset_policies::{ExpertCache, Lru, Slots};
///
/// // One layer of four experts and two slots; of two misses the link takes one, the host one.
/// let balanced: MissHandler = "balanced:fetch=0.5".parse().unwrap();
/// let mut dispatcher = MissDispatcher::new(balanced, &[4]);
/// let mut cache = ExpertCache::new(&[4], &[2], &Slots::Global(2), |_, pool| Lru::new(pool))
///     .unwrap()
///     .with_ordered_copies();
/// let event = dispatcher.choose(&cache, &Asked::by_one_token(0, &[3u16, 1], &[]));
/// // Neither was used before: the lower id is copied, the host serves the other.
/// assert_eq!((event.demanded, event.host), (&[1][..], 1));
/// assert_eq!(cache.demand(0, event.demanded).fetches, 1);
/// cache.release(0);
/// ```
#[derive(Debug, Clone)]
pub struct MissDispatcher<E> {
    handler: MissHandler,
    /// Dense key of each layer's expert 0.
    bases: Vec<u32>,
    /// The event that last asked for each key; 0: none.
    last_event: Vec<u64>,
    events: u64,
    demanded: Vec<E>,
    weights: Vec<f32>,
    absent: Vec<Absent>,
    /// Experts that stand in, and for which place.
    stand_ins: Vec<(u32, usize)>,
    together: Option<CoSelection>,
    ranges: Option<Ranges>,
    /// Which of the absent ones host cores compute in the event split last.
    on_host: std::ops::Range<usize>,
}

/// What becomes of the absent experts, in their order: the first are fetched, then come the host's, then
/// smaller copies, the rest is dropped.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    fetched: usize,
    host: usize,
    low: usize,
    deferred: u32,
}

impl Parts {
    /// Those that are computed.
    fn computed(&self) -> usize {
        self.fetched + self.host + self.low
    }
}

impl<E: ExpertId> MissDispatcher<E> {
    /// A dispatcher for a model with `experts[l]` experts in MoE layer `l`.
    #[must_use]
    pub fn new(handler: MissHandler, experts: &[u32]) -> Self {
        let mut total = 0;
        let mut bases = Vec::with_capacity(experts.len());
        for &experts in experts {
            bases.push(total);
            total += experts;
        }
        let widest = experts.iter().copied().max().unwrap_or(0) as usize;
        let biased = matches!(handler, MissHandler::Bias { .. });
        Self {
            handler,
            bases,
            last_event: vec![0; total as usize],
            events: 0,
            demanded: Vec::with_capacity(widest),
            weights: Vec::new(),
            absent: Vec::with_capacity(widest),
            stand_ins: Vec::new(),
            together: handler.pairs().then(|| CoSelection::new(experts)),
            ranges: biased.then(|| Ranges::new(experts.len())),
            on_host: 0..0,
        }
    }

    /// Splits an event. It counts as a use of all its experts.
    ///
    /// # Panics
    /// If its layer or an expert id is out of range.
    pub fn choose<P: Policy>(
        &mut self,
        cache: &ExpertCache<P>,
        asked: &Asked<'_, E>,
    ) -> Dispatched<'_, E> {
        self.events += 1;
        self.demanded.clear();
        self.weights.clear();
        self.absent.clear();
        self.stand_ins.clear();
        let on_host = matches!(self.handler,
            MissHandler::CpuLayers { n: Some(n) } if asked.layer < n as usize);
        for (place, expert) in asked.experts.iter().enumerate() {
            let (id, tokens) = (expert.index(), asked.tokens_of(place));
            let last = &mut self.last_event[(self.bases[asked.layer] + id) as usize];
            if cache.slot_of(asked.layer, id).is_some() && !on_host {
                self.demanded.push(*expert);
                self.weights.extend(asked.weights.get(place));
            } else {
                self.absent.push(Absent { last: *last, expert: id, place, tokens, class: 0 });
            }
            *last = self.events;
        }
        self.substitute(cache, asked);
        let parts = self.split(asked, on_host);
        let lost = self.lost_ppb(asked, parts);
        let further = |from: usize| -> u32 {
            let served = self.absent.iter().take(parts.fetched + parts.host).skip(from);
            served.map(|of| of.tokens.saturating_sub(1)).fold(0, u32::saturating_add)
        };
        let (miss_further, host_further) = (further(0), further(parts.fetched));
        let substituted = self.stand_ins.len() as u32;
        self.demand(asked, parts);
        self.on_host = parts.fetched..parts.fetched + parts.host;
        if let Some(together) = &mut self.together {
            together.learn(asked.layer, asked.experts.iter().map(|expert| expert.index()));
        }
        if let Some(ranges) = &mut self.ranges {
            ranges.learn(asked);
        }
        let lost_ppb = lost + share_ppb(asked, self.stand_ins.iter().map(|&(_, place)| place));
        Dispatched {
            demanded: &self.demanded,
            weights: &self.weights,
            host: parts.host as u32,
            host_further,
            miss_further,
            deferred: parts.deferred,
            low: parts.low as u32,
            low_size_ppm: self.handler.low_size_ppm(),
            dropped: (self.absent.len() - parts.computed()) as u32,
            substituted,
            lost_ppb,
        }
    }

    /// The experts that host cores compute in the event split last.
    pub fn on_host(&self) -> impl Iterator<Item = u32> + '_ {
        self.absent.get(self.on_host.clone()).unwrap_or_default().iter().map(|absent| absent.expert)
    }

    /// Orders the absent experts by what becomes of them.
    fn split(&mut self, asked: &Asked<'_, E>, on_host: bool) -> Parts {
        let all = self.absent.len();
        let fetched = |fetched: usize| Parts { fetched, host: all - fetched, ..Parts::default() };
        match self.handler {
            MissHandler::Fetch
            | MissHandler::Substitute { .. }
            | MissHandler::Bias { .. }
            | MissHandler::Top { .. } => fetched(all),
            MissHandler::Host => fetched(0),
            MissHandler::Balanced(split) | MissHandler::Freetoken(split) => {
                absent::sort(&mut self.absent, split.order);
                fetched(split.fetched(all as u32) as usize)
            }
            MissHandler::UploadCap { n } => {
                absent::sort(&mut self.absent, FetchOrder::Lowest);
                fetched(all.min(n as usize))
            }
            MissHandler::Fiddler { cpu, gpu } => {
                let dear = |of: &Absent| u64::from(cpu) * u64::from(of.tokens) >= u64::from(gpu);
                fetched(absent::partition(&mut self.absent, dear))
            }
            MissHandler::Hybrimoe { copy, host } => {
                let (copy, host) = (copy.unwrap_or(1), host.unwrap_or(1));
                fetched(schedule::fetched(&mut self.absent, copy, host))
            }
            MissHandler::CpuLayers { .. } => fetched(if on_host { 0 } else { all }),
            MissHandler::Defer { n } => {
                let last = asked.layer + 1 == self.bases.len();
                let deferred = if last { 0 } else { n.min(all as u32) };
                Parts { host: all, deferred, ..Parts::default() }
            }
            MissHandler::Drop { below_ppm } => {
                let kept = |of: &Absent| !is_below(asked, of, below_ppm);
                let fetched = absent::partition(&mut self.absent, kept);
                Parts { fetched, ..Parts::default() }
            }
            MissHandler::LowPrecision { whole_ppm, low_ppm, .. } => {
                let (fetched, low) =
                    lossy::by_precision(asked, &mut self.absent, whole_ppm, low_ppm);
                Parts { fetched, low, ..Parts::default() }
            }
        }
    }

    /// Takes the absent experts for which somebody stands in out of their list.
    fn substitute<P: Policy>(&mut self, cache: &ExpertCache<P>, asked: &Asked<'_, E>) {
        let Some(together) = &self.together else { return };
        let above = match self.handler {
            MissHandler::Substitute { above_ppm } => above_ppm,
            _ => 0,
        };
        // What weighs least gives way first.
        if self.ranges.is_some() {
            let weight = |of: &Absent| lossy::mean_weight(asked, of.place);
            let lightest = |a: &Absent, b: &Absent| {
                weight(a).total_cmp(&weight(b)).then(b.place.cmp(&a.place))
            };
            self.absent.sort_unstable_by(lightest);
        }
        let (stand_ins, ranges, handler) = (&mut self.stand_ins, &self.ranges, self.handler);
        self.absent.retain(|of| {
            if let (Some(ranges), MissHandler::Bias { lambda_ppm, keep }) = (ranges, handler)
                && !ranges.gives_way(asked, of, lambda_ppm, keep)
            {
                return true;
            }
            let free = |other: u32| {
                cache.slot_of(asked.layer, other).is_some()
                    && asked.experts.iter().all(|expert| expert.index() != other)
                    && stand_ins.iter().all(|&(taken, _)| taken != other)
            };
            let mut found = together.nearest(asked.layer, of.expert, above, free);
            if ranges.is_some() {
                found = found.or_else(|| together.lowest(asked.layer, free));
            }
            stand_ins.extend(found.map(|other| (other, of.place)));
            found.is_none()
        });
        if self.ranges.is_some() {
            self.absent.sort_unstable_by_key(|of| of.place);
        }
    }

    /// Adds who stands in and what is fetched to what is demanded.
    fn demand(&mut self, asked: &Asked<'_, E>, parts: Parts) {
        for &(other, place) in &self.stand_ins {
            self.demanded.push(E::of_index(other));
            self.weights.extend(asked.weights.get(place));
        }
        for absent in self.absent.iter().take(parts.fetched) {
            self.demanded.push(asked.experts[absent.place]);
            self.weights.extend(asked.weights.get(absent.place));
        }
    }

    /// The share of the weight that is dropped.
    fn lost_ppb(&self, asked: &Asked<'_, E>, parts: Parts) -> u64 {
        share_ppb(asked, self.absent.iter().skip(parts.computed()).map(|of| of.place))
    }
}

/// Whether an expert's share of its tokens' weight is less than so many millionths.
fn is_below<E>(asked: &Asked<'_, E>, absent: &Absent, below_ppm: u32) -> bool {
    let Some(&weight) = asked.weights.get(absent.place) else { return false };
    let all: f64 = asked.weights.iter().map(|&weight| f64::from(weight)).sum();
    // The mean over the tokens that want it, over the mean of all tokens.
    let own = f64::from(weight) * f64::from(asked.step_tokens.max(1));
    own * 1e6 < f64::from(below_ppm) * all * f64::from(absent.tokens.max(1))
}

/// The share of the event's weight that lies at these places, in billionths.
fn share_ppb<E>(asked: &Asked<'_, E>, places: impl Iterator<Item = usize>) -> u64 {
    let all: f64 = asked.weights.iter().map(|&weight| f64::from(weight)).sum();
    let part: f64 = places.filter_map(|p| asked.weights.get(p)).map(|&w| f64::from(w)).sum();
    if part > 0.0 && all > 0.0 { (part / all * 1e9).round().min(1e9) as u64 } else { 0 }
}

#[cfg(test)]
#[path = "dispatcher_tests.rs"]
mod tests;
