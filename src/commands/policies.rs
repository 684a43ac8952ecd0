//! `hotset policies [NAME]`.

use hotset::policies::miss::{MISS_HANDLERS, MissHandlerInfo};
use hotset::policies::predict::PrefetchControl;
use hotset::policies::predict::{PredictorInfo, PredictorNeed};
use hotset::policies::{
    ADMISSIONS, AdmissionInfo, Info, Need, NoNeeds, PLACEMENTS, POLICIES, Parameter, PlacementInfo,
    PolicyInfo, PolicySpec,
};
use hotset::reports::{Field, Output, Sheet};
use hotset::sim::predictors;
use serde::Serialize;

use crate::cli::PoliciesArgs;
use crate::commands::{wrap, wrap_to};
use crate::fault::{Ending, Fault};
use crate::output;

/// Lists policies and prefetchers, or defines one.
pub fn run(args: &PoliciesArgs) -> Result<Ending, Fault> {
    let output = match &args.name {
        Some(name) => named(name.trim())?,
        None => list()?,
    };
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}

/// A policy, an admission or a prefetcher; one that is both (`semantic`) is defined twice.
fn named(name: &str) -> Result<Output, Fault> {
    let of_kinds = [
        ("admission", ADMISSIONS),
        ("placed before the run", PLACEMENTS),
        ("miss handler", MISS_HANDLERS),
    ];
    let infos: Vec<(&'static str, &'static Info<NoNeeds>)> = of_kinds
        .into_iter()
        .flat_map(|(kind, infos)| infos.iter().map(move |&info| (kind, info)))
        .filter(|(_, info)| info.name == name)
        .collect();
    if !infos.is_empty() {
        return described(&infos);
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

const LISTED: &[Field<PolicyInfo>] = &[
    Field::left("policy", "policy", |info| info.name.into()),
    Field::left("what it does", "summary", |info| wrap_to(info.summary, 46).into()),
    Field::left("needs", "needs", |info| needs(info).into()),
];

const PREFETCHERS: &[Field<PredictorInfo>] = &[
    Field::left("prefetcher", "prefetcher", |info| info.name.into()),
    Field::left("what it predicts", "summary", |info| wrap_to(info.summary, 46).into()),
    Field::left("needs", "needs", |info| predictor_needs(info).into()),
];

fn list() -> Result<Output, Fault> {
    let sheet = Sheet::of("", LISTED, POLICIES.iter().copied());
    let mut prefetchers = Sheet::of("", PREFETCHERS, predictors());
    prefetchers.note = format!(
        "'hotset policies NAME' gives definition, parameters and source\n\
         admissions in front of any policy (--admit, or lru+NAME):\n{}\n\
         placed before the run (lru+pin:50%, lru+seeded):\n{}\n\
         what becomes of misses (--miss NAME):\n{}",
        names(ADMISSIONS),
        names(PLACEMENTS),
        names(MISS_HANDLERS)
    );
    #[derive(Serialize)]
    struct Listed {
        policies: &'static [&'static PolicyInfo],
        prefetchers: Vec<&'static PredictorInfo>,
        admissions: &'static [&'static AdmissionInfo],
        placements: &'static [&'static PlacementInfo],
        miss_handlers: &'static [&'static MissHandlerInfo],
    }
    let listed = Listed {
        policies: POLICIES,
        prefetchers: predictors().collect(),
        admissions: ADMISSIONS,
        placements: PLACEMENTS,
        miss_handlers: MISS_HANDLERS,
    };
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

fn names(infos: &[&Info<NoNeeds>]) -> String {
    let names: Vec<&str> = infos.iter().map(|info| info.name).collect();
    wrap_to(&names.join(" "), 78)
}

/// What is chosen by one name: one thing, or one of each kind.
fn described(infos: &[(&'static str, &'static Info<NoNeeds>)]) -> Result<Output, Fault> {
    let sheets = infos.iter().flat_map(|(kind, info)| of_kind(kind, info)).collect();
    match infos {
        [(_, info)] => Ok(Output::new(info, sheets)?),
        several => {
            let infos: Vec<&Info<NoNeeds>> = several.iter().map(|(_, info)| *info).collect();
            Ok(Output::new(&infos, sheets)?)
        }
    }
}

fn of_kind(kind: &'static str, info: &'static Info<NoNeeds>) -> Vec<Sheet> {
    let facts = vec![
        (kind, info.name.into()),
        ("what it does", info.summary.into()),
        ("definition", wrap(info.definition).into()),
        ("source", wrap(info.source).into()),
    ];
    let mut sheets = vec![Sheet::facts("", facts)];
    sheets.extend(parameters(info.parameters));
    sheets
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

const PARAMETERS: &[Field<Parameter>] = &[
    Field::left("parameter", "parameter", |parameter| parameter.name.into()),
    Field::left("default", "default", |parameter| parameter.default.into()),
    Field::left("meaning", "meaning", |parameter| wrap(parameter.meaning).into()),
];

fn parameters(parameters: &[Parameter]) -> Option<Sheet> {
    (!parameters.is_empty()).then(|| Sheet::of("", PARAMETERS, parameters))
}
