//! Fits the figures of `engines/speed.toml` to reports, and prints that file: `cargo run --example fit_speeds -p
//! hotset-planning -- speeds.csv > planning/engines/speed.toml`.
//!
//! Logarithms of predicted over reported speeds are made small (squares, beyond 0.4 their magnitude), every thread
//! counted as the root of its reports, starting values a weak prior: few reports move a figure little. A range is where 80 of 100
//! reports lie that were predicted without their own thread. Two runs of a thread that differ only in the layers on the host
//! also say what a layer there costs: their difference is a point of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use hotset_cost_models::hardware::Basis;
use hotset_planning::engine::speed::Step;
use hotset_planning::engine::{Fitted, SpeedFigures};
use hotset_planning::verify::speed::{Decode, Prefill};
use hotset_planning::verify::{Known, Reports};

/// Kind, name, where the search starts, and between what it may end.
type Start = (&'static str, &'static str, f64, f64, f64);

const DECODE: [Start; 27] = [
    ("ggml", "layer_us.new", 40.0, 5.0, 1000.0),
    ("ggml", "layer_us.old", 95.0, 5.0, 1000.0),
    ("ggml", "layer_us.amd", 90.0, 5.0, 1000.0),
    ("ggml", "layer_us.apple", 120.0, 5.0, 1000.0),
    ("ggml", "layer_us.gb10", 45.0, 5.0, 1000.0),
    ("ggml", "layer_us.strix", 200.0, 5.0, 1000.0),
    ("ggml", "latent_layers", 1.5, 1.0, 4.0),
    ("ggml", "stage_us", 700.0, 50.0, 3000.0),
    ("ggml", "kv_share.full", 0.6, 0.1, 1.0),
    ("ggml", "kv_share.latent", 0.05, 0.01, 1.0),
    ("ggml", "kv_share.sparse", 0.2, 0.02, 1.0),
    ("ggml", "cpu_share.desktop", 0.7, 0.3, 0.95),
    ("ggml", "cpu_share.server", 0.8, 0.3, 0.95),
    ("ggml", "cpu_mxfp4", 0.8, 0.3, 1.0),
    ("ggml", "cpu_layer_us.desktop", 120.0, 10.0, 600.0),
    ("ggml", "cpu_layer_us.server", 250.0, 10.0, 600.0),
    ("ds4", "gpu_share", 0.6, 0.3, 0.95),
    ("ds4", "layer_us", 205.0, 20.0, 1000.0),
    ("server", "reduce_us", 30.0, 5.0, 200.0),
    ("server", "cpu_share.server", 0.7, 0.3, 0.95),
    ("server", "cpu_layer_us.server", 100.0, 10.0, 600.0),
    ("slots", "layer_us", 38.0, 5.0, 1000.0),
    ("slots", "fetch_share", 0.35, 0.05, 1.0),
    ("slots", "fetch_layer_us", 300.0, 20.0, 1000.0),
    ("disk", "cpu_share.alone", 0.4, 0.05, 1.0),
    ("disk", "storage_waits", 0.6, 0.1, 1.0),
    ("ggml", "reduce_us", 30.0, 5.0, 200.0),
];

const PREFILL: [Start; 19] = [
    ("ggml", "compute_share.new", 0.35, 0.02, 1.0),
    ("ggml", "compute_share.old", 0.35, 0.02, 1.0),
    ("ggml", "compute_share.amd", 0.3, 0.02, 1.0),
    ("ggml", "compute_share.apple", 0.5, 0.02, 1.0),
    ("ggml", "compute_share.gb10", 0.25, 0.02, 1.0),
    ("ggml", "compute_share.strix", 0.15, 0.02, 1.0),
    ("ggml", "half_full_tokens", 100.0, 1.0, 2000.0),
    ("ggml", "past_tokens", 20.0, 1.0, 200.0),
    ("ggml", "copy_share", 0.5, 0.1, 1.0),
    ("ggml", "core_gflops.desktop", 150.0, 10.0, 1000.0),
    ("ggml", "core_gflops.server", 150.0, 10.0, 1000.0),
    ("ds4", "compute_share.apple", 0.5, 0.02, 1.5),
    ("ds4", "compute_share.gb10", 0.1, 0.02, 1.5),
    ("ds4", "compute_share.strix", 0.1, 0.02, 1.5),
    ("server", "compute_share.new", 0.5, 0.02, 1.0),
    ("server", "core_gflops.server", 100.0, 10.0, 1000.0),
    ("server", "copy_share", 0.5, 0.1, 1.0),
    ("server", "half_full_tokens", 100.0, 1.0, 4000.0),
    ("slots", "compute_share", 0.2, 0.02, 1.0),
];

