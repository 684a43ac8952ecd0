//! Rows among which one is best: one phase and size, whatever else they differ in.

use hotset_policies::{Need, PolicySpec};
use hotset_sim::{Report, Row, Window};
use serde::Serialize;

/// What a row's cost is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum CostUnit {
    /// On the timeline where there is one, else one transfer after another.
    #[serde(rename = "ms a token")]
    Time,
    /// Where nothing is priced.
    #[serde(rename = "experts moved a token")]
    Moved,
}

impl CostUnit {
    /// What the rows of a report are judged by.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        Self::of_rows(&report.rows)
    }

    /// What these rows are judged by.
    #[must_use]
    pub fn of_rows(rows: &[Row]) -> Self {
        match rows.iter().any(|row| !row.links.is_empty()) {
            true => Self::Time,
            false => Self::Moved,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "ms a token",
            Self::Moved => "experts moved a token",
        }
    }

    /// A row's cost over the link of this place.
    #[must_use]
    pub fn cost(self, row: &Row, link: usize) -> Option<f64> {
        match self {
            Self::Moved => Some(row.moved_per_token),
            Self::Time => {
                let link = row.links.get(link)?;
                Some(link.timeline_ms_per_token.unwrap_or(link.serial_ms_per_token))
            }
        }
    }
}

/// Rows of one phase and size, each of a whole run.
#[derive(Debug, Clone)]
pub struct Race<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Race<'a> {
    /// Those of these rows that may win: what an engine can run, for a bound sees the future, and
    /// what leaves the model's results as they are.
    #[must_use]
    pub fn among(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let may = |row: &&Row| {
            let runs =
                row.policy.parse::<PolicySpec>().map_or(true, |of| of.needs() != Need::Future);
            runs && row.window == Window::All && row.open_loop.is_none()
        };
        Self { rows: rows.into_iter().filter(may).collect() }
    }

    /// Those of the phase that a report is about, decode where it ran, the smallest size first.
    #[must_use]
    pub fn all(report: &'a Report) -> Vec<Self> {
        let able = Self::among(&report.rows).rows;
        let phases = || able.iter().map(|row| row.phase.name());
        let phase = phases().find(|&name| name == "decode").or_else(|| phases().next());
        let mut races: Vec<Self> = Vec::new();
        for row in able.iter().filter(|row| Some(row.phase.name()) == phase) {
            let same = |race: &&mut Self| race.rows[0].capacity_slots == row.capacity_slots;
            match races.iter_mut().find(same) {
                Some(race) => race.rows.push(row),
                None => races.push(Self { rows: vec![row] }),
            }
        }
        races.sort_by_key(|race| race.rows[0].capacity_slots);
        races
    }

    /// The cheapest first; of equals the one that was named first.
    #[must_use]
    pub fn ranked(&self, unit: CostUnit, link: usize) -> Vec<(&'a Row, f64)> {
        let priced = |row: &&'a Row| Some((*row, unit.cost(row, link)?));
        let mut ranked: Vec<_> = self.rows.iter().filter_map(priced).collect();
        ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
        ranked
    }

    /// The cheapest; several where they cost the same.
    #[must_use]
    pub fn best(&self, unit: CostUnit, link: usize) -> Vec<&'a Row> {
        let ranked = self.ranked(unit, link);
        let Some(&(_, least)) = ranked.first() else { return Vec::new() };
        ranked.into_iter().take_while(|(_, cost)| *cost == least).map(|(row, _)| row).collect()
    }
}
