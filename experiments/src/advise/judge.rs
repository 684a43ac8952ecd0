//! Ranks what ran, with intervals, tests and what each setting is bound by.

use hotset_cost_models::LinkKind;
use hotset_sim::{Spent, TraceSummary};
use hotset_traces::Trace;

use super::grid::{Grid, PLAIN, Served};
use super::run::{Ran, RanGrid, RanLink};
use super::{Advice, Advise, Answer, BoundBy, Ranked, sentence};
use crate::compared::LEVEL;
use crate::{Interval, Resamples, Tested};
use crate::{Test, drawn_sum};

/// Draws where few settings are compared.
const DRAWS: usize = 2_000;
/// Misses at most so many times Belady's: no policy could spare much of the waiting.
const NEAR_BELADY: f64 = 1.25;

/// All answers.
pub(super) fn judge(trace: &Trace, request: &Advise, grid: &Grid, ran: &RanGrid) -> Advice {
    let most = ran.links.iter().map(|link| link.served.iter().map(Vec::len).sum::<usize>()).max();
    // So many that the least p that there can be holds after Holm's correction.
    let needed = (2.0 * most.unwrap_or(0) as f64 / LEVEL).ceil() as usize;
    let resamples = needed.clamp(DRAWS, 100_000);
    let seed = request.compare.seed;
    // The number of draws is within what is allowed.
    let draws = Resamples::new(ran.units.count, resamples, seed).ok();
    let draws = draws.filter(|_| ran.units.count >= Resamples::FEWEST);
    let judge = Judge { ran, draws: draws.as_ref() };
    let mut answers = Vec::new();
    for (index, link) in request.compare.links.iter().enumerate() {
        for (capacity, named) in request.compare.capacities.iter().enumerate() {
            let of = Group { capacity, kind: link.kind, served: &grid.links[index].served };
            answers.extend(judge.answer(&link.name, &named.text, &of, &ran.links[index], trace));
        }
    }
    let mut warnings = grid.warnings.clone();
    warnings.extend(grid.train.map(|share| {
        format!("the first {share}% of the sequences were trained on; the others alone count")
    }));
    if draws.is_none() {
        warnings.push(format!(
            "{} {} are too few for an interval (at least {}): how sure the ranks are is not known",
            ran.units.count,
            ran.units.what,
            Resamples::FEWEST
        ));
    }
    let answer = answers.iter().map(|of| sentence::answer(of, trace.shape().total_experts()));
    Advice {
        answer: answer.collect(),
        trace: TraceSummary::of(trace),
        hotset: env!("CARGO_PKG_VERSION"),
        phase: request.compare.phase,
        ranked_by: grid.phase,
        steps: ran.steps.clone(),
        units: ran.units.what,
        unit_count: ran.units.count,
        resamples: draws.as_ref().map(|_| resamples),
        seed,
        train: grid.train,
        answers,
        warnings,
    }
}

/// What the answers share.
struct Judge<'a> {
    ran: &'a RanGrid,
    /// None with too few units.
    draws: Option<&'a Resamples>,
}

/// The settings of one answer.
struct Group<'a> {
    capacity: usize,
    kind: LinkKind,
    served: &'a [Served],
}