/// How strongly a figure keeps to where the search started.
const PRIOR: f64 = 0.02;

enum Asked {
    Decode(Decode),
    Prefill(Prefill),
}

struct Point {
    thread: String,
    kind: String,
    placement: &'static str,
    reported: f64,
    weight: f64,
    asked: Asked,
}

impl Point {
    fn error(&self, figures: &SpeedFigures) -> f64 {
        let predicted = match &self.asked {
            Asked::Decode(decode) => decode.tokens_per_second(figures),
            Asked::Prefill(prefill) => prefill.tokens_per_second(figures),
        };
        (predicted / self.reported).ln()
    }
}

fn points(reports: &Reports) -> Vec<Point> {
    let known = Known::builtin();
    let mut points = Vec::new();
    for row in reports.speeds.iter().filter(|row| !row.faulty) {
        let thread = row.id.rsplit_once('-').map_or(row.id.as_str(), |split| split.0).to_owned();
        let decode = row.tg_tokens_s.and_then(|t| Some((t, Decode::of(row, &known).ok()?)));
        let prefill = row.pp_tokens_s.and_then(|t| Some((t, Prefill::of(row, &known).ok()?)));
        if let Some((reported, decode)) = decode {
            let (kind, placement) = (decode.kind.clone(), decode.placement);
            let asked = Asked::Decode(decode);
            points.push(Point {
                thread: thread.clone(),
                kind,
                placement,
                reported,
                weight: 1.0,
                asked,
            });
        }
        if let Some((reported, prefill)) = prefill {
            let (kind, placement) = (prefill.kind.clone(), prefill.placement);
            let asked = Asked::Prefill(prefill);
            points.push(Point { thread, kind, placement, reported, weight: 1.0, asked });
        }
    }
    let mut threads: BTreeMap<(String, bool), f64> = BTreeMap::new();
    let decoding = |point: &Point| matches!(point.asked, Asked::Decode(_));
    for point in &points {
        *threads.entry((point.thread.clone(), decoding(point))).or_default() += 1.0;
    }
    for point in &mut points {
        point.weight = threads[&(point.thread.clone(), decoding(point))].powf(-0.5);
    }
    points
}

fn figures(values: &[(Start, f64)]) -> SpeedFigures {
    let mut kinds: BTreeMap<String, BTreeMap<String, Fitted>> = BTreeMap::new();
    let fitted =
        |value| Fitted { value, basis: Basis::Calculated, source: String::new(), spread: None };
    for ((kind, name, ..), value) in values {
        kinds.entry((*kind).to_owned()).or_default().insert((*name).to_owned(), fitted(*value));
    }
    let common = kinds.entry("ggml".to_owned()).or_default();
    common.insert("gpu_share".to_owned(), fitted(0.85));
    SpeedFigures(kinds)
}

/// Seconds a token between two runs that differ only in what the host computes.
fn apart(one: &Point, other: &Point) -> Option<f64> {
    let (Asked::Decode(a), Asked::Decode(b)) = (&one.asked, &other.asked) else { return None };
    let same = Step {
        on_host: a.step.on_host,
        host_layers: a.step.host_layers,
        host: a.step.host,
        ..b.step.clone()
    };
    let alike = one.thread == other.thread && same == a.step && a.streams == b.streams;
    let more = a.step.on_host - b.step.on_host;
    (alike && more > 0.1 && b.step.on_host > 0.0)
        .then(|| 1.0 / one.reported - 1.0 / other.reported)
        .filter(|s| *s > 0.0)
}

