//! Every report beside its prediction.

use serde::Serialize;

use super::{Known, Prediction, Reports, SummaryRow, WhyNot, memory, speed, summary};

/// One figure of a report beside its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedRow {
    /// The report's own id.
    pub id: String,
    /// What is reported.
    pub kind: String,
    /// As reported, in `unit`.
    pub reported: f64,
    /// As predicted; absent where it was not.
    pub predicted: Option<f64>,
    /// The lower end of the range.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether the report lies in the range.
    pub inside: Option<bool>,
    /// Why it was not predicted.
    pub why_not: Option<String>,
    /// The engine's name, else as the report has it.
    pub engine: String,
    /// The model as the report has it.
    pub model: String,
    /// The unit of all figures of the row.
    pub unit: String,
    /// Predicted over reported less one; of yes and no, 0 where they agree and 1 where not.
    pub error: Option<f64>,
}

/// Every row with its prediction, and what they come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifyReport {
    /// One entry a figure, in the order of the reports.
    pub rows: Vec<CheckedRow>,
    /// By kind and engine, then by kind over all engines.
    pub summary: Vec<SummaryRow>,
    /// Rows left out because their column `faulty` says that the set-up was at fault.
    pub faulty: usize,
}

/// Predicts every report.
#[must_use]
pub fn verify(reports: &Reports, known: &Known) -> VerifyReport {
    let mut rows = Vec::new();
    let files = memory::Files::of(&reports.memory);
    for row in reports.memory.iter().filter(|row| !row.faulty) {
        let prediction = memory::predict(row, known, &files);
        let reported = Reported {
            id: &row.id,
            kind: &row.kind,
            value: row.value,
            engine: &row.engine,
            model: &row.model,
            unit: &row.unit,
        };
        rows.push(reported.beside(prediction, known));
    }
    for row in reports.speeds.iter().filter(|row| !row.faulty) {
        for (kind, value) in row.reported() {
            let prediction = speed::predict(row, kind, known);
            let reported = Reported {
                id: &row.id,
                kind: kind.name(),
                value,
                engine: &row.engine,
                model: &row.model,
                unit: kind.unit(),
            };
            rows.push(reported.beside(prediction, known));
        }
    }
    let faulty = reports.memory.iter().filter(|row| row.faulty).count()
        + reports.speeds.iter().filter(|row| row.faulty).count();
    let summary = summary::summary(&rows);
    VerifyReport { rows, summary, faulty }
}

struct Reported<'a> {
    id: &'a str,
    kind: &'a str,
    value: f64,
    engine: &'a str,
    model: &'a str,
    unit: &'a str,
}

impl Reported<'_> {
    fn beside(&self, prediction: Result<Prediction, WhyNot>, known: &Known) -> CheckedRow {
        let engine = known.engine(self.engine).map(|engine| engine.name.clone());
        let (prediction, why_not) = match prediction {
            Ok(prediction) => (Some(prediction), None),
            Err(WhyNot(why)) => (None, Some(why)),
        };
        let error = |p: Prediction| match (self.value, self.kind) {
            (_, "oom") => (p.predicted - self.value).abs(),
            (0.0, _) => p.predicted.abs(),
            _ => p.predicted / self.value - 1.0,
        };
        CheckedRow {
            id: self.id.to_owned(),
            kind: self.kind.to_owned(),
            reported: self.value,
            predicted: prediction.map(|p| p.predicted),
            low: prediction.map(|p| p.low),
            high: prediction.map(|p| p.high),
            inside: prediction.map(|p| p.low <= self.value && self.value <= p.high),
            why_not,
            engine: engine.unwrap_or_else(|_| self.engine.to_owned()),
            model: self.model.to_owned(),
            unit: self.unit.to_owned(),
            error: prediction.map(error),
        }
    }
}
