//! Dynamo's replies: `nvext.engine_data.routed_experts`, base64 of raw ids with `shape`, `dtype` and
//! `start` beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::array::{Place, top_ks};
use super::collect::Collector;
use super::documents::documents;
use super::element::Element;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::Sniff;
use super::vllm::{Prompt, places};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "dynamo",
    description: "Dynamo's replies with nvext.engine_data.routed_experts: base64 with its shape",
    columns: &["ids", "positions", "phases"],
    extensions: &["json", "jsonl"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.document_has_keys(&["nvext", "engine_data"]))
}

#[derive(Deserialize)]
struct Reply {
    model: Option<String>,
    usage: Option<Usage>,
    nvext: Option<Extension>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Extension {
    engine_data: Option<EngineData>,
}

#[derive(Deserialize)]
struct EngineData {
    routed_experts: Option<Routes>,
}

#[derive(Deserialize)]
struct Routes {
    data: String,
    shape: Vec<usize>,
    #[serde(default)]
    start: u32,
    dtype: String,
}

/// The type of that name, as NumPy spells it out.
fn element(name: &str) -> Option<Element> {
    Some(match name.trim_start_matches("torch.") {
        "uint8" => Element::U8,
        "int8" => Element::I8,
        "uint16" => Element::U16,
        "int16" => Element::I16,
        "uint32" => Element::U32,
        "int32" => Element::I32,
        "int64" => Element::I64,
        _ => return None,
    })
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut without = 0u64;
    for (index, reply) in documents::<Reply>(&mut stream).enumerate() {
        let refuse = |problem: String| input.error(format!("reply {index}"), problem);
        let reply = reply.map_err(|e| refuse(e.to_string()))?;
        let routes = reply.nvext.and_then(|extension| extension.engine_data);
        let Some(routes) = routes.and_then(|data| data.routed_experts) else {
            without += 1;
            continue;
        };
        into.stated.name = into.stated.name.take().or(reply.model);
        let tokens = reply.usage.and_then(|usage| usage.prompt_tokens);
        add(input, &routes, tokens, &refuse, into)?;
    }
    if without > 0 {
        into.note(format!("{without} replies are left out: they have no routed_experts"));
    }
    into.read(stream.source()?);
    Ok(())
}

fn add(
    input: &Input<'_>,
    routes: &Routes,
    prompt: Option<u32>,
    refuse: &dyn Fn(String) -> crate::Error,
    into: &mut Collector<'_>,
) -> Result<()> {
    let [tokens, layers, top_k] = routes.shape[..] else {
        let shape = &routes.shape;
        return Err(refuse(format!("shape {shape:?}, expected [tokens, layers, top-k]")));
    };
    let element = element(&routes.dtype)
        .ok_or_else(|| refuse(format!("ids of type {:?}; whole numbers are read", routes.dtype)))?;
    let bytes = STANDARD.decode(&routes.data).map_err(|e| refuse(format!("base64: {e}")))?;
    let place = Place { path: input.path(), name: "routed_experts" };
    let top_ks = top_ks(place, layers, top_k)?;
    let row = layers * top_k * element.size();
    if tokens.checked_mul(row) != Some(bytes.len()) {
        let (shape, found) = (&routes.shape, bytes.len());
        let dtype = &routes.dtype;
        return Err(refuse(format!("shape {shape:?} of {dtype} does not fit its {found} bytes")));
    }
    into.layers(input, Numbering::Hidden, &top_ks)?;
    into.sequence(input, None)?;
    let mut ids: Vec<i64> = Vec::new();
    for block in bytes.chunks(row * ((1 << 18) / row).max(1)) {
        ids.clear();
        ids.extend(block.chunks_exact(element.size()).map(|id| element.value(id, false) as i64));
        into.ids(input, &ids)?;
    }
    // A prompt's last token may be the only one of it that routes were asked for.
    let known =
        prompt.filter(|&prompt| u64::from(prompt) <= u64::from(routes.start) + tokens as u64);
    places(input, tokens as u64, Prompt { tokens: known, start: routes.start }, into)
}
