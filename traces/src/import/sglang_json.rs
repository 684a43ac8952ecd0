//! SGLang's replies with routed experts: raw little-endian i32 as base64, whose shape stands
//! nowhere in the reply: `--layers` and `--top-k` (or `--config`) give it. One JSON document after
//! another; `/generate` has the routes in `meta_info` (a list of replies where several were asked
//! for), the OpenAI-like endpoints those of the first choice in `sglext`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::array::{Place, top_ks};
use super::collect::Collector;
use super::documents::documents;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::Sniff;
use super::vllm::places;
use super::vllm_json::Known;
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "sglang-json",
    description: "SGLang's /generate replies with routed_experts; needs `ImportOptions::layers` \
                  and `ImportOptions::top_k`, or \
                  `ImportOptions::config`, for the replies do not say the shape",
    columns: &["ids", "positions", "phases"],
    extensions: &["json", "jsonl"],
    takes_prompt_tokens: true,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure
        .when(sniff.document_has_keys(&["meta_info"]) || sniff.document_has_keys(&["sglext"]))
}

#[derive(Deserialize)]
struct Lengths {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

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
    /// The OpenAI-like endpoints' lengths, of all choices together.
    usage: Option<Lengths>,
    #[serde(default)]
    choices: Vec<IgnoredAny>,
}

impl Reply {
    /// Its routes, and the lengths of the answer that they are of.
    fn into_parts(self) -> (Option<String>, Lengths) {
        let Self { meta_info, usage, choices } = self;
        let MetaInfo { routed_experts, prompt_tokens, completion_tokens } = meta_info;
        // Of several choices, usage counts all tokens together.
        match usage.filter(|_| choices.len() <= 1) {
            Some(usage) => (routed_experts, usage),
            None => (routed_experts, Lengths { prompt_tokens, completion_tokens }),
        }
    }
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let config = into.config.as_ref();
    let layers = into.options.layers.or(config.map(|config| config.layers));
    let top_k = into.options.top_k.or(config.and_then(|config| config.top_k));
    let (Some(layers), Some(top_k)) = (layers, top_k) else {
        let problem = "replies do not say it: give `ImportOptions::layers` (all hidden layers) \
                       and `ImportOptions::top_k`, or \
                       `ImportOptions::config` with the model's config.json";
        return Err(input.error("shape", problem));
    };
    let place = Place { path: input.path(), name: "routed_experts" };
    let top_ks = top_ks(place, layers as usize, top_k as usize)?;
    let row = layers as usize * top_k as usize;
    let mut stream = input.stream()?;
    let mut without = 0u64;
    for (index, reply) in documents::<Reply>(&mut stream).enumerate() {
        let refuse = |problem: String| input.error(format!("reply {index}"), problem);
        let (routed_experts, lengths) = reply.map_err(|e| refuse(e.to_string()))?.into_parts();
        let Lengths { prompt_tokens, completion_tokens } = lengths;
        let Some(text) = routed_experts else {
            without += 1;
            continue;
        };
        let bytes = STANDARD.decode(text).map_err(|e| refuse(format!("base64: {e}")))?;
        if bytes.is_empty() || bytes.len() % (4 * row) != 0 {
            let found = bytes.len() / 4;
            return Err(refuse(format!(
                "{found} ids are no whole tokens of {layers} layers x top-{top_k} = {row}: \
                 correct `ImportOptions::layers` and `ImportOptions::top_k`"
            )));
        }
        let rows = (bytes.len() / (4 * row)) as u64;
        let known = Known { prompt: prompt_tokens, generated: completion_tokens };
        if let (Some(prompt), Some(generated)) = (prompt_tokens, completion_tokens)
            && rows > u64::from(prompt) + u64::from(generated)
        {
            return Err(refuse(format!(
                "{rows} tokens of {layers} layers x top-{top_k}, yet the reply has {prompt} + \
                 {generated} tokens: correct `ImportOptions::layers` and `ImportOptions::top_k`"
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use crate::import::{ImportOptions, import_bytes};
    use crate::{Format, Phase, Trace};

    fn import(text: &Value) -> Trace {
        let options = ImportOptions { layers: Some(1), top_k: Some(1), ..ImportOptions::default() };
        import_bytes(Format::SglangJson, "a.json", text.to_string().as_bytes(), &options).unwrap()
    }

    /// So many tokens of one layer with top-1.
    fn routes(rows: i32) -> String {
        STANDARD.encode((1..=rows).flat_map(i32::to_le_bytes).collect::<Vec<u8>>())
    }

    fn prefill(trace: &Trace) -> Vec<usize> {
        let prefill = |&row: &usize| trace.phase(row) == Phase::Prefill;
        let sequences = trace.sequences().iter();
        sequences.map(|sequence| sequence.rows.clone().filter(prefill).count()).collect()
    }

    #[test]
    fn several_answers_come_as_a_list() {
        let reply = |prompt: i32| {
            json!({ "text": "x", "meta_info": {
                "prompt_tokens": prompt, "completion_tokens": 3, "routed_experts": routes(prompt + 2),
            } })
        };
        let trace = import(&json!([reply(2), reply(4)]));
        assert_eq!((trace.tokens(), prefill(&trace)), (10, vec![2, 4]));
    }

    #[test]
    fn the_lengths_of_chats_and_completions_are_in_usage() {
        let reply = |choices: usize, prompt: u32, completion: u32| {
            json!({
                "choices": vec![json!({ "index": 0 }); choices],
                "usage": { "prompt_tokens": prompt, "completion_tokens": completion },
                "sglext": { "routed_experts": routes(6) },
            })
        };
        assert_eq!(prefill(&import(&reply(1, 4, 3))), [4]);
        // Of two prompts or answers: whose tokens they are is not known.
        assert_eq!(prefill(&import(&reply(2, 8, 6))), [0]);
    }
}
