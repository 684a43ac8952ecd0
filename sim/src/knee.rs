//! Where more memory stops paying: the knee of a cost over capacities. `docs/metrics.md` defines
//! both rules.

use hotset_traces::Phase;
use serde::Serialize;

use crate::{Report, Row, Scope, Window};

/// How a knee was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KneeRule {
    /// The size that lies farthest below the straight line from the first size to the last.
    Chord,
    /// The smallest size from which no larger one saves so many ms a token for each GiB more.
    SavesLessThan {
        /// Those ms a token and GiB.
        ms_per_gib: f64,
    },
}

/// The knee of one policy in one scope and phase over one link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// The policy as given.
    pub policy: String,
    /// Scope of its slots.
    pub scope: Scope,
    /// Phase of the tokens counted.
    pub phase: Phase,
    /// The link whose ms a token are the cost; absent where the cost is experts moved a token.
    pub link: Option<String>,
    /// Which price of the link: `timeline` where there is one, else `serial`.
    pub price: Option<&'static str>,
    /// The rule.
    pub rule: KneeRule,
    /// Slots at the knee.
    pub capacity_slots: u32,
    /// Their share of all experts.
    pub capacity_share: f64,
    /// Their size; absent where the experts' size is unknown.
    pub capacity_gib: Option<f64>,
    /// The hit rate there.
    pub hit_rate: Option<f64>,
    /// MiB copied a token there.
    pub mib_per_token: Option<f64>,
    /// ms a token there.
    pub ms_per_token: Option<f64>,
}

/// The index of the point farthest below the line from the first point to the last, both axes
/// scaled to that line; the first of equally far ones. Points ascend in `x`. `None` where no point
/// lies below it, or there is no line.
#[must_use]
pub fn knee_of_chord(points: &[(f64, f64)]) -> Option<usize> {
    let (&(x0, y0), &(x1, y1)) = (points.first()?, points.last()?);
    if x1 <= x0 || y1 >= y0 {
        return None;
    }
    let below = |&(x, y): &(f64, f64)| (y0 - y) / (y0 - y1) - (x - x0) / (x1 - x0);
    let mut best = None;
    for (index, point) in points.iter().enumerate() {
        let distance = below(point);
        // A hair of rounding is no knee.
        if distance > best.map_or(1e-12, |(_, most)| most) {
            best = Some((index, distance));
        }
    }
    best.map(|(index, _)| index)
}

/// The index of the first point from which no later one lowers `y` by `least` or more for each
/// unit of `x`. Points ascend in `x`; the last point always qualifies.
#[must_use]
pub fn knee_of_saving(points: &[(f64, f64)], least: f64) -> Option<usize> {
    (0..points.len()).find(|&index| {
        let (x, y) = points[index];
        points[index + 1..].iter().all(|&(later, cost)| y - cost < least * (later - x))
    })
}

/// The knees of all policies in a report, by both rules where `ms_per_gib` is given.
pub(crate) fn knees(report: &Report, ms_per_gib: Option<f64>) -> Vec<Knee> {
    let mut knees = Vec::new();
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.window == Window::All).collect();
    let mut groups: Vec<(&str, Scope, Phase)> = Vec::new();
    for row in &rows {
        let group = (row.policy.as_str(), row.scope, row.phase);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let bytes = report.settings.expert_bytes.iter().max().copied().unwrap_or(0);
    for group in groups {
        let mut of_group: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| (row.policy.as_str(), row.scope, row.phase) == group)
            .collect();
        of_group.sort_by_key(|row| row.capacity_slots);
        let links = of_group.first().map_or(0, |row| row.links.len());
        let costs: Vec<Option<usize>> = match links {
            0 => vec![None],
            _ => (0..links).map(Some).collect(),
        };
        for link in costs {
            let cost = |row: &Row| link.map_or(row.moved_per_token, |link| price(row, link).0);
            let gib = |row: &Row| f64::from(row.capacity_slots) * bytes as f64 / f64::from(1 << 30);
            let by_slots: Vec<(f64, f64)> =
                of_group.iter().map(|row| (f64::from(row.capacity_slots), cost(row))).collect();
            let by_gib: Vec<(f64, f64)> =
                of_group.iter().map(|row| (gib(row), cost(row))).collect();
            let chord = knee_of_chord(&by_slots).map(|index| (KneeRule::Chord, index));
            let saving = ms_per_gib.filter(|_| link.is_some()).and_then(|ms_per_gib| {
                let index = knee_of_saving(&by_gib, ms_per_gib)?;
                Some((KneeRule::SavesLessThan { ms_per_gib }, index))
            });
            for (rule, index) in chord.into_iter().chain(saving) {
                let row = of_group[index];
                knees.push(Knee {
                    policy: row.policy.clone(),
                    scope: row.scope,
                    phase: row.phase,
                    link: link.map(|link| row.links[link].link.clone()),
                    price: link.map(|link| price(row, link).1),
                    rule,
                    capacity_slots: row.capacity_slots,
                    capacity_share: row.capacity_share,
                    capacity_gib: (bytes > 0).then(|| gib(row)),
                    hit_rate: row.hit_rate,
                    mib_per_token: row.mib_per_token,
                    ms_per_token: link.map(|_| cost(row)),
                });
            }
        }
    }
    knees
}

/// ms a token of a row over its link number `link`, and which price that is.
fn price(row: &Row, link: usize) -> (f64, &'static str) {
    let prices = &row.links[link];
    match prices.timeline_ms_per_token {
        Some(timeline) => (timeline, "timeline"),
        None => (prices.serial_ms_per_token, "serial"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_of_a_chord_by_hand() {
        // From (0, 10) to (10, 0): at 2 the line is at 8, the curve at 3, five below; at 4 the
        // line is at 6, the curve at 2, four below.
        let curve = [(0.0, 10.0), (2.0, 3.0), (4.0, 2.0), (10.0, 0.0)];
        assert_eq!(knee_of_chord(&curve), Some(1));
        // A cliff: nothing is gained before it.
        assert_eq!(knee_of_chord(&[(0.0, 9.0), (1.0, 9.0), (2.0, 1.0), (5.0, 0.0)]), Some(2));
        assert_eq!(knee_of_chord(&[(0.0, 2.0), (1.0, 1.0), (2.0, 0.0)]), None, "a line");
        assert_eq!(knee_of_chord(&[(0.0, 2.0), (1.0, 2.0), (2.0, 0.0)]), None, "above it");
        assert_eq!(knee_of_chord(&[(0.0, 1.0), (1.0, 1.0)]), None, "nothing is ever saved");
        assert_eq!(knee_of_chord(&[(0.0, 1.0)]), None);
        assert_eq!(knee_of_chord(&[]), None);
    }

    #[test]
    fn the_knee_of_savings_looks_past_a_plateau() {
        let curve = [(0.0, 9.0), (1.0, 9.0), (2.0, 1.0), (5.0, 0.0)];
        // 0 to 2 saves 4 a unit, 2 to 5 a third.
        assert_eq!(knee_of_saving(&curve, 1.0), Some(2));
        assert_eq!(knee_of_saving(&curve, 0.3), Some(3));
        // From 1 the next unit saves 8, from 0 at most 4.
        assert_eq!(knee_of_saving(&curve, 8.5), Some(0));
        assert_eq!(knee_of_saving(&[], 1.0), None);
    }
}
