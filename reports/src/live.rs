//! Predictions against live runs laid out: a table of points, of their tokens, of what prefetch did.

use hotset_sim::{LiveReport, LiveRow, PrefetchEffect};
use serde::Serialize;

use crate::{Cell, Columns, Field, Output, RenderError, Sheet};

/// What of a check against live runs is not as it must be, each in a sentence: times and counts fail apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveChecks {
    /// Times that are off by more than they may.
    pub times: Vec<String>,
    /// Points whose misses or prefetches are not the run's.
    pub counts: Vec<String>,
}

impl LiveChecks {
    /// Whether nothing failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Everything that failed, times first.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.times.iter().chain(&self.counts).map(String::as_str)
    }
}

fn verdict(failures: &[String]) -> &'static str {
    if failures.is_empty() { "passed" } else { "FAILED" }
}

/// A check against live runs in every format.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn live(report: &LiveReport, checks: &LiveChecks) -> Result<Output, RenderError> {
    #[derive(Serialize)]
    struct Checked<'a> {
        #[serde(flatten)]
        report: &'a LiveReport,
        passed: bool,
        times_passed: bool,
        counts_passed: bool,
        failures: Vec<&'a str>,
    }
    let checked = Checked {
        report,
        passed: checks.passed(),
        times_passed: checks.times.is_empty(),
        counts_passed: checks.counts.is_empty(),
        failures: checks.failures().collect(),
    };
    let rows = &report.rows;
    let setting = || Columns::of(SETTING);
    let mut predicted = setting().and(POINT).sheet("predicted from link measurements alone", rows);
    predicted.note = format!(
        "times: {}, error: largest {:.2}% (at most 3), median {:.2}% (at most 1)\n\
         counts {}: {}",
        verdict(&checks.times),
        report.max_error * 100.0,
        report.median_error * 100.0,
        if report.counts_exact { "exact" } else { "NOT exact" },
        verdict(&checks.counts),
    );
    let mut tokens = setting().and(TOKENS).sheet("token by token", rows);
    tokens.note =
        "R2: share of the variance of the live token times that is explained; error p99:\n\
                   what the error of 99% of tokens does not exceed; p99: of the token times"
            .to_owned();
    let mut output = Output::new(&checked, vec![predicted, tokens])?;
    if !report.prefetch_effects.is_empty() {
        output.sheets.push(effects(&report.prefetch_effects));
    }
    output.page = Some(crate::page::live(report, checks.passed()));
    output.flat = Some(setting().and(POINT).and(TOKENS).and(SPENT).sheet("", rows));
    Ok(output)
}

const SETTING: &[Field<LiveRow>] = &[
    Field::left("routes", "trace", |row| row.trace.as_str().into()),
    Field::left("link", "link", |row| row.link.as_str().into()),
    Field::right("MiB", "expert_mib", |row| mib(row.expert_bytes)),
    Field::right("slots", "slots", |row| Cell::Count(row.slots.into())),
    Field::left("pre-\nfetch", "prefetch", |row| row.prefetch.as_str().into()),
];

const POINT: &[Field<LiveRow>] = &[
    Field::right("predicted\nms", "predicted_ms", |row| Cell::Number(row.predicted_ms, 4)),
    Field::right("live\nms", "measured_ms", |row| Cell::Number(row.measured_ms, 4)),
    Field::right("error\n%", "error_percent", |row| Cell::percent(Some(row.error))),
    Field::left("counts", "counts", |row| {
        let exact = row.counts_match && row.tokens_miscounted == 0;
        if exact { "exact" } else { "differ" }.into()
    }),
];

const TOKENS: &[Field<LiveRow>] = &[
    Field::right("R2", "token_r2", |row| Cell::number(row.token_r2, 4)),
    Field::right("error\np99 %", "token_error_p99_percent", |row| {
        Cell::percent(Some(row.token_error_p99))
    }),
    Field::right("p99 pre-\ndicted ms", "p99_predicted_ms", |row| {
        Cell::Number(row.p99_predicted_ms, 4)
    }),
    Field::right("p99\nlive ms", "p99_measured_ms", |row| Cell::Number(row.p99_measured_ms, 4)),
    Field::right("error\n%", "p99_error_percent", |row| Cell::percent(Some(row.p99_error))),
];

const SPENT: &[Field<LiveRow>] = &[
    Field::flat("misses_per_token", |row| Cell::Number(row.predicted_misses_per_token, 4)),
    Field::flat("prefetches_per_token", |row| Cell::Number(row.predicted_prefetches_per_token, 4)),
    Field::flat("compute_ms", |row| Cell::Number(row.spent.compute, 4)),
    Field::flat("slowed_ms", |row| Cell::Number(row.spent.slowed, 4)),
    Field::flat("exposed_demand_ms", |row| Cell::Number(row.spent.exposed_demand, 4)),
    Field::flat("exposed_prefetch_ms", |row| Cell::Number(row.spent.exposed_prefetch, 4)),
];

fn mib(bytes: u64) -> Cell {
    Cell::Number(bytes as f64 / f64::from(1 << 20), 2)
}

fn signed(change: f64) -> Cell {
    Cell::Text(format!("{:+.2}", change * 100.0))
}

const EFFECTS: &[Field<PrefetchEffect>] = &[
    Field::left("routes", "trace", |effect| effect.trace.as_str().into()),
    Field::left("link", "link", |effect| effect.link.as_str().into()),
    Field::right("MiB", "expert_mib", |effect| mib(effect.expert_bytes)),
    Field::right("slots", "slots", |effect| Cell::Count(effect.slots.into())),
    Field::right("predicted\n%", "predicted_change_percent", |effect| {
        signed(effect.predicted_change)
    }),
    Field::right("live\n%", "measured_change_percent", |effect| signed(effect.measured_change)),
];

fn effects(effects: &[PrefetchEffect]) -> Sheet {
    let mut sheet = Sheet::of("what prefetch does to the time of the same cache", EFFECTS, effects);
    let said = |link: &str, over: &str| {
        let of_link = || effects.iter().filter(|effect| effect.link == link);
        let all = |is: fn(f64) -> bool| {
            of_link().all(|effect| is(effect.predicted_change) && is(effect.measured_change))
        };
        match of_link().count() {
            0 => None,
            _ if all(|change| change < 0.0) => Some(format!("lowers time over {over}")),
            _ if all(|change| change > 0.0) => Some(format!("raises it over {over}")),
            _ => Some(format!("is not of one sign over {over}")),
        }
    };
    let both = [said("peer", "NVLink (peer)"), said("host", "PCIe (host)")];
    let both: Vec<String> = both.into_iter().flatten().collect();
    sheet.note = format!("predicted and live:\nprefetch {}", both.join(" and "));
    sheet
}