/// Squares of the logarithms of differences, each thread's pairs counted together.
fn pairs(points: &[&Point], figures: &SpeedFigures) -> f64 {
    let mut threads: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for one in points {
        for other in points {
            let Some(reported) = apart(one, other) else { continue };
            let (Asked::Decode(a), Asked::Decode(b)) = (&one.asked, &other.asked) else { continue };
            let predicted = 1.0 / a.tokens_per_second(figures) - 1.0 / b.tokens_per_second(figures);
            let error = (predicted.max(1e-9) / reported).ln().clamp(-1.0, 1.0);
            let sum = threads.entry(&one.thread).or_default();
            (sum.0, sum.1) = (sum.0 + error * error, sum.1 + 1.0);
        }
    }
    threads.values().map(|(sum, count)| PAIRS * sum / count).sum()
}

/// How much the pairs of a thread count: as one report of a thread.
const PAIRS: f64 = 1.0;

fn loss(points: &[&Point], values: &[(Start, f64)]) -> f64 {
    let figures = figures(values);
    let of = |point: &&Point| {
        let error = point.error(&figures).abs();
        point.weight * if error < 0.4 { error * error } else { 0.4 * (2.0 * error - 0.4) }
    };
    let prior: f64 = values.iter().map(|(start, value)| (value / start.2).ln().powi(2)).sum();
    points.iter().map(of).sum::<f64>() + pairs(points, &figures) + PRIOR * prior
}

/// Coordinate by coordinate, in steps that get smaller.
fn fit(points: &[&Point], mut values: Vec<(Start, f64)>, steps: &[f64]) -> Vec<(Start, f64)> {
    let mut best = loss(points, &values);
    for step in steps {
        for _ in 0..6 {
            let before = best;
            for index in 0..values.len() {
                let (start, value) = values[index];
                for factor in [*step, 1.0 / step] {
                    values[index].1 = (value * factor).clamp(start.3, start.4);
                    let found = loss(points, &values);
                    if found < best - 1e-9 {
                        best = found;
                        break;
                    }
                    values[index].1 = value;
                }
            }
            if before - best < 1e-7 {
                break;
            }
        }
    }
    values
}

/// The value below which this share of the weights lies.
fn quantile(mut errors: Vec<(f64, f64)>, share: f64) -> f64 {
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = errors.iter().map(|error| error.1).sum();
    let mut below = 0.0;
    for (error, weight) in &errors {
        below += weight;
        if below >= share * all {
            return *error;
        }
    }
    errors.last().map_or(0.0, |error| error.0)
}

