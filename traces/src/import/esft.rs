//! ESFT's folder of `expert_weights_N.txt`, one file a layer: a line is a sample, the ids of all its
//! tokens with a tab between, two tabs, their weights likewise.
//!
//! How many ids a token has is nowhere in the files: the caller says.

use std::path::PathBuf;

use super::collect::{Collector, Precision};
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::{Input, Stream};
use super::layers::Numbering;
use super::lines::at_line;
use super::sniff::{Contents, Sniff};
use super::tables::layer_of;
use crate::error::{Error, Result};
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "esft",
    description: "ESFT's folder of expert_weights_<layer>.txt: the ids of a sample's tokens, two \
                  tabs, their weights (`ImportOptions::top_k`)",
    columns: &["ids", "positions", "weights"],
    extensions: &["txt"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::None,
    importer: Importer::Parts(import),
};

/// Layers that a folder may have: a file of each is open.
const MAX_LAYERS: usize = 512;

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Contents::Folder(names) = &sniff.contents else {
        return Claim::Sure
            .when(is_sample(sniff.first_line()) && layer_of(&sniff.name()).is_some());
    };
    let Some(name) = names.iter().find(|name| is_layer(name)) else { return Ok(Claim::No) };
    let path = sniff.path().join(name);
    let file = sniff.input.other(&path);
    let mut line = Vec::new();
    let first = file.stream().and_then(|mut stream| Ok(stream.line(&mut line)?.is_some()));
    let text = String::from_utf8_lossy(&line);
    Claim::Sure.when(first.unwrap_or(false) && is_sample(text.trim()))
}

/// Whether a line begins as a sample: whole numbers with tabs between, then weights or nothing.
fn is_sample(line: &str) -> bool {
    let (ids, weights) = line.split_once("\t\t").unwrap_or((line, ""));
    let mut ids = ids.split('\t').peekable();
    // The last may be cut where the line is long.
    let whole = |id: &str| id.parse::<u16>().is_ok();
    let first = ids.next().is_some_and(whole);
    first && ids.peek().is_some() && ids.all(whole) && (weights.is_empty() || weights.contains('.'))
}

fn is_layer(name: &str) -> bool {
    name.ends_with(".txt") && name.contains("expert") && layer_of(name).is_some()
}

/// The files by layer.
fn files(inputs: &[Input<'_>]) -> Result<Vec<(u32, PathBuf)>> {
    let mut all = Vec::new();
    for input in inputs {
        let folder = input.path();
        let mut add = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(found) = layer_of(&name) {
                all.push((found.layer, path));
            }
        };
        if !folder.is_dir() {
            add(folder.to_owned());
            continue;
        }
        let io = |e| Error::io("read the folder", folder, e);
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if is_layer(&name) {
                add(path);
            }
        }
    }
    all.sort();
    if let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let problem = format!("is layer {}, and so is {}", pair[1].0, pair[0].1.display());
        return Err(Error::import(&pair[1].1, "file", problem));
    }
    if all.is_empty() || all.len() > MAX_LAYERS {
        let problem =
            format!("{} files expert_weights_<layer>.txt; 1 to {MAX_LAYERS} are read", all.len());
        return Err(inputs[0].error("folder", problem));
    }
    Ok(all)
}

/// A layer's file, read a sample at a time.
struct Layer<'a> {
    input: Input<'a>,
    stream: Stream<'a>,
    line: Vec<u8>,
    ids: Vec<u16>,
    weights: Vec<f32>,
}

