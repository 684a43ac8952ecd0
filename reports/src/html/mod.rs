//! An output as one HTML file: nothing is loaded from anywhere, so that it can be sent and kept.
//!
//! Texts out of files are escaped in markup, and stand in the rows' JSON without a `<`: nothing of
//! them is ever markup or script.

mod data;
mod definitions;
mod facts;
mod table;
mod text;

use crate::{Output, RenderError, Sheet};

pub(crate) use text::escape;
use text::lines;

const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const D3: &str = include_str!("../../assets/vendor/d3.min.js");
const PLOT: &str = include_str!("../../assets/vendor/plot.min.js");
const LICENCES: [(&str, &str); 2] = [
    ("D3 7.9.2", include_str!("../../assets/vendor/LICENSE-d3")),
    ("Observable Plot 0.6.17", include_str!("../../assets/vendor/LICENSE-plot")),
];

/// What a page may do: nothing but what stands in it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The whole file.
pub(crate) fn render(output: &Output) -> Result<String, RenderError> {
    let title = title(output);
    let mut page = String::with_capacity(STYLE.len() + SCRIPT.len() + D3.len() + PLOT.len());
    page.push_str(&format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    ));
    top(&mut page, output);
    page.push_str("<div id=\"switches\" class=\"switches\"></div>\n<div id=\"figures\" class=\"figures\"></div>\n");
    tables(&mut page, output);
    bottom(&mut page, output);
    page.push_str("</main>\n<script type=\"application/json\" id=\"page-data\">");
    page.push_str(&data::json(output.page.as_ref())?);
    page.push_str("</script>\n");
    for script in [D3, PLOT, SCRIPT] {
        page.push_str("<script>\n");
        page.push_str(script);
        page.push_str("</script>\n");
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// In markup already.
fn title(output: &Output) -> String {
    let first = || output.sheets.iter().find_map(|sheet| sheet.title.lines().next());
    let title = output.page.as_ref().map(|page| page.title.as_str()).or_else(first);
    escape(title.filter(|title| !title.is_empty()).unwrap_or("hotset"))
}

/// What is to be known before the pictures: the answer, what made it, what to beware of.
fn top(page: &mut String, output: &Output) {
    if let Some(verdict) = output.page.as_ref().map(|page| &page.verdict)
        && !verdict.is_empty()
    {
        page.push_str(&format!("<p class=\"verdict\" id=\"verdict\">{}</p>\n", escape(verdict)));
    }
    if let Some(command) = &output.command {
        page.push_str(&format!("<pre id=\"command\">{}</pre>\n", escape(command)));
    }
    if !output.warnings.is_empty() {
        page.push_str("<div class=\"warnings\"><ul>\n");
        for warning in &output.warnings {
            page.push_str(&format!("<li>{}</li>\n", lines(warning)));
        }
        page.push_str("</ul></div>\n");
    }
    page.push_str("<noscript><p>Pictures and the long table need JavaScript, which stands in this file.</p></noscript>\n");
}

fn tables(page: &mut String, output: &Output) {
    let own = output.page.as_ref();
    for data in own.iter().flat_map(|page| &page.data).filter(|data| data.shown) {
        table::filled_by_script(page, data);
    }
    let sheets: &[Sheet] = match own.and_then(|page| page.sheets.as_ref()) {
        Some(sheets) => sheets,
        None => output.wide.as_ref().unwrap_or(&output.sheets),
    };
    sheets.iter().for_each(|sheet| table::of_sheet(page, sheet));
}

/// Settings, definitions and licences.
fn bottom(page: &mut String, output: &Output) {
    let facts = facts::of(&output.json);
    if !facts.is_empty() {
        page.push_str("<details open id=\"settings\"><summary>Settings</summary>\n<dl>\n");
        for (name, value) in facts {
            page.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(&name), escape(&value)));
        }
        page.push_str("</dl></details>\n");
    }
    page.push_str("<details open id=\"definitions\"><summary>Definitions</summary>\n<dl>\n");
    for (name, definition) in used_definitions(output) {
        page.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(&name), escape(definition)));
    }
    page.push_str(
        "</dl></details>\n<details><summary>Licences of what draws the charts</summary>\n",
    );
    for (name, licence) in LICENCES {
        page.push_str(&format!("<p>{name}</p><pre>{}</pre>\n", escape(licence)));
    }
    page.push_str(&format!(
        "</details>\n<footer>hotset {}, schema {}. Everything stands in this file; nothing is loaded.</footer>\n",
        env!("CARGO_PKG_VERSION"),
        hotset_sim::SCHEMA
    ));
}

/// Of the columns that are shown, each once, in their order.
fn used_definitions(output: &Output) -> Vec<(String, &'static str)> {
    let own = output.page.as_ref();
    let of_data = own.iter().flat_map(|page| &page.data).map(|data| &data.sheet);
    let of_page = own.and_then(|page| page.sheets.as_ref()).unwrap_or(&output.sheets);
    let mut used: Vec<(String, &'static str)> = Vec::new();
    for column in of_data.chain(of_page).flat_map(|sheet| &sheet.columns) {
        let Some(definition) = definitions::of(&column.name) else { continue };
        let heading = table::heading(column);
        if !used.iter().any(|(_, known)| *known == definition) {
            used.push((heading, definition));
        }
    }
    used
}
