//! `hotset trace info` of a histogram.

use std::path::Path;

use hotset::reports::{Cell, Column, Output, Sheet};
use hotset::traces::{Histogram, HistogramFormat};

use crate::fault::{Ending, Fault};
use crate::output::{self, OutputArgs};

/// Shows how often experts were used, layer by layer.
pub fn show(path: &Path, format: HistogramFormat, args: &OutputArgs) -> Result<Ending, Fault> {
    let histogram = Histogram::read(format, &[path.to_owned()])?;
    let mut output = Output::new(&histogram, sheets(&histogram))?;
    output.warnings.extend(histogram.notes.clone());
    output::give(&output, args)?;
    Ok(Ending::Passed)
}

fn sheets(histogram: &Histogram) -> Vec<Sheet> {
    let facts = vec![
        ("kind", "histogram: counts without order, not to be replayed".into()),
        ("format", histogram.format.into()),
        ("layers", Cell::Count(histogram.layers.len() as u64)),
        ("tokens", histogram.tokens.map_or(Cell::Empty, Cell::Count)),
        ("selections", Cell::Count(histogram.total())),
    ];
    let mut layers = Sheet::new(
        "layers",
        vec![
            Column::right("layer", "layer"),
            Column::right("experts", "experts"),
            Column::right("used", "used"),
            Column::right("selections", "selections"),
            Column::right("top 10%", "top_10_percent"),
            Column::right("top 25%", "top_25_percent"),
            Column::right("most used", "most_used"),
        ],
    );
    for (number, counts) in histogram.per_layer() {
        let mut sorted: Vec<(u64, usize)> = counts.iter().copied().zip(0..).collect();
        sorted.sort_by_key(|&(count, expert)| (std::cmp::Reverse(count), expert));
        let all: u64 = counts.iter().fold(0, |sum, &count| sum.saturating_add(count));
        let share = |part: usize| {
            let top = sorted.iter().take(counts.len().div_ceil(part));
            let top = top.fold(0u64, |sum, &(count, _)| sum.saturating_add(count));
            Cell::Text(format!("{:.1} %", top as f64 / all.max(1) as f64 * 100.0))
        };
        layers.rows.push(vec![
            Cell::Count(number.into()),
            Cell::Count(counts.len() as u64),
            Cell::Count(counts.iter().filter(|&&count| count > 0).count() as u64),
            Cell::Count(all),
            share(10),
            share(4),
            Cell::Count(sorted.first().map_or(0, |&(_, expert)| expert as u64)),
        ]);
    }
    layers.note = "top 10%: selections that go to the tenth of experts used most".to_owned();
    vec![Sheet::facts(histogram.name.as_str(), facts), layers]
}
