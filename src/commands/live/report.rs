//! Live points laid out.

use hotset::live::LiveModel;
use hotset::reports::{Cell, Columns, Field, Output, RenderError};
use hotset::sim::{SCHEMA, TraceSummary};
use hotset::traces::Trace;
use serde::Serialize;

use super::point::{LivePoint, Predicted};

/// How far times may be off.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Allowed {
    pub most: f64,
    pub median: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    device: &'a str,
    kernels: &'static str,
    trace: TraceSummary,
    rows: &'a [LivePoint],
    #[serde(flatten)]
    check: Option<Check<'a>>,
}

#[derive(Serialize)]
struct Check<'a> {
    allowed: Allowed,
    max_error: f64,
    median_error: f64,
    decisions_equal: bool,
    failures: &'a [String],
}

impl<'a> Report<'a> {
    fn new(trace: &Trace, model: &'a LiveModel, rows: &'a [LivePoint]) -> Self {
        let kernels = if model.compiled_here() { "compiled here" } else { "as shipped" };
        let trace = TraceSummary::of(trace);
        Self { schema: SCHEMA, device: model.device_name(), kernels, trace, rows, check: None }
    }
}

const SETTING: &[Field<LivePoint>] = &[
    Field::left("policy", "policy", |row| row.policy.as_str().into()),
    Field::right("slots", "slots", |row| Cell::Count(row.slots.into())),
    Field::left("prefetch", "prefetch", |row| row.prefetch.as_str().into()),
    Field::left("miss", "miss", |row| row.miss.as_str().into()),
    Field::left("phase", "phase", |row| row.phase.name().into()),
];

const RAN: &[Field<LivePoint>] = &[
    Field::right("hits\n%", "hit_rate_percent", |row| Cell::percent(row.hit_rate)),
    Field::right("moved a\ntoken", "moved_per_token", |row| {
        Cell::Number(row.misses_per_token + row.prefetches_per_token, 2)
    }),
    Field::right("live ms\na token", "wall_ms_per_token", |row| {
        Cell::Number(row.wall_ms_per_token, 4)
    }),
    Field::right("decide\nns/event", "decide_ns_per_event", |row| {
        Cell::Number(row.decide_ns_per_event, 0)
    }),
];

fn predicted(row: &LivePoint, of: fn(&Predicted) -> f64) -> Option<f64> {
    row.predicted.as_ref().map(of)
}

const PREDICTED: &[Field<LivePoint>] = &[
    Field::right("predicted\nms", "predicted_ms", |row| {
        Cell::number(predicted(row, |of| of.predicted_ms), 4)
    }),
    Field::right("live\nms", "wall_ms_per_token", |row| Cell::Number(row.wall_ms_per_token, 4)),
    Field::right("error\n%", "error_percent", |row| Cell::percent(predicted(row, |of| of.error))),
    Field::left("deci-\nsions", "decisions", |row| match &row.predicted {
        Some(of) if of.decisions_equal => "equal".into(),
        Some(_) => "DIFFER".into(),
        None => Cell::Empty,
    }),
];

/// What a file of points has beside the tables, in the columns that such files have.
const FLAT: &[Field<LivePoint>] = &[
    Field::flat("trace", |row| row.trace.as_str().into()),
    Field::flat("link", |row| row.link.into()),
    Field::flat("expert_bytes", |row| Cell::Count(row.expert_bytes)),
    Field::flat("dense_bytes_per_layer", |row| Cell::Count(row.dense_bytes_per_layer)),
    Field::flat("slots", |row| Cell::Count(row.slots.into())),
    Field::flat("experts", |row| Cell::Count(row.experts.into())),
    Field::flat("prefetch", |row| row.prefetch.as_str().into()),
    Field::flat("tokens", |row| Cell::Count(row.tokens)),
    Field::flat("warmup_tokens", |row| Cell::Count(row.warmup_tokens)),
    Field::flat("misses_per_token", |row| Cell::Number(row.misses_per_token, 4)),
    Field::flat("prefetches_per_token", |row| Cell::Number(row.prefetches_per_token, 4)),
    Field::flat("gpu_ms_per_token", |row| Cell::Number(row.gpu_ms_per_token, 5)),
    Field::flat("wall_ms_per_token", |row| Cell::Number(row.wall_ms_per_token, 5)),
    Field::flat("policy", |row| row.policy.as_str().into()),
    Field::flat("scope", |row| row.scope.into()),
    Field::flat("miss", |row| row.miss.as_str().into()),
    Field::flat("phase", |row| row.phase.name().into()),
    Field::flat("steps", |row| Cell::Count(row.steps)),
    Field::flat("hit_rate", |row| Cell::number(row.hit_rate, 4)),
    Field::flat("host_per_token", |row| Cell::Number(row.host_per_token, 4)),
    Field::flat("decide_ns_per_event", |row| Cell::Number(row.decide_ns_per_event, 0)),
    Field::flat("decide_share", |row| Cell::Number(row.decide_share, 5)),
    Field::flat("checked", |row| Cell::Count(row.checked)),
];

