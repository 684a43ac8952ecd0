//! The experiment `ablation`: what each arm closes of the gap, and what each part is worth.

use hotset_experiments::{AblationReport, Gap};

use super::cells::{ends, estimate, name};
use super::{left_out, of_block, settings, verdicts};
use crate::compare::headline;
use crate::{Cell, Field, Output, RenderError, Sheet, one_line, page};

/// The experiment `ablation` in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn ablation(report: &AblationReport) -> Result<Output, RenderError> {
    let head = headline(&report.trace);
    let title = "share of the gap between lru and belady that is closed";
    let title = format!("{head}\n{}\n\n{title}", settings(&report.settings));
    let mut gaps = Sheet::of(title, GAPS, &report.gaps);
    gaps.note = "lost: what the first closes more than this one; shuffled: closed with the tokens \
                 of each sequence in a random order, which keeps what is popular"
        .to_owned();
    let mut sheets = vec![gaps];
    sheets.extend(of_block(&report.block));
    sheets.extend(verdicts(&report.verdicts));
    sheets.extend(left_out(&report.left_out));
    let mut output = Output::new(report, sheets)?;
    output.flat = Some(Sheet::of("", FLAT, &report.gaps));
    output.page = Some(page::experiment(&report.trace.name, std::slice::from_ref(&report.block)));
    output.warnings = report.warnings.clone();
    Ok(output)
}

const GAPS: &[Field<Gap>] = &[
    Field::left("arm", "arm", |gap| name(&gap.arm)),
    Field::right("misses", "misses", |gap| Cell::Count(gap.misses)),
    Field::right("closed", "closed", |gap| estimate(&gap.closed, 1.0, 3)),
    Field::right("95%", "closed_95", |gap| ends(&gap.closed, 1.0, 3)),
    Field::right("lost", "lost", |gap| estimate(&gap.lost, 1.0, 3)),
    Field::right("95%", "lost_95", |gap| ends(&gap.lost, 1.0, 3)),
    Field::right("shuffled", "closed_shuffled", |gap| estimate(&gap.closed_shuffled, 1.0, 3)),
];

fn number(value: f64) -> Cell {
    Cell::number(value.is_finite().then_some(value), 4)
}

const FLAT: &[Field<Gap>] = &[
    Field::left("arm", "arm", |gap| one_line(&gap.arm).into()),
    Field::right("misses", "misses", |gap| Cell::Count(gap.misses)),
    Field::right("closed", "closed", |gap| number(gap.closed.estimate)),
    Field::right("closed low", "closed_low", |gap| number(gap.closed.low)),
    Field::right("closed high", "closed_high", |gap| number(gap.closed.high)),
    Field::right("lost", "lost", |gap| number(gap.lost.estimate)),
    Field::right("lost low", "lost_low", |gap| number(gap.lost.low)),
    Field::right("lost high", "lost_high", |gap| number(gap.lost.high)),
    Field::right("shuffled", "closed_shuffled", |gap| number(gap.closed_shuffled.estimate)),
    Field::right("shuffled low", "closed_shuffled_low", |gap| number(gap.closed_shuffled.low)),
    Field::right("shuffled high", "closed_shuffled_high", |gap| number(gap.closed_shuffled.high)),
];
