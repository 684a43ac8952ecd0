//! What columns and keys are called: the one table of names. A new layout whose names stand here
//! needs no code, and one with other names a word in a line.

use std::collections::HashMap;

/// What a column means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// The request, prompt or conversation.
    Sequence,
    /// The forward pass.
    Step,
    /// Prefill or decode.
    Phase,
    /// Whether it is the one, or the other.
    IsPrefill,
    IsDecode,
    /// The place of a token in its sequence.
    Position,
    /// The number of a token: in its sequence, in the file, or in a pass.
    Token,
    /// Its id in the vocabulary; its number where no other column has one.
    TokenId,
    Layer,
    /// One expert, or a list of them.
    Experts,
    Rank,
    Weights,
    Count,
    /// What the model has: experts of a layer, experts of a token, its name.
    StatedExperts,
    StatedTopK,
    Model,
}

use Meaning::{
    Count, Experts, IsDecode, IsPrefill, Layer, Model, Phase, Position, Rank, Sequence,
    StatedExperts, StatedTopK, Step, Token, TokenId, Weights,
};

/// Names of each meaning, the surest first: of two columns for one meaning the earlier name is
/// taken. `#` stands for a number, as in columns `e0`, `e1`.
const NAMES: &[(Meaning, &str)] = &[
    (
        Sequence,
        "req_id request_id req req_idx request seq_id sequence_id seq_idx sequence seq session_id \
         session conversation_id conversation prompt_id prompt_index prompt_idx prompt sample_id \
         sample_idx sample p turn batch_id batch_idx",
    ),
    (
        Step,
        "step_idx step_id step forward_pass_id forward_pass forward pass arrival_idx iteration \
         iter",
    ),
    (Phase, "phase stage ph mode"),
    (IsPrefill, "is_prefill is_prompt in_prefill prefill"),
    (IsDecode, "is_decode is_decoding is_generated is_generation decode"),
    (Position, "position pos token_position token_pos seq_pos position_id"),
    (Token, "token_idx token_index tok_idx token tok t decode_step row row_idx token_num"),
    (TokenId, "token_id tok_id input_token_id vocab_id"),
    (
        Layer,
        "layer layer_idx layer_id layer_index layer_num layer_number il l layer_name module moe_layer \
         moe_layer_idx moe_layer_id block block_idx blk",
    ),
    (
        Experts,
        "topk_ids top_k_ids topk_experts top_k_experts topk_indices top_k_indices topk_idx \
         selected_experts selected_ids selected_expert_ids activated_expert_ids activated_experts \
         active_experts chosen_experts routed_experts expert_ids expert_indices expert_idx expert_index \
         experts expert exp_ids exp_idx exp eid sel ids e e# expert# expert_id# id# top#_expert top#_id topk# exp#",
    ),
    (Rank, "rank slot k_idx topk_rank"),
    (
        Weights,
        "topk_weights top_k_weights gate_weights gate_w gate_weight selected_probabilities \
         selected_probs routing_weights routing_weight expert_weights weights weight gates gate \
         probs prob probabilities probability scores score s w# weight# gate# top#_routing_weight \
         top#_weight prob# top#_prob",
    ),
    (
        Count,
        "count counts hits selection_count selections routed_tokens token_count tokens \
         total_activations activations activation_count freq frequency frequencies \
         expert_frequencies expert_count uses usage n_tokens_routed routed_count hit_count \
         num_hits n_hits num_selected n_selected num_tokens n_tokens total",
    ),
    (
        StatedExperts,
        "num_experts n_experts n_expert num_local_experts n_routed_experts experts_total",
    ),
    (
        StatedTopK,
        "top_k topk k experts_per_token n_expert_used n_used num_experts_per_tok \
         num_experts_per_token",
    ),
    (Model, "model_id model model_name"),
];

/// The words with which a caller names a meaning.
const WORDS: &[(&str, Meaning)] = &[
    ("sequence", Sequence),
    ("step", Step),
    ("phase", Phase),
    ("position", Position),
    ("token", Token),
    ("token-id", TokenId),
    ("layer", Layer),
    ("experts", Experts),
    ("rank", Rank),
    ("weights", Weights),
    ("count", Count),
];

/// A column's meaning, how sure its name is of it (0 is surest), and the number in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) meaning: Meaning,
    pub(super) priority: u16,
    pub(super) number: Option<u32>,
}

/// The table, ready for look-ups.
pub(in crate::import) struct Names {
    /// By the name in small letters without blanks, `_` and `-`.
    exact: HashMap<String, (Meaning, u16)>,
    /// The same without a trailing `s`.
    loose: HashMap<String, (Meaning, u16)>,
    /// What the caller said, as it is written in the file.
    given: Vec<(String, Meaning)>,
}

impl Names {
    /// The table and what the caller gave: pairs of a word and a column's name.
    pub(in crate::import) fn new(given: &[(String, String)]) -> Result<Self, String> {
        let (mut exact, mut loose) = (HashMap::new(), HashMap::new());
        for (meaning, names) in NAMES {
            for (priority, name) in names.split_whitespace().enumerate() {
                let plain = plain(name);
                let known = (*meaning, priority as u16 + 1);
                loose.entry(singular(&plain).to_owned()).or_insert(known);
                exact.entry(plain).or_insert(known);
            }
        }
        let mut told = Vec::new();
        for (word, name) in given {
            let meaning = WORDS.iter().find(|(known, _)| known == word).map(|(_, known)| *known);
            let meaning = meaning.ok_or_else(|| {
                let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                format!("`ImportOptions::columns` names {word:?}; known are {}", known.join(", "))
            })?;
            told.push((name.clone(), meaning));
        }
        Ok(Self { exact, loose, given: told })
    }

