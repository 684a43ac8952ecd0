//! The answer of a comparison in two sentences: what is best here, and how sure that is.

use hotset_policies::{Need, PolicySpec};
use hotset_sim::{Report, Row, Window};

use crate::one_line;
use crate::sheet::thousands;

/// What a row costs, and in what.
struct Cost {
    of: fn(&Row, usize) -> Option<f64>,
    unit: &'static str,
}

impl Cost {
    /// Experts moved, where nothing is priced; else the first link's time.
    fn of(report: &Report) -> Self {
        match report.rows.iter().any(|row| !row.links.is_empty()) {
            true => Self {
                of: |row, link| {
                    let link = row.links.get(link)?;
                    Some(link.timeline_ms_per_token.unwrap_or(link.serial_ms_per_token))
                },
                unit: "ms a token",
            },
            false => Self { of: |row, _| Some(row.moved_per_token), unit: "experts moved a token" },
        }
    }
}

/// Rows among which one is best: one size, phase and scope.
struct Race<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Race<'a> {
    /// Those of the phase that the report is about: decode where it ran.
    fn all(report: &'a Report) -> Vec<Self> {
        let whole =
            || report.rows.iter().filter(|row| row.window == Window::All && runs(&row.policy));
        let phases = || whole().map(|row| row.phase.name());
        let phase = phases().find(|&name| name == "decode").or_else(|| phases().next());
        let mut races: Vec<Self> = Vec::new();
        for row in whole().filter(|row| Some(row.phase.name()) == phase) {
            let same = |race: &&mut Self| {
                race.rows[0].capacity_slots == row.capacity_slots && race.rows[0].scope == row.scope
            };
            match races.iter_mut().find(same) {
                Some(race) => race.rows.push(row),
                None => races.push(Self { rows: vec![row] }),
            }
        }
        races.sort_by_key(|race| race.rows[0].capacity_slots);
        races
    }

    /// The cheapest first; of equals the one that was named first.
    fn ranked(&self, cost: &Cost, link: usize) -> Vec<(&'a Row, f64)> {
        let priced = |row: &&'a Row| Some((*row, (cost.of)(row, link)?));
        let mut ranked: Vec<_> = self.rows.iter().filter_map(priced).collect();
        ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
        ranked
    }
}

/// Whether an engine could run it: a bound sees the future.
fn runs(policy: &str) -> bool {
    policy.parse::<PolicySpec>().map_or(true, |spec| spec.needs() != Need::Future)
}

/// Which policy, at which size, over which link; and how far that carries.
pub(crate) fn of_comparison(report: &Report) -> String {
    let (cost, races) = (Cost::of(report), Race::all(report));
    let middle = races.get(races.len().saturating_sub(1) / 2);
    let ranked = middle.map(|race| race.ranked(&cost, 0)).unwrap_or_default();
    let Some(&(best, least)) = ranked.first() else {
        return "No policy here is one that an engine could run.".to_owned();
    };
    let link = report.settings.links.first().filter(|_| !best.links.is_empty());
    let over = link.map_or(String::new(), |link| format!(" over {}", one_line(link)));
    let lead = match ranked.iter().find(|(_, other)| *other > least) {
        Some((next, other)) => {
            format!(", {:.1}% below {}", (1.0 - least / other) * 100.0, one_line(&next.policy))
        }
        None if ranked.len() > 1 => ", as all others do".to_owned(),
        None => String::new(),
    };
    let ties: Vec<_> = ranked.iter().filter(|(_, other)| *other == least).collect();
    let names: Vec<String> = ties.iter().map(|(row, _)| one_line(&row.policy)).collect();
    let verb = if names.len() > 1 { "cost" } else { "costs" };
    format!(
        "{} {verb} least of what an engine can run: {least:.3} {}{over} in {} with {} of {} slots ({:.1}%, {} scope){lead}. {}",
        names.join(" and "),
        cost.unit,
        best.phase.name(),
        thousands(best.capacity_slots.into()),
        thousands(report.trace.total_experts.into()),
        best.capacity_share * 100.0,
        best.scope.name(),
        how_sure(report, &cost, &races, &best.policy),
    )
}

/// How often it leads, and what a replay of one trace cannot say.
fn how_sure(report: &Report, cost: &Cost, races: &[Race<'_>], best: &str) -> String {
    let links = report.rows.iter().map(|row| row.links.len()).max().unwrap_or(0).max(1);
    let settings = races.iter().flat_map(|race| (0..links).map(move |link| (race, link)));
    let (mut leads, mut all) = (0, 0);
    for (race, link) in settings {
        let ranked = race.ranked(cost, link);
        let least = ranked.first().map(|first| first.1);
        all += 1;
        leads +=
            u32::from(ranked.iter().any(|(row, cost)| row.policy == best && Some(*cost) == least));
    }
    format!(
        "It leads in {leads} of {all} sizes, scopes and links here; the counts are exact, but of one trace of \
         {} sequences: whether the lead is beyond chance, only the intervals of an experiment say.",
        thousands(report.trace.sequences as u64)
    )
}
