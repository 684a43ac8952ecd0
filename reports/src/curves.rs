//! Curves over sizes in a line each, to be seen at a glance: the tables have their figures.

use hotset_sim::{Report, Row, Window};

use crate::sheet::thousands;
use crate::{Cell, Column, Columns, Sheet, one_line};

/// With fewer sizes there is no curve.
const FEWEST: usize = 3;
/// Characters of a curve at most; of more sizes some are left out.
const MOST: usize = 12;
/// Curves beside each other in 80 characters.
const ABREAST: usize = 4;

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values on a scale from 0 to `most`; what is missing is a point.
pub(crate) fn sparkline(values: &[Option<f64>], most: f64) -> String {
    let level = |value: f64| {
        let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        LEVELS[((share * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)]
    };
    values.iter().map(|value| value.map_or('·', level)).collect()
}

/// At most [`MOST`] of these, the first and the last among them.
fn thinned(sizes: &[u32]) -> Vec<u32> {
    let many = sizes.len();
    if many <= MOST {
        return sizes.to_vec();
    }
    (0..MOST).map(|place| sizes[place * (many - 1) / (MOST - 1)]).collect()
}

/// A figure of a row, where it has one.
type Figure = dyn Fn(&Row) -> Option<f64>;

/// A figure and what it is called.
struct Quantity {
    heading: String,
    value: Box<Figure>,
}

fn quantities(report: &Report) -> Vec<Quantity> {
    let of = |heading: &str, value: fn(&Row) -> Option<f64>| Quantity {
        heading: heading.to_owned(),
        value: Box::new(value),
    };
    let sized = report.rows.iter().any(|row| row.mib_per_token.is_some());
    let mut all = vec![
        of("hit rate\nto 100%", |row| row.hit_rate.map(|share| share * 100.0)),
        match sized {
            true => of("MiB\n/token", |row| row.mib_per_token),
            false => of("moved\n/token", |row| Some(row.moved_per_token)),
        },
    ];
    let links = report.rows.first().map_or(0, |row| row.links.len());
    for (index, link) in report.settings.links.iter().enumerate().take(links) {
        let value = move |row: &Row| {
            let link = row.links.get(index)?;
            Some(link.timeline_ms_per_token.unwrap_or(link.serial_ms_per_token))
        };
        let heading = format!("ms, {}", one_line(link));
        all.push(Quantity { heading: heading.replacen('-', "-\n", 1), value: Box::new(value) });
    }
    all
}

/// A line of the table: a policy, and how it handles misses.
#[derive(Clone, Copy, PartialEq)]
struct Line<'a> {
    policy: &'a str,
    miss: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn of(row: &'a Row) -> Self {
        Self { policy: &row.policy, miss: row.miss.as_deref() }
    }

    fn name(&self) -> Cell {
        match self.miss {
            Some(miss) => format!("{}, {miss}", self.policy).into(),
            None => self.policy.into(),
        }
    }
}

/// The rows of one phase and scope.
fn groups(report: &Report) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in report.rows.iter().filter(|row| row.window == Window::All) {
        let same =
            |group: &&mut Vec<&Row>| group[0].phase == row.phase && group[0].scope == row.scope;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// A table a phase and scope, a line a policy; none where there are too few sizes for a curve.
pub(crate) fn curves(report: &Report) -> Vec<Sheet> {
    let quantities = quantities(report);
    let mut sheets = Vec::new();
    for rows in groups(report) {
        let mut sizes: Vec<u32> = rows.iter().map(|row| row.capacity_slots).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() < FEWEST {
            continue;
        }
        let mut lines: Vec<Line<'_>> = Vec::new();
        for line in rows.iter().map(|row| Line::of(row)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let shown = thinned(&sizes);
        let title = format!(
            "{} · {} scope · from {} to {} slots, each column on one scale from 0",
            rows[0].phase.name(),
            rows[0].scope.name(),
            thousands(sizes[0].into()),
            thousands(sizes[sizes.len() - 1].into()),
        );
        for (place, quantities) in quantities.chunks(ABREAST).enumerate() {
            let mut columns = Columns::of(&[]);
            columns.add(Column::left("policy", "policy"), |line: &Line<'_>| line.name());
            for quantity in quantities {
                add(&mut columns, quantity, &rows, &shown);
            }
            let title = if place == 0 { title.as_str() } else { "" };
            sheets.push(columns.sheet(title, &lines));
        }
    }
    sheets
}

fn add<'a>(
    columns: &mut Columns<'a, Line<'a>>,
    quantity: &'a Quantity,
    rows: &'a [&'a Row],
    sizes: &'a [u32],
) {
    let all = rows.iter().filter_map(|row| (quantity.value)(row));
    let hits = quantity.heading.starts_with("hit");
    let most = if hits { 100.0 } else { all.fold(0.0, f64::max) };
    columns.add(Column::left(&quantity.heading, &quantity.heading), move |line: &Line<'_>| {
        let at = |&slots: &u32| {
            let here = |row: &&&Row| row.capacity_slots == slots && Line::of(row) == *line;
            rows.iter().find(here).and_then(|row| (quantity.value)(row))
        };
        sparkline(&sizes.iter().map(at).collect::<Vec<_>>(), most).into()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_by_hand() {
        let values: Vec<_> = (0..=8).map(|value| Some(f64::from(value))).collect();
        // The eighth of eight parts begins at seven, and its end belongs to it.
        assert_eq!(sparkline(&values, 8.0), "▁▂▃▄▅▆▇██");
        assert_eq!(sparkline(&[Some(0.0), None, Some(5.0)], 0.0), "▁·▁");
    }

    #[test]
    fn of_many_sizes_the_first_and_the_last_are_kept() {
        let sizes: Vec<u32> = (1..=40).collect();
        let kept = thinned(&sizes);
        assert_eq!((kept.len(), kept[0], kept[11]), (12, 1, 40));
        assert!(kept.is_sorted());
        assert_eq!(thinned(&sizes[..12]), &sizes[..12]);
    }
}
