//! moe-policylang's recorder: a header line `{"model_name", "num_layers", "num_experts", "top_k",
//! ...}`, then `{"p": prompt, "t": token, "l": layer, "e": [ids], "s": [scores]}` for each token
//! and layer, with `"ph"` (the phase) where its version records it. The full distribution (`"sm"`)
//! and what its audits want are not kept.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line};
use super::llama_csv::Grid;
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "policylang",
    description: "moe-policylang: a header line, then {\"p\",\"t\",\"l\",\"e\",\"s\"} for each \
                  token and layer",
    columns: &["ids", "positions", "phases", "weights"],
    extensions: &["jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let cell = sniff.has_keys(&["l", "t", "e", "p"]);
    let header = sniff.has_keys(&["model_name", "num_layers"]);
    // A line with objects in it is a document of its own.
    Claim::Sure.when(cell || (header && !sniff.first_line().contains("[{")))
}

#[derive(Deserialize)]
struct Header {
    model_name: String,
    num_experts: Option<u32>,
    top_k: Option<u32>,
}

#[derive(Deserialize)]
struct Cell<'a> {
    #[serde(default)]
    p: u32,
    t: i64,
    l: u32,
    e: Vec<u16>,
    #[serde(default)]
    s: Option<Vec<f32>>,
    #[serde(default, borrow)]
    ph: Option<Cow<'a, str>>,
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut grid = Grid::default();
    let (mut prompt, mut stated_k, mut phases) = (None, None, true);
    let source = each_line(input, |line, text| {
        let refuse = |problem: String| at_line(input, line, problem);
        if line == 1
            && let Ok(header) = serde_json::from_slice::<Header>(text)
        {
            let into = rows.collector();
            into.stated.experts = into.stated.experts.max(header.num_experts);
            into.stated.name = into.stated.name.take().or(Some(header.model_name));
            stated_k = header.top_k;
            return Ok(());
        }
        let cell: Cell<'_> = serde_json::from_slice(text).map_err(|e| refuse(e.to_string()))?;
        if let Some(stated) = stated_k.filter(|&stated| stated as usize != cell.e.len()) {
            let found = cell.e.len();
            return Err(refuse(format!("{found} experts, the header says top-k {stated}")));
        }
        let phase = match cell.ph.as_deref() {
            Some("prefill") => Phase::Prefill,
            Some("decode") => Phase::Decode,
            Some(other) => return Err(refuse(format!("phase {other:?}"))),
            None => Phase::Decode,
        };
        phases &= cell.ph.is_some();
        if prompt.replace(cell.p) != Some(cell.p) {
            grid.request(input, &mut rows, cell.p)?;
        }
        let weights = cell.s.unwrap_or_default();
        grid.add(input, line, &mut rows, phase, cell.t, cell.l, &cell.e, &weights)
    })?;
    grid.finish(input, &mut rows)?;
    into.read(source);
    if !phases {
        into.note("the phase is not recorded: all tokens are taken as decode tokens");
    }
    into.facts.insert("weights".to_owned(), json!("router scores as recorded"));
    Ok(())
}
