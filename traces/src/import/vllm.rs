//! vLLM's `CompletionOutput.routed_experts`, saved as one `.npy` a request: ids u8, i16, u16 or
//! i32 `[prompt + generated - 1, hidden layers, top-k]`. Dense layers hold zeros and must be named.
//!
//! Where a prompt ends the array does not say: `--prompt-tokens` does.

use super::array::{Array, Dtype, Place, top_ks};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::sniff::{Contents, Sniff};
use crate::error::Result;
use crate::sequence::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "vllm",
    description: "vLLM's routed_experts, one .npy of u8, i16, u16 or i32 a request; give \
                  `ImportOptions::prompt_tokens`, and `ImportOptions::dense_layers` or \
                  `ImportOptions::config`",
    columns: &["ids", "positions", "phases"],
    extensions: &["npy"],
    takes_prompt_tokens: true,
    recognise,
    fuzz: FuzzTarget::Npy,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Contents::Npy { dtype, shape } = &sniff.contents else { return Ok(Claim::No) };
    let whole = !matches!(dtype, Dtype::F16 | Dtype::F32 | Dtype::F64);
    Claim::Sure.when(shape.len() == 3 && whole && sniff.name().contains("routed_experts"))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let place = Place { path: input.path(), name: "routed_experts" };
    let (stream, length) = input.sized()?;
    let mut array = Array::open(stream, length, place)?;
    let request = into.sequences();
    let given = &into.options.prompt_tokens;
    let prompt = if given.len() == 1 { given.first() } else { given.get(request) }.copied();
    add(input, place, &mut array, Prompt { tokens: prompt, start: 0 }, into)?;
    into.read(array.into_inner().source()?);
    Ok(())
}

/// What is known of a request's prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompt {
    /// Its tokens.
    pub(super) tokens: Option<u32>,
    /// Tokens of it for which no routes were asked.
    pub(super) start: u32,
}

/// One request's array.
pub(super) fn add<R: std::io::Read>(
    input: &Input<'_>,
    place: Place<'_>,
    array: &mut Array<R>,
    prompt: Prompt,
    into: &mut Collector<'_>,
) -> Result<()> {
    let [tokens, layers, top_k] = array.shape[..] else {
        let shape = &array.shape;
        return Err(place.error(format!("expected [tokens, layers, top-k], found {shape:?}")));
    };
    let top_ks = top_ks(place, layers, top_k)?;
    into.layers(input, Numbering::Hidden, &top_ks)?;
    into.sequence(input, None)?;
    array.ids(input, place.name, into)?;
    places(input, tokens as u64, prompt, into)
}

/// Positions and phases of a request's rows.
pub(super) fn places(
    input: &Input<'_>,
    rows: u64,
    prompt: Prompt,
    into: &mut Collector<'_>,
) -> Result<()> {
    let Prompt { tokens, start } = prompt;
    let known = tokens.is_some();
    if !known && into.options.phase.is_none() {
        into.note(
            "where prompts end is not recorded: all tokens are taken as decode tokens; give \
             `ImportOptions::prompt_tokens`",
        );
    }
    let prompt = u64::from(tokens.unwrap_or(0).saturating_sub(start));
    if prompt > rows {
        let tokens = tokens.unwrap_or(0);
        let problem = format!("a prompt of {tokens} tokens, yet routes of {rows} tokens only");
        return Err(input.error("`ImportOptions::prompt_tokens`", problem));
    }
    let start = u64::from(start);
    into.run(input, start, prompt, Phase::Prefill)?;
    into.run(input, start + prompt, rows - prompt, Phase::Decode)?;
    into.prompt(tokens.unwrap_or(0));
    Ok(())
}
