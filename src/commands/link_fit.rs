//! `hotset link fit`: measurements to a profile.

use std::path::Path;

use hotset::cost_models::fit::Errors;
use hotset::cost_models::{FitLabel, FittedProfile, Residual, fit_links, import_benchbw};
use hotset::reports::{Cell, Field, Output, Sheet};
use serde::Serialize;

use crate::cli::{FitArgs, MeasurementName};
use crate::fault::{Ending, Fault};
use crate::input::{MOST_MEASUREMENT_BYTES, read_bytes, read_text};
use crate::output::{self, OutputArgs};

/// Fits, writes the profile and gives the residuals.
pub fn run(args: &FitArgs) -> Result<Ending, Fault> {
    let from = args.from.unwrap_or(match args.input.extension() {
        Some(ending) if ending == "json" => MeasurementName::Benchbw,
        _ => MeasurementName::Csv,
    });
    let fitted = match from {
        MeasurementName::Csv => csv(args)?,
        MeasurementName::Benchbw => benchbw(args)?,
    };
    if let Some(path) = &args.output {
        output::write_whole(path, fitted.profile.to_toml()?.as_bytes())?;
    }
    let to = OutputArgs { format: args.format, output: None };
    output::give(&report(&fitted, args.output.as_deref())?, &to)?;
    Ok(Ending::Passed)
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
