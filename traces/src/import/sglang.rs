//! SGLang's expert distribution recorder, mode `per_token`: one record a forward pass and rank.
//!
//! True steps are kept: tokens of one `forward_pass_id` ran together. Ids are physical and are
//! mapped to logical ones. No request has a name in these files, so rows are chained by position:
//! see [`super::sglang_chain`].

use std::collections::BTreeSet;

use serde_json::json;

use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::lines::Rows;
use super::pickle::Value;
use super::sglang_chain::{Chains, Mode, Pass};
use super::sniff::Sniff;
use super::torch::{Ints, Torch};
use crate::column::Column;
use crate::error::{Error, Result};

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "sglang",
    description: "SGLang's expert distribution recorder, mode per_token (.pt); the files of all \
                  ranks together",
    columns: &["ids", "positions", "phases", "steps", "token_ids"],
    extensions: &["pt"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Unpickler,
    importer: Importer::All(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Some(torch) = sniff.torch() else { return Ok(Claim::No) };
    let records = torch.list_of("records")?;
    let Some(record) = records.first().copied() else {
        return Err(sniff.input.error("records", "there are none"));
    };
    Claim::Sure.when(torch.pickle.get(record, "topk_ids_of_layer").is_some())
}

/// Experts that SGLang's recorder has room for in each layer.
const WIDTH: u32 = 8;

/// A record, found but not read.
struct Record {
    pass: i64,
    rank: i64,
    file: usize,
    value: Value,
}

fn import(inputs: &[Input<'_>], into: &mut Collector<'_>) -> Result<()> {
    let config = into.config.as_ref().and_then(|config| config.top_k);
    let asked = into.options.top_k.or(config);
    if let (Some(top_k), Some(first)) = (asked.filter(|&k| k > WIDTH), inputs.first()) {
        let problem = format!(
            "SGLang's recorder keeps {WIDTH} experts a layer, so routes of a model with top-k \
             {top_k} are not whole: record with --enable-return-routed-experts and import those \
             replies (sglang-json)"
        );
        return Err(first.error("top-k", problem));
    }
    let mut files = Vec::new();
    let mut records = Vec::new();
    for (file, input) in inputs.iter().enumerate() {
        let torch = Torch::open(input)?;
        for value in torch.list_of("records")? {
            let number = |key| torch.pickle.int(torch.pickle.get(value, key));
            let pass = number("forward_pass_id");
            let pass = pass.ok_or_else(|| input.error("records", "a record without a pass"))?;
            records.push(Record { pass, rank: number("rank").unwrap_or(0), file, value });
        }
        files.push(File::new(input, torch)?);
        into.read(input.source()?);
    }
    records.sort_by_key(|record| (record.pass, record.rank, record.file));

    let mut chains = Chains::new(into);
    let mut layout = None;
    let mut duplicates = 0u64;
    for (step, records) in records.chunk_by(|a, b| a.pass == b.pass).enumerate() {
        let mut before: Vec<Tokens> = Vec::new();
        for record in records {
            let file = &mut files[record.file];
            let tokens = file.tokens(record.value, &mut layout, asked)?;
            // Ranks of one tensor-parallel group record the same tokens; others their own.
            if before.contains(&tokens) {
                duplicates += 1;
                continue;
            }
            let pass = Pass {
                step: step as u32,
                rank: record.rank,
                mode: tokens.mode,
                extends: &tokens.extends,
                positions: &tokens.positions,
                token_ids: &tokens.token_ids,
                ids: &tokens.ids,
                row_len: tokens.row_len,
                padding: &tokens.padding,
            };
            chains.add(&file.input, &pass)?;
            before.push(tokens);
        }
    }
    let (Some(layout), Some(first)) = (layout, inputs.first()) else {
        let path = inputs.first().map(Input::path).unwrap_or(std::path::Path::new(""));
        return Err(Error::import(path, "records", "no forward pass is in it"));
    };
    let sequences = chains.finish();
    let Layout { numbers, top_k, .. } = &layout;
    into.layers(first, Numbering::Numbered(numbers), &vec![*top_k; numbers.len()])?;
    let experts = files.iter().filter_map(|file| file.experts).max();
    into.stated.experts = into.stated.experts.max(experts);
    if files.iter().any(|file| file.remapped) {
        into.note(
            "physical ids were mapped by the last map, the only one that SGLang keeps: tokens \
             before a rebalance may have other experts than they really had",
        );
    }
    if duplicates > 0 {
        into.facts.insert("ranks_with_the_same_tokens".to_owned(), json!(duplicates));
    }
    if sequences.ambiguous > 0 {
        into.note(format!(
            "{} decode tokens could belong to several requests at the same position: they were \
             given to them in the order of the batch",
            sequences.ambiguous
        ));
    }
    let ids: Column<u16> = sequences.ids.into_column()?;
    let row_len = numbers.len() * *top_k as usize;
    let mut row = vec![0u16; row_len];
    let mut rows = Rows::new(first, into);
    for sequence in &sequences.sequences {
        rows.sequence(None)?;
        for token in sequence {
            ids.copy_to(token.row as usize * row_len, &mut row)?;
            rows.push(&row, token.position, token.phase)?;
            rows.step(token.step);
            rows.token_id(token.token_id);
        }
    }
    rows.flush()
}

/// The layers that have routes, and their top-k.
struct Layout {
    layers: usize,
    numbers: Vec<u32>,
    top_k: u32,
}

/// An opened file with its map.
struct File<'a> {
    input: Input<'a>,
    torch: Torch<'a>,
    /// `[layer][physical]`.
    map: Option<Ints<u16>>,
    experts: Option<u32>,
    remapped: bool,
}

/// The tokens of a record.
#[derive(PartialEq)]
struct Tokens {
    mode: Mode,
    extends: Vec<i32>,
    positions: Vec<i32>,
    token_ids: Vec<i32>,
    /// `[token][routed layer][rank]`.
    ids: Vec<u16>,
    row_len: usize,
    /// Tokens that are only there to fill a batch.
    padding: BTreeSet<usize>,
}

impl<'a> File<'a> {
    fn new(input: &Input<'a>, mut torch: Torch<'a>) -> Result<Self> {
        let place = "last_physical_to_logical_map";
        let map = torch.pickle.get(torch.pickle.root(), place);
        let map: Option<Ints<u16>> = match map {
            Some(Value::None) | None => None,
            Some(map) => Some(torch.ints(map, place)?),
        };
        if map.as_ref().is_some_and(|map| map.shape.len() != 2 || map.shape[1] == 0) {
            return Err(input.error(place, "expected [layers, physical experts]"));
        }
        let experts = map.as_ref().and_then(|map| map.values.iter().max());
        let experts = experts.map(|&highest| u32::from(highest) + 1);
        let remapped = map.as_ref().is_some_and(|map| {
            let rows = map.values.chunks_exact(map.shape[1]);
            rows.into_iter().any(|row| row.iter().zip(0..).any(|(&id, place)| id != place))
        });
        Ok(Self { input: *input, torch, map, experts, remapped })
    }

    fn tokens(
        &mut self,
        record: Value,
        layout: &mut Option<Layout>,
        asked: Option<u32>,
    ) -> Result<Tokens> {
        let pickle = &self.torch.pickle;
        let input = self.input;
        let refuse = |problem: String| input.error("records", problem);
        let list = |key: &str| {
            let list = pickle.get(record, key).and_then(|list| pickle.ints(list));
            list.map(<[i32]>::to_vec).ok_or_else(|| refuse(format!("{key} is no list of numbers")))
        };
        let (positions, token_ids) = (list("positions")?, list("input_ids")?);
        let extends = match pickle.get(record, "extend_seq_lens") {
            Some(Value::None) | None => Vec::new(),
            Some(_) => list("extend_seq_lens")?,
        };
        let mode = Mode::new(pickle.int(pickle.get(record, "forward_mode")))
            .map_err(|problem| refuse(problem.to_owned()))?;
        let tensor = pickle.get(record, "topk_ids_of_layer").ok_or_else(|| {
            refuse("no topk_ids_of_layer: mode per_pass has counts only, a histogram".to_owned())
        })?;
        let raw: Ints<i32> = self.torch.ints(tensor, "topk_ids_of_layer")?;
        let [layers, tokens, width] = raw.shape[..] else {
            let shape = &raw.shape;
            return Err(refuse(format!("topk_ids_of_layer is {shape:?}, not [layers, tokens, 8]")));
        };
        if layers > 1 << 16 || width == 0 {
            return Err(refuse(format!("topk_ids_of_layer has {layers} layers of {width} ids")));
        }
        if positions.len() != token_ids.len() || positions.len() > tokens {
            let (positions, ids) = (positions.len(), token_ids.len());
            return Err(refuse(format!("{positions} positions, {ids} token ids, {tokens} routes")));
        }
        let cell =
            |layer: usize, token: usize| &raw.values[(layer * tokens + token) * width..][..width];
        if layout.is_none() && tokens > 0 {
            *layout = Some(find_layout(layers, tokens, asked, cell).map_err(refuse)?);
        }
        let mut found = Tokens {
            mode,
            extends,
            ids: Vec::new(),
            row_len: 0,
            padding: BTreeSet::new(),
            positions,
            token_ids,
        };
        let Some(layout) = layout.as_ref().filter(|_| tokens > 0) else { return Ok(found) };
        if layers != layout.layers {
            let before = layout.layers;
            return Err(refuse(format!("{layers} layers, {before} in the passes before it")));
        }
        let k = layout.top_k as usize;
        found.row_len = layout.numbers.len() * k;
        if k > width {
            return Err(refuse(format!("width {width}, top-k {k} in the passes before it")));
        }
        for token in 0..found.positions.len() {
            if (0..layers).all(|layer| cell(layer, token).iter().all(|&id| id < 0)) {
                found.padding.insert(token);
            }
            for layer in 0..layers {
                let cell = cell(layer, token);
                let routed = layout.numbers.binary_search(&(layer as u32)).is_ok();
                let there = cell.iter().filter(|&&id| id >= 0).count();
                let padded = found.padding.contains(&token);
                if !padded && there != if routed { k } else { 0 } {
                    let position = found.positions[token];
                    return Err(refuse(format!(
                        "{there} experts at position {position} in layer {layer}, expected {}",
                        if routed { k } else { 0 }
                    )));
                }
                if routed {
                    for &physical in &cell[..k] {
                        found.ids.push(self.logical(layer, physical.max(0))?);
                    }
                }
            }
        }
        Ok(found)
    }

    fn logical(&self, layer: usize, physical: i32) -> Result<u16> {
        let logical = match &self.map {
            None => u16::try_from(physical).ok(),
            Some(map) => {
                let place = usize::try_from(physical).ok().filter(|&place| place < map.shape[1]);
                place.and_then(|place| map.values.get(layer * map.shape[1] + place)).copied()
            }
        };
        logical.ok_or_else(|| {
            let problem = format!("physical expert {physical} of layer {layer} is not in the map");
            self.input.error("topk_ids_of_layer", problem)
        })
    }
}

/// Layers with routes, and how many: from the first tokens that are no padding.
fn find_layout<'a>(
    layers: usize,
    tokens: usize,
    asked: Option<u32>,
    cell: impl Fn(usize, usize) -> &'a [i32],
) -> Result<Layout, String> {
    let there =
        |layer: usize, token: usize| cell(layer, token).iter().filter(|&&id| id >= 0).count();
    let routed = |layer: usize| (0..tokens).any(|token| there(layer, token) > 0);
    let numbers: Vec<u32> = (0..layers).filter(|&l| routed(l)).map(|layer| layer as u32).collect();
    let Some(&first) = numbers.first() else {
        return Err("the first pass has no routes at all".to_owned());
    };
    let top_k = (0..tokens).map(|token| there(first as usize, token)).max().unwrap_or(0) as u32;
    if let Some(asked) = asked.filter(|&asked| asked != top_k) {
        return Err(format!(
            "`ImportOptions::top_k` or `ImportOptions::config` says {asked}, the file has \
             {top_k}: give `ImportOptions::top_k` {top_k}, or \
             leave it out"
        ));
    }
    Ok(Layout { layers, numbers, top_k })
}
