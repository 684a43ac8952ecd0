//! `hotset policies [NAME]`.

use hotset::policies::predict::PrefetchControl;
use hotset::policies::predict::{PredictorInfo, PredictorNeed};
use hotset::policies::{
    ADMISSIONS, AdmissionInfo, Need, POLICIES, Parameter, PolicyInfo, PolicySpec,
};
use hotset::reports::{Column, Output, Sheet};
use hotset::sim::predictors;
use serde::Serialize;

use crate::cli::PoliciesArgs;
use crate::commands::{wrap, wrap_to};
use crate::fault::{Fault, Verdict};
use crate::output;

/// Lists policies and prefetchers, or defines one.
pub fn run(args: &PoliciesArgs) -> Result<Verdict, Fault> {
    let output = match &args.name {
        Some(name) => named(name.trim())?,
        None => list()?,
    };
    output::give(&output, &args.output)?;
    Ok(Verdict::Passed)
}

/// A policy, an admission or a prefetcher; one that is both (`semantic`) is defined twice.
fn named(name: &str) -> Result<Output, Fault> {
    if let Some(info) = ADMISSIONS.iter().find(|info| info.name == name) {
        return admission(info);
    }
    let predictor = predictors().find(|info| info.name == name);
    match (name.parse::<PolicySpec>(), predictor) {
        (Ok(policy), None) => one(policy.info()),
        (Ok(policy), Some(info)) => {
            let sheets = [one(policy.info())?.sheets, prefetcher(info)?.sheets].concat();
            Ok(Output::new(&(policy.info(), info), sheets)?)
        }
        (Err(_), Some(info)) => prefetcher(info),
        (Err(unknown), None) => Err(unknown.into()),
    }
}

fn needs(info: &PolicyInfo) -> &'static str {
    match info.needs {
        Need::Nothing => "-",
        Need::Weights => "router weights",
        Need::Embeddings => "embeddings",
        Need::Future => "the future",
        Need::Training => "training part",
    }
}

fn list() -> Result<Output, Fault> {
    let mut sheet = Sheet::new(
        "",
        vec![
            Column::left("policy", "policy"),
            Column::left("what it does", "summary"),
            Column::left("needs", "needs"),
        ],
    );
    sheet.rows = POLICIES
        .iter()
        .map(|info| vec![info.name.into(), wrap_to(info.summary, 46).into(), needs(info).into()])
        .collect();
    let mut prefetchers = Sheet::new(
        "",
        vec![
            Column::left("prefetcher", "prefetcher"),
            Column::left("what it predicts", "summary"),
            Column::left("needs", "needs"),
        ],
    );
    prefetchers.rows = predictors()
        .map(|info| {
            vec![info.name.into(), wrap_to(info.summary, 46).into(), predictor_needs(info).into()]
        })
        .collect();
    let admissions: Vec<&str> = ADMISSIONS.iter().map(|info| info.name).collect();
    prefetchers.note = format!(
        "'hotset policies NAME' gives definition, parameters and source\n\
         admissions in front of any policy (--admit, or lru+NAME):\n{}",
        admissions.join(" ")
    );
    #[derive(Serialize)]
    struct Listed {
        policies: &'static [&'static PolicyInfo],
        prefetchers: Vec<&'static PredictorInfo>,
        admissions: &'static [&'static AdmissionInfo],
    }
    let listed =
        Listed { policies: POLICIES, prefetchers: predictors().collect(), admissions: ADMISSIONS };
    Ok(Output::new(&listed, vec![sheet, prefetchers])?)
}

fn predictor_needs(info: &PredictorInfo) -> &'static str {
    match info.needs {
        PredictorNeed::Nothing => "-",
        PredictorNeed::Weights => "router weights",
        PredictorNeed::Embeddings => "embeddings",
        PredictorNeed::Predictions => "predictions",
        PredictorNeed::Future => "the future",
    }
}

fn prefetcher(info: &PredictorInfo) -> Result<Output, Fault> {
    let facts = vec![
        ("prefetcher", info.name.into()),
        ("what it predicts", info.summary.into()),
        ("definition", wrap(info.definition).into()),
        ("source", wrap(info.source).into()),
        ("needs", predictor_needs(info).into()),
    ];
    let mut sheets = vec![Sheet::facts("", facts)];
    sheets.extend(parameters(info.parameters));
    if let Some(mut control) = parameters(&PrefetchControl::PARAMETERS) {
        control.title = "control of any prefetcher".to_owned();
        sheets.push(control);
    }
    Ok(Output::new(info, sheets)?)
}

fn admission(info: &AdmissionInfo) -> Result<Output, Fault> {
    let facts = vec![
        ("admission", info.name.into()),
        ("what it does", info.summary.into()),
        ("definition", wrap(info.definition).into()),
        ("source", wrap(info.source).into()),
    ];
    let mut sheets = vec![Sheet::facts("", facts)];
    sheets.extend(parameters(info.parameters));
    Ok(Output::new(info, sheets)?)
}

fn one(info: &PolicyInfo) -> Result<Output, Fault> {
    let facts = vec![
        ("policy", info.name.into()),
        ("what it does", info.summary.into()),
        ("definition", wrap(info.definition).into()),
        ("source", wrap(info.source).into()),
        ("needs", needs(info).into()),
    ];
    let mut sheets = vec![Sheet::facts("", facts)];
    sheets.extend(parameters(info.parameters));
    Ok(Output::new(info, sheets)?)
}

fn parameters(parameters: &[Parameter]) -> Option<Sheet> {
    if parameters.is_empty() {
        return None;
    }
    let mut sheet = Sheet::new(
        "",
        vec![
            Column::left("parameter", "parameter"),
            Column::left("default", "default"),
            Column::left("meaning", "meaning"),
        ],
    );
    sheet.rows = parameters
        .iter()
        .map(|parameter| {
            let meaning = wrap(parameter.meaning);
            vec![parameter.name.into(), parameter.default.into(), meaning.into()]
        })
        .collect();
    Some(sheet)
}
