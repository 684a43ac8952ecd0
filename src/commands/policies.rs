//! `hotset policies [NAME]`.

use hotset::policies::{
    ADMISSIONS, AdmissionInfo, Need, POLICIES, Parameter, PolicyInfo, PolicySpec,
};
use hotset::reports::{Column, Output, Sheet};

use crate::cli::PoliciesArgs;
use crate::commands::wrap;
use crate::fault::{Fault, Verdict};
use crate::output;

/// Lists the policies, or defines one.
pub fn run(args: &PoliciesArgs) -> Result<Verdict, Fault> {
    let output = match &args.name {
        Some(name) => match ADMISSIONS.iter().find(|info| info.name == name.trim()) {
            Some(info) => admission(info)?,
            None => one(name.parse::<PolicySpec>()?.info())?,
        },
        None => list()?,
    };
    output::give(&output, &args.output)?;
    Ok(Verdict::Passed)
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
        .map(|info| vec![info.name.into(), info.summary.into(), needs(info).into()])
        .collect();
    let admissions: Vec<&str> = ADMISSIONS.iter().map(|info| info.name).collect();
    sheet.note = format!(
        "'hotset policies NAME' gives definition, parameters and source\n\
         admission in front of any (--admit, or lru+NAME): {}",
        admissions.join(" ")
    );
    Ok(Output::new(&POLICIES, vec![sheet])?)
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
