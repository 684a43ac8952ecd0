//! Which row of a comparison is best, by how much, and whether that is more than sequences differ.
//!
//! The best, the next and plain LRU are replayed once more with their steps' times kept, and
//! compared on the same resamples of the same units as advice is.

mod race;

use hotset_sim::{Compare, Named, ReplayProgress, Report, Row, Scope, Training};
use hotset_traces::{Phase, Trace};
use serde::Serialize;

use crate::Test;
use crate::advise::unit_times;
use crate::compared::LEVEL;
use crate::{ExperimentError, Interval, Resamples};

pub use race::{CostUnit, Race};

/// Draws where few are compared.
const DRAWS: usize = 2_000;
/// The policy that everything is held against, beside the next.
const PLAIN: &str = "lru";

/// What a row is of, beside its phase and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entrant {
    /// The policy as given.
    pub policy: String,
    /// Its scope.
    pub scope: Scope,
    /// What becomes of misses, where several ways were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub miss: Option<String>,
}

impl Entrant {
    fn of(row: &Row) -> Self {
        Self { policy: row.policy.clone(), scope: row.scope, miss: row.miss.clone() }
    }
}

/// The best held against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// The other.
    #[serde(flatten)]
    pub entrant: Entrant,
    /// What it costs.
    pub cost: f64,
    /// The best's cost over this, minus 1, and the 95% of resamples that hold it alone; ends that
    /// are no numbers where there is no interval.
    pub change: Interval,
    /// Whether the best is cheaper beyond noise, in the family of all that were compared; absent
    /// where there is no interval.
    pub beyond_noise: Option<bool>,
}

/// Who leads at one size over one link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lead {
    /// Phase of the tokens counted.
    pub phase: Phase,
    /// The size: the middle one of those compared.
    pub capacity_slots: u32,
    /// The same over all experts, 0 to 1.
    pub capacity_share: f64,
    /// The link: the first of those compared; absent where nothing is priced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What costs are counted in.
    pub unit: CostUnit,
    /// The best; several where they cost the same.
    pub best: Vec<Entrant>,
    /// What it costs.
    pub cost: f64,
    /// The next, and LRU where that is another; none where all cost the same.
    pub against: Vec<Against>,
    /// Sizes and links at which the best is cheapest.
    pub leads: usize,
    /// Sizes and links.
    pub races: usize,
    /// What the intervals are over: `sequences`, `groups of sequences` or `stretches of steps`;
    /// absent where nothing could be timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<&'static str>,
    /// How many of them.
    pub unit_count: usize,
    /// Draws of the bootstrap; absent without an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resamples: Option<usize>,
}

/// Who leads a comparison under `requests`, one for each way to handle misses, that gave `report`;
/// `None` where there is nothing to choose from.
///
/// # Errors
/// As a comparison's.
pub fn lead(
    trace: &Trace,
    requests: &[Named<Compare>],
    report: &Report,
    progress: &impl ReplayProgress,
) -> Result<Option<Lead>, ExperimentError> {
    let (unit, races) = (CostUnit::of(report), Race::all(report));
    let middle = races.get(races.len().saturating_sub(1) / 2);
    let ranked = middle.map(|race| race.ranked(unit, 0)).unwrap_or_default();
    let [(best, cost), _, ..] = ranked[..] else { return Ok(None) };
    let next = ranked.iter().find(|(_, other)| *other > cost);
    let is_plain =
        |row: &Row| row.policy == PLAIN && (row.scope, &row.miss) == (best.scope, &best.miss);
    let plain = ranked.iter().find(|(row, other)| *other > cost && is_plain(row));
    let mut others: Vec<(&Row, f64)> = next.into_iter().chain(plain).copied().collect();
    others.dedup_by(|one, other| std::ptr::eq(one.0, other.0));
    let noise = Noise { trace, requests, family: ranked.len() - 1, progress };
    let (tests, units, resamples) = noise.tests(best, &others)?;
    let tied = ranked.iter().take_while(|(_, other)| *other == cost);
    let (leads, all) = wins(report, unit, &races, best);
    let against = others.into_iter().enumerate().map(|(place, (row, other))| {
        let test = tests.get(place).copied();
        let estimate = cost / other - 1.0;
        let plain = Test::without_draws(estimate).interval;
        let family = (ranked.len() - 1) as f64;
        let p = test.map(|test| test.p).filter(|p| !p.is_nan());
        Against {
            entrant: Entrant::of(row),
            cost: other,
            // Steps add up to a little less where copies are on their way at the end.
            change: test.map_or(plain, |test| Interval { estimate, ..test.interval }),
            beyond_noise: p.map(|p| p * family <= LEVEL && estimate < 0.0),
        }
    });
    Ok(Some(Lead {
        phase: best.phase,
        capacity_slots: best.capacity_slots,
        capacity_share: best.capacity_share,
        link: best.links.first().map(|link| link.link.clone()),
        unit,
        cost,
        against: against.collect(),
        best: tied.map(|(row, _)| Entrant::of(row)).collect(),
        leads,
        races: all,
        units: units.map(|units| units.0),
        unit_count: units.map_or(0, |units| units.1),
        resamples,
    }))
}