const FLAT_PREDICTED: &[Field<LivePoint>] = &[
    Field::flat("predicted_ms", |row| Cell::number(predicted(row, |of| of.predicted_ms), 5)),
    Field::flat("error", |row| Cell::number(predicted(row, |of| of.error), 5)),
    Field::flat("decisions", |row| {
        row.predicted.map_or(Cell::Empty, |of| Cell::Count(of.decisions))
    }),
    Field::flat("decisions_equal", |row| {
        row.predicted.map_or(Cell::Empty, |of| of.decisions_equal.to_string().into())
    }),
];

/// Points alone.
pub fn ran(trace: &Trace, model: &LiveModel, points: &[LivePoint]) -> Result<Output, RenderError> {
    let title = format!(
        "{} on {}, experts from {}",
        trace.name(),
        model.device_name(),
        model.source().name()
    );
    let mut sheet = Columns::of(SETTING).and(RAN).sheet(&title, points);
    sheet.note = sums(points);
    let mut output = Output::new(&Report::new(trace, model, points), vec![sheet])?;
    output.flat = Some(Columns::of(FLAT).sheet("", points));
    Ok(output)
}

/// Points against their predictions, and what is not as it must be, each in a sentence.
pub fn checked(
    trace: &Trace,
    model: &LiveModel,
    points: &[LivePoint],
    allowed: &Allowed,
) -> Result<(Output, Vec<String>), RenderError> {
    let mut errors: Vec<f64> =
        points.iter().filter_map(|row| predicted(row, |of| of.error)).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let max_error = errors.last().copied().unwrap_or(0.0);
    let median_error = match errors.len() {
        0 => 0.0,
        n => (errors[(n - 1) / 2] + errors[n / 2]) / 2.0,
    };
    let failures = failures(points, allowed, median_error);
    let decisions_equal =
        points.iter().all(|row| row.predicted.is_none_or(|of| of.decisions_equal));
    let title = format!(
        "{} on {}, experts from {}: predicted from timings of links and kernels alone",
        trace.name(),
        model.device_name(),
        model.source().name()
    );
    let mut sheet = Columns::of(SETTING).and(PREDICTED).sheet(&title, points);
    sheet.note = format!(
        "{} points: error largest {:.2}% (at most {:.2}), median {:.2}% (at most {:.2})\n\
         decisions: {}\n{}",
        points.len(),
        max_error * 100.0,
        allowed.most * 100.0,
        median_error * 100.0,
        allowed.median * 100.0,
        if decisions_equal { "equal to the replays', slot for slot" } else { "NOT equal" },
        sums(points),
    );
    let mut report = Report::new(trace, model, points);
    let check =
        Check { allowed: *allowed, max_error, median_error, decisions_equal, failures: &failures };
    report.check = Some(check);
    let mut output = Output::new(&report, vec![sheet])?;
    output.flat = Some(Columns::of(FLAT).and(FLAT_PREDICTED).sheet("", points));
    Ok((output, failures))
}

fn sums(points: &[LivePoint]) -> String {
    // Points of several phases are of one run.
    let mut checked: Vec<(&str, u32, &str, &str, u64)> = points
        .iter()
        .map(|row| (&*row.policy, row.slots, &*row.prefetch, &*row.miss, row.checked))
        .collect();
    checked.dedup();
    let sum: u64 = checked.iter().map(|(.., checked)| checked).sum();
    format!("experts computed and their sums compared: {sum}, all right")
}

fn failures(points: &[LivePoint], allowed: &Allowed, median_error: f64) -> Vec<String> {
    let name = |row: &LivePoint| {
        format!(
            "{}, {} slots, prefetch {}, miss {}, {}",
            row.policy,
            row.slots,
            row.prefetch,
            row.miss,
            row.phase.name()
        )
    };
    let mut failures = Vec::new();
    for (row, of) in points.iter().filter_map(|row| Some((row, row.predicted?))) {
        if of.error > allowed.most {
            let error = of.error * 100.0;
            let most = allowed.most * 100.0;
            failures.push(format!("{}: off by {error:.2}%, at most {most}% is allowed", name(row)));
        }
        if !of.decisions_equal {
            failures.push(format!("{}: the run decided otherwise than its replay", name(row)));
        }
    }
    if median_error > allowed.median {
        let (error, most) = (median_error * 100.0, allowed.median * 100.0);
        failures.push(format!("the median error is {error:.2}%, at most {most}% is allowed"));
    }
    failures
}
