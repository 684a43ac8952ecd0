//! `hotset policies [NAME]`.

use hotset::policies::{Need, POLICIES, PolicyInfo, PolicySpec};
use hotset::reports::{Column, Output, Sheet};

use crate::cli::PoliciesArgs;
use crate::fault::{Fault, Verdict};
use crate::output;

/// Lists the policies, or defines one.
pub fn run(args: &PoliciesArgs) -> Result<Verdict, Fault> {
    let output = match &args.name {
        Some(name) => one(name.parse::<PolicySpec>()?.info())?,
        None => list()?,
    };
    output::give(&output, &args.output)?;
    Ok(Verdict::Passed)
}

fn needs(info: &PolicyInfo) -> &'static str {
    match info.needs {
        Need::Nothing => "-",
        Need::Weights => "router weights",
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
    sheet.note = "'hotset policies NAME' gives definition, parameters and source".to_owned();
    Ok(Output::new(&POLICIES, vec![sheet])?)
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
    if !info.parameters.is_empty() {
        let mut sheet = Sheet::new(
            "",
            vec![
                Column::left("parameter", "parameter"),
                Column::left("default", "default"),
                Column::left("meaning", "meaning"),
            ],
        );
        sheet.rows = info
            .parameters
            .iter()
            .map(|parameter| {
                let meaning = wrap(parameter.meaning);
                vec![parameter.name.into(), parameter.default.into(), meaning.into()]
            })
            .collect();
        sheets.push(sheet);
    }
    Ok(Output::new(info, sheets)?)
}

/// Breaks a text into lines that leave the table within 80 columns.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= 50 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