/// Of all sizes and links, those at which what `best` is of is cheapest.
fn wins(report: &Report, unit: CostUnit, races: &[Race<'_>], best: &Row) -> (usize, usize) {
    let links = report.rows.iter().map(|row| row.links.len()).max().unwrap_or(0).max(1);
    let settings = races.iter().flat_map(|race| (0..links).map(move |link| race.best(unit, link)));
    let of_best = |row: &&Row| Entrant::of(row) == Entrant::of(best);
    let wins = settings.map(|best| best.iter().any(of_best));
    wins.fold((0, 0), |(wins, all), won| (wins + usize::from(won), all + 1))
}

/// How sequences differ.
struct Noise<'a, P> {
    trace: &'a Trace,
    requests: &'a [Named<Compare>],
    /// Rows that the best was chosen from, itself not counted.
    family: usize,
    progress: &'a P,
}

/// A test a row; what the units are and how many; draws.
type Tests = (Vec<Test>, Option<(&'static str, usize)>, Option<usize>);

impl<P: ReplayProgress> Noise<'_, P> {
    /// The best against each of the others; nothing where a row has no timeline.
    fn tests(&self, best: &Row, others: &[(&Row, f64)]) -> Result<Tests, ExperimentError> {
        let timed =
            |row: &Row| row.links.first().is_some_and(|link| link.timeline_ms_per_token.is_some());
        let rows = || std::iter::once(best).chain(others.iter().map(|(row, _)| *row));
        if others.is_empty() || !rows().all(timed) {
            return Ok((Vec::new(), None, None));
        }
        let mut times: Vec<Vec<u64>> = Vec::new();
        let mut what = "";
        for row in rows() {
            let Some(request) = self.alone(row) else { return Ok((Vec::new(), None, None)) };
            let quiet = Quiet(self.progress);
            let (ps, units) = unit_times(self.trace, &request, row.phase, &quiet)?;
            what = units;
            times.push(ps);
        }
        let count = times[0].len();
        // So many that the least p that there can be holds for the whole family.
        let needed = (2.0 * self.family as f64 / LEVEL).ceil() as usize;
        let draws = needed.clamp(DRAWS, 100_000);
        let seed = self.requests.first().map_or(0, |request| request.value.seed);
        let drawn = Resamples::new(count, draws, seed)?;
        let drawn = Some(&drawn).filter(|_| count >= Resamples::FEWEST);
        let tests =
            times[1..].iter().map(|other| Test::of_change(&times[0], other, drawn)).collect();
        Ok((tests, Some((what, count)), drawn.map(|_| draws)))
    }

    /// The request of one row alone, over its first link, on the sequences of the whole.
    fn alone(&self, row: &Row) -> Option<Compare> {
        let of_miss =
            |named: &&Named<Compare>| row.miss.as_ref().is_none_or(|miss| *miss == named.text);
        let request = &self.requests.iter().find(of_miss)?.value;
        let shape = request.shape(self.trace);
        let size = |capacity: &&Named<_>| {
            let capacity: hotset_sim::Capacity = capacity.value;
            capacity.slots(&shape, row.scope).is_ok_and(|slots| slots.total() == row.capacity_slots)
        };
        Some(Compare {
            policies: vec![request.policies.iter().find(|named| named.text == row.policy)?.clone()],
            scopes: vec![row.scope],
            capacities: vec![request.capacities.iter().find(size)?.clone()],
            links: vec![request.links.first()?.clone()],
            training: Training { share: request.training_share(), ..request.training.clone() },
            ..request.clone()
        })
    }
}

/// Replays that nobody counts, but that stop when asked to.
struct Quiet<'a, P>(&'a P);

impl<P: ReplayProgress> ReplayProgress for Quiet<'_, P> {
    fn begin(&self, _: u64) {}
    fn advance(&self) {}
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}
