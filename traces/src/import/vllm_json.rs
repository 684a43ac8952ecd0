//! vLLM's HTTP replies with `routed_experts`, one JSON document after another.
//!
//! From 0.22 on each choice has a whole `.npy` as base64; 0.21 had nested lists, the prompt's at
//! the top (`prompt_routed_experts`) and the generated tokens' in each choice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use super::array::{Place, top_ks};
use super::arrays::in_memory;
use super::collect::Collector;
use super::input::Input;
use super::layers::Numbering;
use super::nested::IdRows;
use super::vllm::{Prompt, add, places};
use super::{Format, FormatInfo, Importer};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "vllm-json",
    description: "vLLM's HTTP replies with routed_experts: base64 (0.22 and later) or nested \
                  lists (0.21)",
    columns: &["ids", "positions", "phases"],
    extensions: &["json", "jsonl"],
    format: Format::VllmJson,
    importer: Importer::Each(import),
};

/// How many entries a list has.
#[derive(Debug, Clone, Copy)]
struct Count(u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counted;
        impl<'de> Visitor<'de> for Counted {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of token ids")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Count, A::Error> {
                let mut count = 0u32;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    count = count.saturating_add(1);
                }
                Ok(Count(count))
            }
        }
        deserializer.deserialize_seq(Counted)
    }
}

/// Routes, in either form.
#[derive(Debug, Default)]
enum Routes {
    #[default]
    None,
    /// A whole `.npy` file.
    Npy(Vec<u8>),
    Lists {
        ids: Vec<u16>,
        rows: u32,
        layers: u32,
        top_k: u32,
    },
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Routes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("base64 or nested lists of expert ids")
            }

            fn visit_unit<E>(self) -> Result<Routes, E> {
                Ok(Routes::None)
            }

            fn visit_none<E>(self) -> Result<Routes, E> {
                Ok(Routes::None)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Routes, E> {
                let bytes = STANDARD.decode(text.as_bytes());
                bytes.map(Routes::Npy).map_err(|e| E::custom(format!("base64: {e}")))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Routes, A::Error> {
                let mut ids = Vec::new();
                let (rows, layers, top_k) = IdRows(&mut ids).visit_seq(seq)?;
                Ok(Routes::Lists { ids, rows, layers, top_k })
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    routed_experts: Routes,
    token_ids: Option<Count>,
    prompt_token_ids: Option<Count>,
}

/// The most choices that a reply may have; each takes memory of its own.
const MAX_CHOICES: usize = 1 << 14;

#[derive(Deserialize)]
struct Reply {
    model: Option<String>,
    usage: Option<Usage>,
    prompt_token_ids: Option<Count>,
    #[serde(default)]
    prompt_routed_experts: Routes,
    #[serde(deserialize_with = "choices")]
    choices: Vec<Choice>,
}

fn choices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Choice>, D::Error> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = Vec<Choice>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of choices")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Choice>, A::Error> {
            let mut choices = Vec::new();
            while let Some(choice) = seq.next_element()? {
                if choices.len() == MAX_CHOICES {
                    return Err(A::Error::custom(format!("over {MAX_CHOICES} choices")));
                }
                choices.push(choice);
            }
            Ok(choices)
        }
    }
    deserializer.deserialize_seq(Few)
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut without = 0u64;
    let replies = serde_json::Deserializer::from_reader(&mut stream).into_iter::<Reply>();
    for (index, reply) in replies.enumerate() {
        let reply = reply.map_err(|e| input.error(format!("reply {index}"), e.to_string()))?;
        let Reply { model, usage, prompt_token_ids, prompt_routed_experts, choices } = reply;
        into.stated_name = into.stated_name.take().or(model);
        for choice in choices {
            let usage = usage.as_ref();
            let prompt = usage.and_then(|usage| usage.prompt_tokens);
            let listed = choice.prompt_token_ids.or(prompt_token_ids).map(|count| count.0);
            // Of several choices, usage counts all tokens together.
            let generated = choice.token_ids.map(|count| count.0);
            let completed = usage.and_then(|usage| usage.completion_tokens);
            let known = Known { prompt: prompt.or(listed), generated: generated.or(completed) };
            let place = Place { path: input.path(), name: "routed_experts" };
            match choice.routed_experts {
                Routes::None => without += 1,
                Routes::Npy(bytes) => {
                    let mut array = in_memory(&bytes, place)?;
                    let rows = array.shape.first().map_or(0, |&rows| rows as u64);
                    add(input, place, &mut array, known.of(rows, into.sequences(), into), into)?;
                }
                Routes::Lists { ids, rows, layers, top_k } => {
                    let mut all = 0;
                    let mut prompt_rows = None;
                    let top_ks = top_ks(place, layers as usize, top_k as usize)?;
                    into.layers(input, Numbering::Hidden, &top_ks)?;
                    let request = into.sequences();
                    into.sequence(input, None)?;
                    if let Routes::Lists { ids, rows, layers: l, top_k: k } = &prompt_routed_experts
                    {
                        if (*l, *k) != (layers, top_k) {
                            let problem = format!(
                                "the prompt has {l} layers of top-{k}, the choice {layers} of \
                                 top-{top_k}"
                            );
                            return Err(place.error(problem));
                        }
                        into.ids(input, ids)?;
                        all += u64::from(*rows);
                        prompt_rows = Some(*rows);
                    }
                    into.ids(input, &ids)?;
                    all += u64::from(rows);
                    let known = Known { prompt: prompt_rows.or(known.prompt), ..known };
                    places(input, all, known.of(all, request, into), into)?;
                }
            }
        }
    }
    if without > 0 {
        into.note(format!("{without} choices are left out: they have no routed_experts"));
    }
    into.read(stream.source()?);
    Ok(())
}

/// What a reply says of its lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) prompt: Option<u32>,
    pub(super) generated: Option<u32>,
}

impl Known {
    /// The prompt of the request of this index with so many rows, which has one row less than tokens: what the
    /// caller says, else the reply, else what is left of the rows after the generated tokens.
    pub(super) fn of(self, rows: u64, request: usize, into: &Collector<'_>) -> Prompt {
        let given = &into.options.prompt_tokens;
        let given = if given.len() == 1 { given.first() } else { given.get(request) }.copied();
        let generated = self.generated.map(u64::from);
        let left = generated.and_then(|generated| (rows + 1).checked_sub(generated));
        let left = left.and_then(|left| u32::try_from(left).ok());
        let tokens = given.or(self.prompt).or(left);
        // Rows that were not asked for are those that prompt and answer have in excess.
        let start = match (tokens, generated) {
            (Some(prompt), Some(generated)) => {
                (u64::from(prompt) + generated).saturating_sub(rows + 1)
            }
            _ => 0,
        };
        let start = u32::try_from(start).unwrap_or(0).min(tokens.unwrap_or(0));
        Prompt { tokens, start }
    }
}
