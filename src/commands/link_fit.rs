//! `hotset link fit`: measurements to a profile.

use std::path::Path;

use hotset::cost_models::fit::Errors;
use hotset::cost_models::{
    FitLabel, FittedDisk, FittedProfile, RequestTime, Residual, fit_disk, fit_links, import_benchbw,
};
use hotset::reports::{Cell, Field, Output, Sheet};
use serde::Serialize;

use crate::cli::{FitArgs, MeasurementName};
use crate::fault::{Ending, Fault};
use crate::input::{MOST_MEASUREMENT_BYTES, read_bytes, read_text};
use crate::output::{self, OutputArgs};

/// Fits, writes the profile and gives the residuals.
pub fn run(args: &FitArgs) -> Result<Ending, Fault> {
    let is_json = args.input.extension().is_some_and(|ending| ending == "json");
    let from = match args.from {
        Some(from) => from,
        None if is_json => MeasurementName::Benchbw,
        None if reads_a_disk(args)? => MeasurementName::Disk,
        None => MeasurementName::Csv,
    };
    let fitted = match from {
        MeasurementName::Csv => csv(args)?,
        MeasurementName::Benchbw => benchbw(args)?,
        MeasurementName::Disk => return disk(args),
    };
    if let Some(path) = &args.output {
        output::write_whole(path, fitted.profile.to_toml()?.as_bytes())?;
    }
    let to = OutputArgs { format: args.format, output: None };
    output::give(&report(&fitted, args.output.as_deref())?, &to)?;
    Ok(Ending::Passed)
}

/// Whether the file's header has the column that only timings of a disk have.
fn reads_a_disk(args: &FitArgs) -> Result<bool, Fault> {
    let measurements = read_bytes(&args.input, MOST_MEASUREMENT_BYTES)?;
    let header = measurements.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let header = String::from_utf8_lossy(header);
    Ok(header.split(',').any(|column| column.trim() == "queue_depth"))
}

/// Fits a disk, writes its profile and says how well it fits.
fn disk(args: &FitArgs) -> Result<Ending, Fault> {
    let path = args.input.display().to_string();
    let measurements = read_bytes(&args.input, MOST_MEASUREMENT_BYTES)?;
    let name = args.name.as_deref().unwrap_or("disk");
    let mut source = args.source.clone().unwrap_or_else(|| path.clone());
    if let Some(date) = &args.date {
        source = format!("{source}, {date}");
    }
    let fitted = fit_disk(measurements.as_slice(), name, &source)
        .map_err(|reason| Fault::Fit { path, reason })?;
    if let Some(path) = &args.output {
        output::write_whole(path, fitted.disk.to_toml()?.as_bytes())?;
    }
    let to = OutputArgs { format: args.format, output: None };
    output::give(&disk_report(&fitted, args.output.as_deref())?, &to)?;
    Ok(Ending::Passed)
}

#[derive(Serialize)]
struct DiskReport<'a> {
    disk: &'a str,
    source: &'a str,
    latency_us: f64,
    queue_depth: u32,
    points: usize,
    median_error: f64,
    max_error: f64,
    warnings: &'a [String],
}

const DISK_RATES: &[Field<RequestTime>] = &[
    Field::right("request", "request_bytes", |of| Cell::Count(of.bytes)),
    Field::right("MB/s", "mb_per_s", |of| {
        Cell::Number(of.bytes as f64 / 1e6 / (of.ps as f64 * 1e-12), 1)
    }),
];

fn disk_report(fitted: &FittedDisk, written: Option<&Path>) -> Result<Output, Fault> {
    let disk = &fitted.disk;
    let json = DiskReport {
        disk: &disk.name,
        source: &disk.source,
        latency_us: disk.latency_ps as f64 / 1e6,
        queue_depth: disk.queue_depth,
        points: fitted.points,
        median_error: fitted.errors.median,
        max_error: fitted.errors.max,
        warnings: &fitted.warnings,
    };
    let facts = vec![
        ("disk", disk.name.as_str().into()),
        ("latency, us", Cell::Number(json.latency_us, 1)),
        ("requests in flight", Cell::Count(disk.queue_depth.into())),
        ("points", Cell::Count(fitted.points as u64)),
        ("error, %, median", percent(json.median_error)),
        ("error, %, max", percent(json.max_error)),
        ("source", super::wrap(&disk.source).into()),
        (
            "written to",
            written.map_or("nowhere: give -o DISK.toml".into(), |path| {
                path.display().to_string().into()
            }),
        ),
    ];
    let rates = Sheet::of("rates with all requests in flight", DISK_RATES, &disk.transfers);
    let mut output = Output::new(&json, vec![Sheet::facts("", facts), rates.clone()])?;
    output.flat = Some(rates);
    output.warnings.clone_from(&fitted.warnings);
    Ok(output)
}

