//! What the keys of nested JSON mean.

use crate::import::named;
use crate::import::tables::{is_ids, is_weights, plain};
use crate::trace::Phase;

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// `layer_3`, or `3` among layers.
    Layer(u32),
    /// `token_17`, or `17` among tokens.
    Token(u32),
    /// `17` where nothing says of what: a layer where none is known further in, else a token.
    Number(u32),
    /// Lists or objects of layers, tokens, forward passes, sequences.
    Layers,
    Tokens,
    Steps,
    Sequences,
    /// Numbers of what the object is.
    LayerNumber,
    /// With how far its name is from the best.
    TokenNumber(u8),
    Step,
    Sequence,
    Phase,
    /// Experts of a token, one of them, and weights of either.
    Ids,
    Id,
    Weights,
    /// How often an expert was used.
    Count,
    /// How many experts a layer has.
    Experts,
    Model,
    Other,
}

/// Names of a token's number, best first: a row restarts with each pass.
const TOKENS: [&str; 8] =
    ["tokenposition", "tokenidx", "tokenindex", "position", "tokenpo", "po", "token", "row"];

/// What a key means, in an object under another.
pub(super) fn of(name: &str, outer: Word) -> Word {
    let plain = plain(name);
    if let Ok(number) = name.parse::<u32>() {
        return match outer {
            Word::Layers => Word::Layer(number),
            Word::Tokens => Word::Token(number),
            Word::Other | Word::Number(_) => Word::Number(number),
            _ => Word::Other,
        };
    }
    let numbered = |word: &str| plain.strip_prefix(word).and_then(|rest| rest.parse().ok());
    if let Some(layer) = numbered("layer") {
        return Word::Layer(layer);
    }
    if let Some(token) = numbered("token").or_else(|| numbered("position")) {
        return Word::Token(token);
    }
    if let Some(rank) = TOKENS.iter().position(|word| *word == plain) {
        // "rows" and "tokens" are lists of them, "row" is the number of one.
        return if name.ends_with('s') && matches!(plain.as_str(), "token" | "row" | "position") {
            Word::Tokens
        } else {
            Word::TokenNumber(rank as u8)
        };
    }
    match plain.as_str() {
        "layer" if name.ends_with('s') => Word::Layers,
        "layer" | "layeridx" | "layerid" | "layerindex" | "il" | "moelayer" => Word::LayerNumber,
        "routerdata" | "generatedtoken" | "prompttoken" => Word::Tokens,
        "forward" | "step" | "forwardpass" | "forwardpasse" | "passe" | "iteration" | "stepidx" => {
            if name.ends_with('s') {
                Word::Steps
            } else {
                Word::Step
            }
        }
        "forwardpassid" | "stepid" => Word::Step,
        "trace" | "prompt" | "request" | "sample" | "sequence" | "perprompt" | "conversation" => {
            if name.ends_with('s') || plain == "perprompt" {
                Word::Sequences
            } else {
                Word::Sequence
            }
        }
        "reqid" | "requestid" | "promptid" | "promptindex" | "seqid" | "seq" | "sampleid" => {
            Word::Sequence
        }
        "phase" | "stage" => Word::Phase,
        "expertidx" | "expertindex" | "expert" if !name.ends_with('s') => Word::Id,
        "expertid" if !name.ends_with('s') => Word::Id,
        "numexpert" | "nexpert" | "numlocalexpert" | "nroutedexpert" => Word::Experts,
        "modelid" | "model" | "modelname" => Word::Model,
        "count" | "hit" | "selection" | "selectioncount" | "frequency" | "frequencie" | "usage"
        | "use" | "activation" | "activationcount" | "totalactivation" | "routedtoken"
        | "tokencount" | "expertcount" | "hitcount" | "numhit" | "freq" => Word::Count,
        _ if is_ids(name) => Word::Ids,
        _ if is_weights(name) => Word::Weights,
        _ => Word::Other,
    }
}

/// 0 for prefill, 1 for decode.
pub(super) fn phase(text: &str) -> Option<u8> {
    match named::phase(text)? {
        Phase::Prefill => Some(0),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told() {
        let top = |name| of(name, Word::Other);
        assert_eq!(top("layer_10"), Word::Layer(10));
        assert_eq!(top("token_9"), Word::Token(9));
        assert_eq!((top("layers"), top("layer")), (Word::Layers, Word::LayerNumber));
        assert_eq!((top("forwards"), top("forward")), (Word::Steps, Word::Step));
        assert_eq!(of("3", Word::Layers), Word::Layer(3));
        assert_eq!(top("3"), Word::Number(3));
        assert_eq!(of("3", Word::Ids), Word::Other);
        assert_eq!((top("expert_ids"), top("expert_id")), (Word::Ids, Word::Id));
        assert_eq!(
            (top("token_position"), top("row")),
            (Word::TokenNumber(0), Word::TokenNumber(7))
        );
        assert_eq!((top("rows"), top("num_experts")), (Word::Tokens, Word::Experts));
        assert_eq!(top("token_id"), Word::Other);
    }
}