impl Layer<'_> {
    /// Reads the next sample, unless there is none.
    fn next(&mut self, number: u64) -> Result<bool> {
        let (input, ids, weights) = (self.input, &mut self.ids, &mut self.weights);
        ids.clear();
        weights.clear();
        let Some(text) = self.stream.line(&mut self.line)? else { return Ok(false) };
        let text =
            std::str::from_utf8(text).map_err(|_| at_line(&input, number, "not UTF-8 text"))?;
        let (left, right) = text.split_once("\t\t").unwrap_or((text, ""));
        let fault = |what: &str, field: &str| {
            let start: String = field.chars().take(20).collect();
            at_line(&input, number, format!("{start:?} is no {what}"))
        };
        for field in left.split('\t').filter(|field| !field.is_empty()) {
            ids.push(field.trim().parse().map_err(|_| fault("expert id", field))?);
        }
        for field in right.split('\t').filter(|field| !field.is_empty()) {
            weights.push(field.trim().parse().map_err(|_| fault("weight", field))?);
        }
        if !weights.is_empty() && weights.len() != ids.len() {
            let (w, n) = (weights.len(), ids.len());
            return Err(at_line(&input, number, format!("{w} weights for {n} ids")));
        }
        Ok(true)
    }
}

fn import(inputs: &[Input<'_>], into: &mut Collector<'_>) -> Result<()> {
    let files = files(inputs)?;
    let top_k = into.options.top_k.or(into.config.as_ref().and_then(|config| config.top_k));
    let mut layers = Vec::with_capacity(files.len());
    for (_, path) in &files {
        let input = inputs[0].other(path);
        let (line, ids, weights) = (Vec::new(), Vec::new(), Vec::new());
        layers.push(Layer { input, stream: input.stream()?, line, ids, weights });
    }
    let numbers: Vec<u32> = files.iter().map(|file| file.0).collect();
    let first = layers[0].input;
    let mut number = 0;
    while layers[0].next(number + 1)? {
        number += 1;
        let all = layers[0].ids.len();
        let Some(k) = top_k.filter(|&k| k > 0).map(|k| k as usize) else {
            let problem = format!(
                "{all} ids of all tokens of a sample, and nothing says how many a token has: give \
                 `ImportOptions::top_k`"
            );
            return Err(at_line(&first, number, problem));
        };
        if !all.is_multiple_of(k) {
            return Err(at_line(
                &first,
                number,
                format!("{all} ids are no whole tokens of top-{k}"),
            ));
        }
        for layer in &mut layers[1..] {
            if !layer.next(number)? || layer.ids.len() != all {
                let found = layer.ids.len();
                let problem = format!("{found} ids, the first layer has {all} in this sample");
                return Err(at_line(&layer.input, number, problem));
            }
        }
        if all > 0 {
            into.layers(&first, Numbering::Numbered(&numbers), &vec![k as u32; numbers.len()])?;
            sample(&first, &layers, k, into)?;
        }
    }
    for layer in &mut layers[1..] {
        if layer.next(number + 1)? && !layer.ids.is_empty() {
            let problem = format!("a sample that the first layer lacks: it has {number}");
            return Err(at_line(&layer.input, number + 1, problem));
        }
    }
    for layer in layers {
        into.read(layer.stream.source()?);
    }
    Ok(())
}

/// One sample of all layers, token by token.
fn sample(
    input: &Input<'_>,
    layers: &[Layer<'_>],
    k: usize,
    into: &mut Collector<'_>,
) -> Result<()> {
    into.sequence(input, None)?;
    let weighted = layers.iter().all(|layer| !layer.weights.is_empty());
    let tokens = layers[0].ids.len() / k;
    let (mut ids, mut weights) = (Vec::new(), Vec::new());
    for token in 0..tokens {
        ids.clear();
        weights.clear();
        let span = token * k..(token + 1) * k;
        for layer in layers {
            ids.extend_from_slice(&layer.ids[span.clone()]);
            if weighted {
                weights.extend_from_slice(&layer.weights[span.clone()]);
            }
        }
        into.ids(input, &ids)?;
        if weighted {
            into.weights(Precision::F32, &weights)?;
        }
    }
    if !weighted {
        into.no_weights("not all layers have them");
    }
    into.run(input, 0, tokens as u64, Phase::Decode)
}