impl Judge<'_> {
    /// `None` where the capacity did not run at all.
    fn answer(
        &self,
        link: &str,
        capacity: &str,
        of: &Group<'_>,
        ran: &RanLink,
        trace: &Trace,
    ) -> Option<Answer> {
        let here = |ran: &&Ran| ran.capacity == of.capacity;
        let references = || ran.references.iter().filter(here);
        let plain = references().find(|ran| ran.policy == PLAIN)?;
        let bound = |scope| references().find(|ran| ran.policy == "belady" && ran.scope == scope);
        let mut tried: Vec<(&Served, &Ran)> = Vec::new();
        for (served, ran) in of.served.iter().zip(&ran.served) {
            let is_plain = |ran: &Ran| {
                let setting = (ran.policy.as_str(), ran.scope, &served.miss, &served.prefetch);
                setting.0 == PLAIN
                    && setting.1 == plain.scope
                    && setting.2.value.fetches_all()
                    && ran.open_loop.is_none()
                    && setting.3.text == "none"
            };
            tried.extend(ran.iter().filter(here).filter(|ran| !is_plain(ran)).map(|r| (served, r)));
        }
        // A stable sort: what takes the same stays as it was listed.
        tried.sort_by_key(|(_, ran)| ran.spent.wall());
        let changes = Tested::family(tried.iter().map(|(_, ran)| self.change(ran, plain)));
        let fastest = tried.iter().position(|(_, ran)| ran.open_loop.is_none());
        let beats = |&place: &usize| changes[place].is_less();
        let best = fastest.filter(beats);
        let like = |place: usize, ran: &Ran| {
            best.is_some_and(|best| {
                let change = self.change(ran, tried[best].1).interval;
                place != best && change.low <= 0.0 && ran.open_loop.is_none()
            })
        };
        let ranked = |ran: &Ran, served: Option<&Served>| {
            let belady = bound(ran.scope).map(|of| of.bucket.misses());
            self.ranked(ran, served, belady, of.kind)
        };
        let row = |(place, (served, ran)): (usize, &(&Served, &Ran))| Ranked {
            change: changes[place],
            like_the_best: like(place, ran),
            ..ranked(ran, Some(served))
        };
        let rows: Vec<Ranked> = tried.iter().enumerate().map(row).collect();
        let belady = bound(plain.scope)?;
        Some(Answer {
            link: link.to_owned(),
            capacity: capacity.to_owned(),
            capacity_slots: plain.slots,
            capacity_share: f64::from(plain.slots) / f64::from(trace.shape().total_experts()),
            best,
            alike: rows.iter().filter(|row| row.like_the_best).count(),
            plain: ranked(plain, None),
            belady_ms_per_token: ms_per_token(belady),
            rows,
        })
    }

    fn ranked(
        &self,
        ran: &Ran,
        served: Option<&Served>,
        belady: Option<u64>,
        kind: LinkKind,
    ) -> Ranked {
        let misses = ran.bucket.misses();
        let ratio = belady.filter(|&of| of > 0).map(|of| misses as f64 / of as f64);
        Ranked {
            policy: ran.policy.clone(),
            scope: ran.scope,
            capacity_slots: ran.slots,
            miss: served.map_or("fetch".to_owned(), |served| served.miss.text.clone()),
            miss_in_full: served
                .map_or("fetch".to_owned(), |of| of.request.serving.misses.to_string()),
            prefetch: served.map_or("none".to_owned(), |served| served.prefetch.text.clone()),
            ms_per_token: self.time(ran),
            change: Tested::family([Test::without_draws(0.0)])[0],
            like_the_best: false,
            bound_by: bound_by(&ran.spent, ratio, kind),
            hit_rate: (ran.bucket.accesses > 0)
                .then(|| ran.bucket.hits as f64 / ran.bucket.accesses as f64),
            moved_per_token: ran.bucket.moved() as f64 / ran.bucket.tokens.max(1) as f64,
            mib_per_token: ran.mib_per_token,
            belady_ratio: ratio,
            time: ran.time,
            open_loop: ran.open_loop.clone(),
            command: String::new(),
        }
    }

    /// Timeline a token. Steps add up to a little less where a phase ends with copies on their way: the
    /// interval is scaled to the whole.
    fn time(&self, ran: &Ran) -> Interval {
        let whole = ms_per_token(ran);
        let Some(draws) = self.draws else { return Test::without_draws(whole).interval };
        let steps = drawn_sum(&ran.unit_ps, None);
        let scale = if steps > 0.0 { ran.spent.wall() as f64 / steps } else { 1.0 };
        let figure = |drawn: &[u32]| {
            let tokens = drawn_sum(&self.ran.unit_tokens, Some(drawn));
            drawn_sum(&ran.unit_ps, Some(drawn)) * scale / 1e9 / tokens
        };
        Interval { estimate: whole, ..draws.interval(figure) }
    }

    /// Timeline over another's on the same units, minus 1.
    fn change(&self, ran: &Ran, other: &Ran) -> Test {
        Test::of_change(&ran.unit_ps, &other.unit_ps, self.draws)
    }
}

fn ms_per_token(ran: &Ran) -> f64 {
    ran.spent.wall() as f64 / 1e9 / ran.bucket.tokens.max(1) as f64
}

/// What takes most of the time; waiting that no policy could spare is the capacity's.
fn bound_by(spent: &Spent, belady_ratio: Option<f64>, kind: LinkKind) -> BoundBy {
    let gpu = spent.compute.saturating_add(spent.slowed);
    let link = spent.demand.saturating_add(spent.prefetch).saturating_add(spent.drained);
    if gpu >= link.max(spent.host).max(spent.disk) {
        return BoundBy::Gpu;
    }
    if spent.disk > link.max(spent.host) {
        return BoundBy::Disk;
    }
    let for_demand = spent.demand.saturating_add(spent.host);
    let for_ahead = spent.prefetch.saturating_add(spent.drained);
    if for_demand >= for_ahead && belady_ratio.is_none_or(|ratio| ratio <= NEAR_BELADY) {
        return BoundBy::Capacity;
    }
    match (spent.host > link, kind) {
        (true, _) => BoundBy::Host,
        (false, LinkKind::Disk) => BoundBy::Disk,
        (false, _) => BoundBy::Link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_bound_by_what_takes_longest_unless_no_policy_could_spare_it() {
        let of = |spent: Spent, ratio| bound_by(&spent, ratio, LinkKind::Pcie);
        let copies = Spent { compute: 5, slowed: 1, demand: 9, host: 2, ..Spent::default() };
        assert_eq!(of(copies, Some(1.26)), BoundBy::Link);
        assert_eq!(of(copies, Some(1.25)), BoundBy::Capacity);
        assert_eq!(
            of(copies, None),
            BoundBy::Capacity,
            "the bound has no miss that it could spare"
        );
        assert_eq!(bound_by(&copies, Some(2.0), LinkKind::Disk), BoundBy::Disk);
        assert_eq!(of(Spent { disk: 10, ..copies }, Some(1.0)), BoundBy::Disk);
        assert_eq!(of(Spent { demand: 6, ..copies }, Some(2.0)), BoundBy::Gpu);
        assert_eq!(of(Spent { host: 10, ..copies }, Some(2.0)), BoundBy::Host);
        // Waiting that predictions cause is no want of slots.
        assert_eq!(of(Spent { prefetch: 12, ..copies }, Some(0.5)), BoundBy::Link);
        assert_eq!(of(Spent::default(), Some(1.0)), BoundBy::Gpu, "nothing is waited for");
    }
}
