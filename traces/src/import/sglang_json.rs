//! SGLang's replies with routed experts: raw little-endian i32 as base64, whose shape stands
//! nowhere in the reply: `--layers` and `--top-k` (or `--config`) give it. One reply a line;
//! `/generate` has them in `meta_info`, the OpenAI-like endpoints in `sglext`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::array::{Place, top_ks};
use super::collect::Collector;
use super::input::Input;
use super::layers::Numbering;
use super::vllm::places;
use super::vllm_json::Known;
use super::{Format, FormatInfo, Importer};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "sglang-json",
    description: "SGLang's /generate replies with routed_experts; needs --layers and --top-k, or \
                  --config, for the replies do not say the shape",
    columns: &["ids", "positions", "phases"],
    extensions: &["json", "jsonl"],
    format: Format::SglangJson,
    importer: Importer::Each(import),
};

#[derive(Deserialize)]
struct MetaInfo {
    routed_experts: Option<String>,
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(alias = "sglext")]
    meta_info: MetaInfo,
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let config = into.config.as_ref();
    let layers = into.options.layers.or(config.map(|config| config.layers));
    let top_k = into.options.top_k.or(config.and_then(|config| config.top_k));
    let (Some(layers), Some(top_k)) = (layers, top_k) else {
        let problem = "replies do not say it: give --layers (all hidden layers) and --top-k, or \
                       --config with the model's config.json";
        return Err(input.error("shape", problem));
    };
    let place = Place { path: input.path(), name: "routed_experts" };
    let top_ks = top_ks(place, layers as usize, top_k as usize)?;
    let row = layers as usize * top_k as usize;
    let mut stream = input.stream()?;
    let mut without = 0u64;
    let replies = serde_json::Deserializer::from_reader(&mut stream).into_iter::<Reply>();
    for (index, reply) in replies.enumerate() {
        let refuse = |problem: String| input.error(format!("reply {index}"), problem);
        let MetaInfo { routed_experts, prompt_tokens, completion_tokens } =
            reply.map_err(|e| refuse(e.to_string()))?.meta_info;
        let Some(text) = routed_experts else {
            without += 1;
            continue;
        };
        let bytes = STANDARD.decode(text).map_err(|e| refuse(format!("base64: {e}")))?;
        if bytes.is_empty() || bytes.len() % (4 * row) != 0 {
            let found = bytes.len() / 4;
            return Err(refuse(format!(
                "{found} ids are no whole tokens of {layers} layers x top-{top_k} = {row}: \
                 correct --layers and --top-k"
            )));
        }
        let rows = (bytes.len() / (4 * row)) as u64;
        let known = Known { prompt: prompt_tokens, generated: completion_tokens };
        if let (Some(prompt), Some(generated)) = (prompt_tokens, completion_tokens)
            && rows > u64::from(prompt) + u64::from(generated)
        {
            return Err(refuse(format!(
                "{rows} tokens of {layers} layers x top-{top_k}, yet the reply has {prompt} + \
                 {generated} tokens: correct --layers and --top-k"
            )));
        }
        into.layers(input, Numbering::Hidden, &top_ks)?;
        let prompt = known.of(rows, into.sequences(), into);
        into.sequence(input, None)?;
        // A little at a time, so that a long reply is not in memory twice.
        for block in bytes.chunks(4 * row * (1usize << 14).div_ceil(row)) {
            into.ids::<i32>(input, &bytemuck::pod_collect_to_vec(block))?;
        }
        places(input, rows, prompt, into)?;
    }
    if without > 0 {
        into.note(format!("{without} replies are left out: they have no routed_experts"));
    }
    into.read(stream.source()?);
    Ok(())
}