fn csv(args: &FitArgs) -> Result<FittedProfile, Fault> {
    let path = args.input.display().to_string();
    let measurements = read_bytes(&args.input, MOST_MEASUREMENT_BYTES)?;
    let label = FitLabel {
        name: args.name.clone(),
        source: args.source.clone().unwrap_or_else(|| path.clone()),
        date: args.date.clone().unwrap_or_else(|| "undated".to_owned()),
    };
    fit_links(measurements.as_slice(), &label).map_err(|reason| Fault::Fit { path, reason })
}

fn benchbw(args: &FitArgs) -> Result<FittedProfile, Fault> {
    let path = args.input.display().to_string();
    let text = read_text(&args.input, MOST_MEASUREMENT_BYTES)?;
    let source = args.source.as_deref().unwrap_or(&path);
    let mut profile =
        import_benchbw(&text, source).map_err(|reason| Fault::Fit { path, reason })?;
    if let Some(name) = &args.name {
        let before = std::mem::replace(&mut profile.name, name.clone());
        for link in &mut profile.links {
            if let Some(rest) = link.name.strip_prefix(&before) {
                link.name = format!("{name}{rest}");
            }
        }
    }
    if let Some(date) = &args.date {
        profile.date.clone_from(date);
        profile.links.iter_mut().for_each(|link| link.date.clone_from(date));
    }
    let warnings = vec![
        "the calibration has rates alone: no fixed cost of a copy, and no kernels to price \
         compute with"
            .to_owned(),
    ];
    Ok(FittedProfile { profile, residuals: Vec::new(), warnings })
}

#[derive(Serialize)]
struct Report<'a> {
    machine: &'a str,
    source: &'a str,
    date: &'a str,
    links: Vec<&'a str>,
    memory_gb_s: Option<f64>,
    residuals: Vec<ResidualRow<'a>>,
    warnings: &'a [String],
}

/// Relative errors, 0.01 for one percent.
#[derive(Serialize)]
struct ResidualRow<'a> {
    link: &'a str,
    mode: &'a str,
    points: usize,
    median_error: f64,
    max_error: f64,
    left_out_median_error: Option<f64>,
    left_out_max_error: Option<f64>,
}

fn percent(error: f64) -> Cell {
    Cell::Number(error * 100.0, 2)
}

fn left_out(residual: &Residual, pick: fn(&Errors) -> f64) -> Cell {
    residual.left_out.as_ref().map_or(Cell::Empty, |errors| percent(pick(errors)))
}

const RESIDUALS: &[Field<Residual>] = &[
    Field::left("link", "link", |residual| residual.link.as_str().into()),
    Field::left("mode", "mode", |residual| residual.mode.as_str().into()),
    Field::right("points", "points", |residual| Cell::Count(residual.points as u64)),
    Field::right("median", "median_percent", |residual| percent(residual.at_points.median)),
    Field::right("max", "max_percent", |residual| percent(residual.at_points.max)),
    Field::right("left out\nmedian", "left_out_median_percent", |residual| {
        left_out(residual, |errors| errors.median)
    }),
    Field::right("left out\nmax", "left_out_max_percent", |residual| {
        left_out(residual, |errors| errors.max)
    }),
];

fn report(fitted: &FittedProfile, written: Option<&Path>) -> Result<Output, Fault> {
    let profile = &fitted.profile;
    let mut residuals = Sheet::of("errors of the fit, %", RESIDUALS, &fitted.residuals);
    residuals.note =
        "left out: each inner size predicted from its neighbours; docs/link-model.md".to_owned();
    let links: Vec<&str> = profile.links.iter().map(|link| link.name.as_str()).collect();
    let memory = profile.hbm.as_ref().map(|hbm| hbm.saturated_gb_s());
    let facts = vec![
        ("machine", profile.name.as_str().into()),
        ("links", super::wrap(&links.join(" ")).into()),
        ("its own memory, GB/s", Cell::number(memory, 0)),
        ("source", super::wrap(&profile.source).into()),
        ("date", profile.date.as_str().into()),
        (
            "written to",
            written.map_or("nowhere: give -o PROFILE.toml".into(), |path| {
                path.display().to_string().into()
            }),
        ),
    ];
    let json = Report {
        machine: &profile.name,
        source: &profile.source,
        date: &profile.date,
        links,
        memory_gb_s: memory,
        residuals: fitted
            .residuals
            .iter()
            .map(|residual| ResidualRow {
                link: &residual.link,
                mode: &residual.mode,
                points: residual.points,
                median_error: residual.at_points.median,
                max_error: residual.at_points.max,
                left_out_median_error: residual.left_out.map(|errors| errors.median),
                left_out_max_error: residual.left_out.map(|errors| errors.max),
            })
            .collect(),
        warnings: &fitted.warnings,
    };
    let mut sheets = vec![Sheet::facts("", facts)];
    if !fitted.residuals.is_empty() {
        sheets.push(residuals.clone());
    }
    let mut output = Output::new(&json, sheets)?;
    output.flat = Some(residuals);
    output.warnings.clone_from(&fitted.warnings);
    Ok(output)
}
