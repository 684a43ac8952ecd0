//! vLLM's HTTP replies with `routed_experts`, one JSON document after another.
//!
//! From 0.22 on each choice has a whole `.npy` as base64; 0.21 had nested lists, the prompt's at
//! the top (`prompt_routed_experts`) and the generated tokens' in each choice.

use super::array::{Place, top_ks};
use super::arrays::in_memory;
use super::collect::Collector;
use super::documents::documents;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::Sniff;
use super::vllm::{Prompt, add, places};
use super::vllm_reply::{Choice, Reply, Routes};
use crate::error::Result;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "vllm-json",
    description: "vLLM's HTTP replies with routed_experts: base64 (0.22 and later) or nested \
                  lists (0.21)",
    columns: &["ids", "positions", "phases"],
    extensions: &["json", "jsonl"],
    takes_prompt_tokens: true,
    recognise,
    fuzz: FuzzTarget::Json,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Likely.when(sniff.document_has_keys(&["choices"]))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut stream = input.stream()?;
    let mut without = 0u64;
    for (index, reply) in documents::<Reply>(&mut stream).enumerate() {
        let refuse = |problem: String| input.error(format!("reply {index}"), problem);
        let mut reply = reply.map_err(|e| match (e.line(), e.column()) {
            (1, 1) => refuse(format!("{e}; replies are JSON, and streams hold no routes")),
            _ => refuse(e.to_string()),
        })?;
        if let Some(refusal) = &reply.error {
            let message: String = refusal.message.chars().take(200).collect();
            return Err(refuse(format!("the server refused the request: {message}")));
        }
        if reply.choices.is_empty() {
            return Err(refuse("it has no choices".to_owned()));
        }
        into.stated.name = into.stated.name.take().or(reply.model.take());
        let place = Place { path: input.path(), name: "routed_experts" };
        let lengths = lengths(&reply, place, into)?;
        let Reply { prompt_routed_experts, choices, .. } = reply;
        for (choice, known) in choices.into_iter().zip(lengths) {
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

/// What a reply says of the lengths of each of its choices.
///
/// Token ids (`return_token_ids`) say it of each. `usage` counts the answers of all choices
/// together, and the prompts of all requests in it: it says it where there is one prompt only.
fn lengths(reply: &Reply, place: Place<'_>, into: &mut Collector<'_>) -> Result<Vec<Known>> {
    let listed = |choice: &Choice| Known {
        prompt: choice.prompt_token_ids.or(reply.prompt_token_ids).map(|count| count.0),
        generated: choice.token_ids.map(|count| count.0),
    };
    let mut known: Vec<Known> = reply.choices.iter().map(listed).collect();
    let usage = reply.usage.as_ref();
    let prompt = usage.and_then(|usage| usage.prompt_tokens);
    let completed = usage.and_then(|usage| usage.completion_tokens);
    if let [only] = &mut known[..] {
        only.prompt = only.prompt.or(prompt);
        only.generated = only.generated.or(completed);
    }
    let complete = |known: &Known| known.prompt.is_some() && known.generated.is_some();
    if known.iter().all(complete) {
        return Ok(known);
    }
    let mut rows = Vec::with_capacity(known.len());
    for choice in &reply.choices {
        let Routes::Npy(bytes) = &choice.routed_experts else { return Ok(known) };
        rows.push(in_memory(bytes, place)?.shape.first().map_or(0, |&rows| rows as u64));
    }
    let (Some(prompt), Some(completed)) = (prompt, completed) else { return Ok(known) };
    // Tokens of one prompt that every choice repeats, and those that have no rows.
    let all = u64::from(prompt) * known.len() as u64 + u64::from(completed);
    let missing = rows.iter().map(|rows| rows + 1).try_fold(all, u64::checked_sub);
    // A chat has one prompt; completions may have more, whose tokens the sum counts too often.
    let chat = reply.object.as_deref() == Some("chat.completion");
    match missing.filter(|&missing| chat || missing == 0) {
        Some(missing) => {
            let start = missing / known.len() as u64;
            for (known, rows) in known.iter_mut().zip(rows) {
                let generated = (rows + 1 + start).checked_sub(u64::from(prompt));
                let generated = generated.and_then(|tokens| u32::try_from(tokens).ok());
                *known = Known { prompt: Some(prompt), generated };
            }
        }
        None => into.note(
            "some replies have several prompts, and count their tokens together: where a prompt \
             ends is not known there; send \"return_token_ids\": true, or one prompt a request",
        ),
    }
    Ok(known)
}

/// What a reply says of its lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) prompt: Option<u32>,
    pub(super) generated: Option<u32>,
}

impl Known {
    /// The prompt of the request of this index with so many rows, which has one row less than
    /// tokens: what the caller says, else the reply, else what is left of the rows after the
    /// generated tokens.
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use crate::import::array::tests::npy;
    use crate::import::{ImportOptions, import_bytes};
    use crate::{Error, Format, Phase, Trace};

    fn import(reply: &Value) -> Result<Trace, Error> {
        let text = reply.to_string();
        import_bytes(Format::VllmJson, "a.json", text.as_bytes(), &ImportOptions::default())
    }

    /// So many tokens of one layer with top-1.
    fn choice(rows: u8) -> Value {
        let ids: Vec<u8> = (1..=rows).collect();
        let array = npy("|u1", &format!("({rows}, 1, 1)"), &ids);
        json!({ "routed_experts": STANDARD.encode(array), "token_ids": null })
    }

    fn reply(object: &str, prompt: u32, completion: u32, rows: &[u8]) -> Value {
        let choices: Vec<Value> = rows.iter().copied().map(choice).collect();
        let usage = json!({ "prompt_tokens": prompt, "completion_tokens": completion });
        json!({ "object": object, "usage": usage, "choices": choices })
    }

    /// Of each sequence: its first position, its tokens of the prompt, of the answer.
    fn parts(trace: &Trace) -> Vec<(u32, usize, usize)> {
        let of = |range: std::ops::Range<usize>| {
            let prefill = range.clone().filter(|&row| trace.phase(row) == Phase::Prefill).count();
            (trace.positions()[range.start], prefill, range.len() - prefill)
        };
        trace.sequences().iter().map(|sequence| of(sequence.rows.clone())).collect()
    }

    #[test]
    fn usage_counts_all_choices_together() {
        // A prompt of 4 and two answers of 3: 6 rows each, and 6 completion tokens in all.
        for object in ["chat.completion", "text_completion"] {
            let trace = import(&reply(object, 4, 6, &[6, 6])).unwrap();
            assert_eq!(parts(&trace), [(0, 4, 2), (0, 4, 2)], "{object}");
        }
        // Answers of 3 and of 1.
        let trace = import(&reply("chat.completion", 4, 4, &[6, 4])).unwrap();
        assert_eq!(parts(&trace), [(0, 4, 2), (0, 4, 0)]);
        // The first 3 tokens of the prompt were not asked for.
        let trace = import(&reply("chat.completion", 4, 6, &[3, 3])).unwrap();
        assert_eq!(parts(&trace), [(3, 1, 2), (3, 1, 2)]);
    }

    #[test]
    fn usage_counts_all_prompts_together() {
        // Prompts of 2 and 5, answers of 3: nothing says which is which, and nothing is guessed.
        let mut reply = reply("text_completion", 7, 6, &[4, 7]);
        assert_eq!(parts(&import(&reply).unwrap()), [(0, 0, 4), (0, 0, 7)]);
        for (choice, tokens) in [(0, 2), (1, 5)] {
            reply["choices"][choice]["token_ids"] = json!([1, 2, 3]);
            reply["choices"][choice]["prompt_token_ids"] = json!(vec![1; tokens]);
        }
        assert_eq!(parts(&import(&reply).unwrap()), [(0, 2, 2), (0, 5, 2)]);
    }

    #[test]
    fn what_is_no_reply_is_said_to_be_none() {
        let refused = json!({ "error": { "message": "max_tokens is too large", "code": 400 } });
        let message = import(&refused).unwrap_err().to_string();
        assert!(
            message.ends_with("reply 0: the server refused the request: max_tokens is too large"),
            "{message}"
        );
        let message = import(&json!({ "id": "x" })).unwrap_err().to_string();
        assert!(message.ends_with("reply 0: it has no choices"), "{message}");
        let stream = b"data: {\"choices\": []}\n";
        let options = ImportOptions::default();
        let message =
            import_bytes(Format::VllmJson, "a", stream, &options).unwrap_err().to_string();
        assert!(message.contains("streams hold no routes"), "{message}");
    }
}
