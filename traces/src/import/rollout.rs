//! Rollouts of slime and miles (`--save-debug-rollout-data`): a dict with `samples`, each with
//! `tokens` and `rollout_routed_experts` `[len(tokens) - 1, layers, top-k]`, a tensor (slime) or a
//! NumPy array (miles). A slot for every hidden layer, so dense ones must be named.

use super::array::{Place, top_ks};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::layers::Numbering;
use super::pickle::Value;
use super::sniff::Sniff;
use super::torch::{Ints, Torch};
use crate::error::Result;
use crate::sequence::Phase;

const COLUMNS: &[&str] = &["ids", "positions", "phases", "token_ids"];

pub(super) const SLIME: FormatInfo = FormatInfo {
    name: "slime",
    description: "slime's rollouts (.pt) with routing replay: one sequence a sample",
    columns: COLUMNS,
    extensions: &["pt"],
    takes_prompt_tokens: false,
    recognise: is_slime,
    fuzz: FuzzTarget::Unpickler,
    importer: Importer::Each(import),
};

pub(super) const MILES: FormatInfo = FormatInfo {
    name: "miles",
    description: "miles' rollouts (.pt) with routing replay: one sequence a sample",
    columns: COLUMNS,
    extensions: &["pt"],
    takes_prompt_tokens: false,
    recognise: is_miles,
    fuzz: FuzzTarget::Unpickler,
    importer: Importer::Each(import),
};

fn is_slime(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.torch().is_some_and(|torch| {
        let has = |key: &str| torch.pickle.get(torch.pickle.root(), key).is_some();
        has("samples") && !has("metadata")
    }))
}

fn is_miles(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.torch().is_some_and(|torch| {
        let has = |key: &str| torch.pickle.get(torch.pickle.root(), key).is_some();
        has("samples") && has("metadata")
    }))
}

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut torch = Torch::open(input)?;
    let mut without = 0u64;
    for (index, sample) in torch.list_of("samples")?.into_iter().enumerate() {
        let place = format!("sample {index}");
        match torch.pickle.get(sample, "rollout_routed_experts") {
            None | Some(Value::None) => without += 1,
            Some(routes) => {
                let routes = torch.ints(routes, &place)?;
                add(input, &torch, sample, &place, &routes, into)?;
            }
        }
    }
    if without > 0 {
        into.note(format!("{without} samples are left out: they have no routed experts"));
    }
    into.read(input.source()?);
    Ok(())
}

fn add(
    input: &Input<'_>,
    torch: &Torch<'_>,
    sample: Value,
    place: &str,
    routes: &Ints<i32>,
    into: &mut Collector<'_>,
) -> Result<()> {
    let refuse = |problem: String| input.error(place, problem);
    let [tokens, layers, top_k] = routes.shape[..] else {
        let shape = &routes.shape;
        return Err(refuse(format!("routes are {shape:?}, not [tokens, layers, top-k]")));
    };
    let name = "rollout_routed_experts";
    let top_ks = top_ks(Place { path: input.path(), name }, layers, top_k)?;
    let vocabulary = torch.pickle.get(sample, "tokens").and_then(|list| torch.pickle.ints(list));
    let vocabulary =
        vocabulary.ok_or_else(|| refuse("tokens are no list of numbers".to_owned()))?;
    if vocabulary.len() != tokens + 1 {
        let all = vocabulary.len();
        return Err(refuse(format!("{all} tokens, {tokens} routes; there is one route less")));
    }
    into.layers(input, Numbering::Hidden, &top_ks)?;
    into.sequence(input, None)?;
    into.ids(input, &routes.values)?;
    let response = torch.pickle.int(torch.pickle.get(sample, "response_length"));
    let response = response.and_then(|length| usize::try_from(length).ok());
    let prompt = match response.and_then(|length| vocabulary.len().checked_sub(length)) {
        Some(prompt) => prompt.min(tokens),
        None => {
            into.note("no response_length: all tokens are taken as decode tokens");
            0
        }
    };
    into.run(input, 0, prompt as u64, Phase::Prefill)?;
    into.run(input, prompt as u64, (tokens - prompt) as u64, Phase::Decode)?;
    into.prompt(prompt as u32);
    let vocabulary: Option<Vec<u32>> =
        vocabulary[..tokens].iter().map(|&id| u32::try_from(id).ok()).collect();
    into.token_ids(&vocabulary.ok_or_else(|| refuse("a negative token id".to_owned()))?)
}