fn main() -> ExitCode {
    let path =
        std::env::args().nth(1).unwrap_or_else(|| "../shared/reported/speeds.csv".to_owned());
    let Ok(text) = std::fs::read(&path) else {
        eprintln!("cannot read {path}");
        return ExitCode::from(2);
    };
    let mut reports = Reports::default();
    if let Err(error) = reports.add(&text, &path) {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    println!(
        "# Written by `cargo run --example fit_speeds -p hotset-planning -- speeds.csv`: do not edit."
    );
    let points = points(&reports);
    let mut printed: BTreeMap<&str, String> = BTreeMap::new();
    let mut ranges: Vec<Left> = Vec::new();
    for (starts, decoding) in [(&DECODE[..], true), (&PREFILL[..], false)] {
        let of: Vec<&Point> =
            points.iter().filter(|p| matches!(p.asked, Asked::Decode(_)) == decoding).collect();
        let first: Vec<(Start, f64)> = starts.iter().map(|start| (*start, start.2)).collect();
        let values = fit(&of, first.clone(), &[1.3, 1.15, 1.07, 1.03, 1.01]);
        let fitted = figures(&values);
        let mut threads: Vec<&str> = of.iter().map(|point| point.thread.as_str()).collect();
        threads.dedup();
        let mut spread: Vec<(f64, f64)> = values.iter().map(|v| (v.1, v.1)).collect();
        for thread in &threads {
            let rest: Vec<&Point> = of.iter().copied().filter(|p| p.thread != *thread).collect();
            let without = fit(&rest, first.clone(), &[1.3, 1.1, 1.03]);
            for (range, (_, value)) in spread.iter_mut().zip(&without) {
                *range = (range.0.min(*value), range.1.max(*value));
            }
            let without = figures(&without);
            for point in of.iter().copied().filter(|p| p.thread == *thread) {
                let (error, left_out) = (point.error(&fitted), point.error(&without));
                eprintln!(
                    "{thread} {} {} {:.1} {:+.3} {:+.3}",
                    point.kind, point.placement, point.reported, error, left_out
                );
                ranges.push((point.kind.clone(), point, error, left_out));
            }
        }
        let what = if decoding { "decode" } else { "prefill" };
        let source =
            format!("fitted to {} reports of {what} from {} threads", of.len(), threads.len());
        for (((kind, name, ..), value), (low, high)) in values.iter().zip(&spread) {
            let line = format!(
                "\"{name}\" = {{ value = {}, basis = \"calculated\", source = \"{source}; {} to {} as threads are left out\" }}\n",
                digits(*value),
                digits(*low),
                digits(*high)
            );
            printed.entry(kind).or_default().push_str(&line);
        }
    }
    let common = "\"gpu_share\" = { value = 0.85, basis = \"assumed\", source = \"assumption: one stream cannot tell it from layer_us\" }\n";
    printed.entry("ggml").or_default().push_str(common);
    let placements: BTreeSet<&str> = ranges.iter().map(|r| r.1.placement).collect();
    for placement in placements {
        let of: Vec<&Left> = ranges.iter().filter(|r| r.1.placement == placement).collect();
        for kind in ["ggml", "server", "ds4", "slots", "disk"] {
            let own: Vec<&Left> = of.iter().copied().filter(|r| r.0 == kind).collect();
            let threads: BTreeSet<&str> = own.iter().map(|r| r.1.thread.as_str()).collect();
            if own.len() >= LEAST_REPORTS && threads.len() >= LEAST_THREADS {
                let line = range(kind, placement, &own);
                printed.entry(kind).or_default().push_str(&line);
            } else if kind == "ggml" {
                // What stands in for kinds with few reports: all of them.
                let line = range("all", placement, &of);
                printed.entry(kind).or_default().push_str(&line);
            }
        }
    }
    for (kind, lines) in printed {
        print!("\n[{kind}]\n{lines}");
    }
    ExitCode::SUCCESS
}

/// A report with its kind, its error, and its error without its own thread.
type Left<'a> = (String, &'a Point, f64, f64);

/// Fewer reports, or of fewer threads, are put together with those of all kinds.
const LEAST_REPORTS: usize = 12;
const LEAST_THREADS: usize = 4;

/// The range of these reports, as a line of the file.
fn range(kind: &str, placement: &str, of: &[&Left]) -> String {
    let errors = of.iter().map(|r| (r.3.abs(), r.1.weight)).collect();
    let half = quantile(errors, 0.80).clamp(0.1, 1.5);
    let inside = of.iter().filter(|r| r.2.abs() <= half).count();
    let left_in = of.iter().filter(|r| r.3.abs() <= half).count();
    let median = |errors: Vec<f64>| quantile(errors.into_iter().map(|e| (e, 1.0)).collect(), 0.5);
    let fitted = median(of.iter().map(|r| r.2.abs()).collect());
    let left_out = median(of.iter().map(|r| r.3.abs()).collect());
    eprintln!(
        "{placement} {kind}: {} inside {inside} (left out {left_in}), median {fitted:.3}, left out {left_out:.3}, width {:.2}",
        of.len(),
        (2.0 * half).exp()
    );
    format!(
        "\"range.{placement}\" = {{ value = 1.0, basis = \"calculated\", source = \"where 80 of 100 reports lie that were predicted \
         without their own thread\", spread = {{ low = {}, high = {}, reports = {}, inside = {inside} }} }}\n",
        digits((-half).exp()),
        digits(half.exp()),
        of.len()
    )
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let places = (2 - value.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text } else { format!("{text}.0") }
}