    /// What a column of this name means.
    pub(super) fn find(&self, name: &str) -> Option<Known> {
        if let Some(&(_, meaning)) = self.given.iter().find(|(given, _)| given == name) {
            return Some(Known { meaning, priority: 0, number: None });
        }
        let (plain, number) = numbered(&plain(name));
        let known = |name: &str| self.exact.get(name).or_else(|| self.loose.get(singular(name)));
        // Any name of experts or weights may have the number of one of them.
        let base = || {
            number?;
            let lists = |known: &&(Meaning, u16)| matches!(known.0, Experts | Weights);
            known(&plain.replacen('#', "", 1)).filter(lists)
        };
        let &(meaning, priority) = known(&plain).or_else(base)?;
        // What the caller named is not taken from another column.
        let settled = self.given.iter().any(|&(_, given)| given == meaning);
        (!settled).then_some(Known { meaning, priority, number })
    }
}

/// Small letters, without what people put between words.
fn plain(name: &str) -> String {
    let parts = name.trim().chars().filter(|c| !matches!(c, ' ' | '_' | '-' | '.' | '[' | ']'));
    parts.flat_map(char::to_lowercase).collect()
}

fn singular(name: &str) -> &str {
    match name.strip_suffix('s') {
        Some(one) if !one.is_empty() => one,
        _ => name,
    }
}

/// A name with `#` for its number, and the number.
fn numbered(plain: &str) -> (String, Option<u32>) {
    let Some(start) = plain.find(|c: char| c.is_ascii_digit()) else {
        return (plain.to_owned(), None);
    };
    let rest = &plain[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..end].parse() {
        Ok(number) => (format!("{}#{}", &plain[..start], &rest[end..]), Some(number)),
        Err(_) => (plain.to_owned(), None),
    }
}

/// A phase by any of its names.
pub(in crate::import) fn phase(text: &str) -> Option<crate::trace::Phase> {
    use crate::trace::Phase;
    Some(match plain(text).as_str() {
        "prefill" | "prefilling" | "prompt" | "source" | "decoderprompt" | "context" | "extend"
        | "encode" | "input" | "pp" | "p" | "0" => Phase::Prefill,
        "decode" | "decoding" | "generated" | "generation" | "generate" | "decodergenerated"
        | "output" | "completion" | "answer" | "tg" | "d" | "1" => Phase::Decode,
        "verify" | "verification" | "2" => Phase::Verify,
        _ => return None,
    })
}

/// Yes or no.
pub(super) fn flag(text: &str) -> Option<bool> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "t" | "yes" | "y" => true,
        "0" | "false" | "f" | "no" | "n" => false,
        _ => return None,
    })
}

/// The number of a layer: itself, or the one in a module's path, where `layers.12.mlp` is 12.
pub(super) fn layer_number(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let lower = text.to_ascii_lowercase();
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<i64>().ok()
    };
    for word in ["layers", "layer", "blocks", "block", "blk", "h"] {
        for (at, _) in lower.match_indices(word) {
            let rest = lower[at + word.len()..].trim_start_matches(['.', '_', '-', ' ', '[']);
            if let Some(number) = digits(rest) {
                return Some(number);
            }
        }
    }
    let first = lower.find(|c: char| c.is_ascii_digit())?;
    digits(&lower[first..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(name: &str) -> Option<Meaning> {
        Names::new(&[]).unwrap().find(name).map(|known| known.meaning)
    }

    #[test]
    fn names_are_compared_without_case_and_marks() {
        for name in ["topk_ids", "TopK-IDs", "Activated Expert IDs", "expert", "ExpertIDs", "sel"] {
            assert_eq!(meaning(name), Some(Experts), "{name}");
        }
        assert_eq!(meaning("Layer ID"), Some(Layer));
        assert_eq!(meaning("token"), Some(Token));
        assert_eq!(meaning("tokens"), Some(Count));
        assert_eq!(meaning("Total_Activations"), Some(Count));
        assert_eq!(meaning("t_ns"), None);
        assert_eq!(meaning("layer_share"), None);
        let names = Names::new(&[]).unwrap();
        let known = names.find("top2_expert").unwrap();
        assert_eq!((known.meaning, known.number), (Experts, Some(2)));
        assert!(names.find("pos").unwrap().priority > names.find("position").unwrap().priority);
    }

    #[test]
    fn what_the_caller_says_wins() {
        let given = [("layer".to_owned(), "blk".to_owned()), ("token".to_owned(), "n".to_owned())];
        let names = Names::new(&given).unwrap();
        assert_eq!(names.find("blk").unwrap().meaning, Layer);
        assert_eq!(names.find("layer"), None);
        let wrong = Names::new(&[("lyer".to_owned(), "x".to_owned())]).err().unwrap();
        assert!(wrong.contains("known are sequence, step"), "{wrong}");
    }

    #[test]
    fn layers_by_path() {
        assert_eq!(layer_number("model.layers.12.mlp.experts.0"), Some(12));
        assert_eq!(layer_number("layer_3"), Some(3));
        assert_eq!(layer_number("blk.7.ffn_gate"), Some(7));
        assert_eq!(layer_number(" 5 "), Some(5));
        assert_eq!(layer_number("dense"), None);
    }
}
