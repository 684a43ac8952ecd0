//! Counts under named columns: a layer, an expert and a count a line, as CSV or as JSON lines.

use std::collections::BTreeMap;

use super::info::{ExpertCounts, HistogramInfo, MOST};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::named::{self, Kind, Names, Record, Requests, Sink};
use crate::import::sniff::Sniff;
use crate::shape::MAX_EXPERTS;

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "columns-counts",
    description: "named columns, as CSV or JSON lines: a layer, an expert and its count a line",
    recognise,
    fuzz: FuzzTarget::Columns,
    reader: read,
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Possible.when(named::kind(sniff) == Some(Kind::Counts))
}

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut all = Sum::default();
    for input in inputs {
        let names = Names::new(&[]).map_err(|problem| input.error("columns", problem))?;
        named::read(input, &names, &mut Requests::default(), &mut all)?;
    }
    Ok(all.finish())
}

/// Counts that are added up, in whatever order they come.
#[derive(Debug, Default)]
pub(super) struct Sum {
    layers: BTreeMap<u32, Vec<u64>>,
    /// Experts that a header states.
    experts: usize,
    cells: usize,
    phases: u8,
    twice: u64,
}

impl Sum {
    /// Adds one count; the error says why it is none.
    pub(super) fn add(&mut self, layer: i64, expert: i64, count: f64) -> Result<(), String> {
        let layer = u32::try_from(layer).map_err(|_| format!("layer {layer}"))?;
        let place = usize::try_from(expert).ok().filter(|&expert| expert < MAX_EXPERTS as usize);
        let place = place.ok_or_else(|| format!("expert {expert}; 0 to 65535 are possible"))?;
        let count = super::info::whole(count).ok_or_else(|| {
            format!(
                "layer {layer}, expert {expert}: {count} is no whole number: shares and \
                 probabilities say not how many selections they stand for, and are no counts"
            )
        })?;
        let counts = self.layers.entry(layer).or_default();
        if counts.len() <= place {
            self.cells += place + 1 - counts.len();
            if self.cells > MOST {
                return Err(format!("over {MOST} experts in all layers"));
            }
            counts.resize(place + 1, 0);
        }
        self.twice += u64::from(counts[place] > 0 && count > 0);
        counts[place] = counts[place].saturating_add(count);
        Ok(())
    }

    /// So many experts are in each layer, whether they were used or not.
    pub(super) fn state(&mut self, experts: i64) {
        let sane = usize::try_from(experts).ok().filter(|&n| n <= MAX_EXPERTS as usize);
        self.experts = self.experts.max(sane.unwrap_or(0));
    }

    /// The counts; all layers have as many experts as the widest.
    pub(super) fn finish(self) -> ExpertCounts {
        let widest = self.layers.values().map(Vec::len).max().unwrap_or(0).max(self.experts);
        let fits = widest.saturating_mul(self.layers.len()) <= MOST;
        let mut notes = Vec::new();
        if self.phases.count_ones() > 1 {
            notes.push("counts of several phases are added up".to_owned());
        } else if self.twice > 0 {
            let twice = self.twice;
            notes.push(format!("{twice} pairs of layer and expert come again: they are added up"));
        }
        let layers = self.layers.into_iter().map(|(number, mut counts)| {
            if fits {
                counts.resize(widest, 0);
            }
            (number, counts)
        });
        ExpertCounts { layers: layers.collect(), tokens: None, notes }
    }
}

impl Sink for Sum {
    fn record(&mut self, record: &mut Record) -> Result<(), String> {
        let Some(layer) = record.layer() else { return Ok(()) };
        if record.count.is_none() && !record.ids.columns.is_empty() {
            // A column for each expert, counted from 0 or from 1.
            let first = record.ids.columns.first().map_or(0, |&first| first.min(1));
            let counts = record.ids.columns.iter().zip(&record.ids.values);
            for (&expert, &count) in counts {
                self.add(layer, (expert - first).into(), count as f64)?;
            }
            return Ok(());
        }
        let Some(count) = record.count else { return Ok(()) };
        let [expert] = record.ids.values[..] else {
            return Err("a count of several experts".to_owned());
        };
        if let Some(phase) = record.place().phase {
            self.phases |= 1 << phase as u8;
        }
        self.add(layer, expert, count)
    }

    fn group(&mut self) {}

    fn other(&mut self, record: &Record, _: &[String]) {
        self.state(record.experts.unwrap_or(0));
    }
}
