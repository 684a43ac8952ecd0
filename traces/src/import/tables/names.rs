//! What names say: a layer's number in a key, a module's path or a file's name; ids, scores,
//! weights.

/// Names of arrays of ids (compared without case, `_`, `-` and a trailing `s`).
const IDS: &[&str] = &[
    "topkid",
    "expertid",
    "expertindice",
    "expertindex",
    "routedexpert",
    "selectedexpert",
    "selectedid",
    "topkidx",
    "topkindice",
    "topkindex",
    "topkexpert",
    "expidx",
    "expid",
    "indice",
    "id",
    "expert",
    "rolloutroutedexpert",
    "routingmap",
    "activatedexpertid",
    "routing",
    "topk",
    "arr0",
    "expertidx",
    "routerindice",
    "routingindice",
    "route",
    "chosenexpert",
    "activeexpert",
    "activatedexpert",
    "selectedexpertid",
    "topkexpertid",
];
/// Names of arrays of router scores.
const SCORES: &[&str] = &[
    "routerlogit",
    "gatelogit",
    "logit",
    "routerprob",
    "routerprobability",
    "probabilitie",
    "prob",
    "routerscore",
    "gatescore",
    "routinglogit",
    "routingprob",
    "moelogit",
    "ffnmoelogit",
    "score",
    "gate",
    "gating",
    "gateoutput",
    "gateprob",
    "routingweight",
    "routeroutput",
];
/// Names of arrays of the weights of chosen experts.
const WEIGHTS: &[&str] = &[
    "topkweight",
    "gateweight",
    "expertweight",
    "routingweight",
    "weight",
    "selectedprob",
    "selectedprobabilitie",
    "topkprob",
    "topkscore",
    "gatew",
];
/// Names of arrays of counts.
const COUNTS: &[&str] = &[
    "expertload",
    "expertcount",
    "count",
    "tokensperexpert",
    "tokencount",
    "expertfrequencie",
    "expertusage",
    "expertactivation",
    "load",
    "expertloadpas",
    "frequencie",
    "hit",
    "expertpopularity",
    "popularity",
    "activationcount",
    "layerexpertcount",
    "selectioncount",
    "routedtoken",
];

/// A name as names are compared.
pub(in crate::import) fn plain(name: &str) -> String {
    let last = name.rsplit(['.', '/']).next().unwrap_or(name);
    let mut plain: String =
        last.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    if plain.ends_with('s') {
        plain.pop();
    }
    plain
}

pub(in crate::import) fn is_ids(name: &str) -> bool {
    IDS.contains(&plain(name).as_str())
}

pub(super) fn is_scores(name: &str) -> bool {
    SCORES.contains(&plain(name).as_str())
}

pub(in crate::import) fn is_weights(name: &str) -> bool {
    WEIGHTS.contains(&plain(name).as_str())
}

pub(in crate::import) fn is_counts(name: &str) -> bool {
    let word = |name: &str| COUNTS.contains(&plain(name).as_str());
    // One of each layer has the layer's number in its name.
    word(name)
        || layer_of(name).is_some_and(|found| {
            let rest = found.rest.replace('#', "");
            let lower = rest.to_ascii_lowercase();
            let bare = lower.replace("layers", "").replace("layer", "");
            word(&rest) || word(bare.trim_matches(['_', '.', '-', ' ', '/']))
        })
}

/// Words before a layer's number.
const WORDS: [&str; 6] = ["layers", "layer", "blocks", "block", "blk", "h"];

/// The text before each number of a name, and the number.
fn parts(name: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = &rest[start..];
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        found.push((&rest[..start], &after[..end]));
        rest = &after[end..];
    }
    found
}

/// Whether text ends in a word for a layer: `model.layers.`, `layer`, `blk-`.
fn says_layer(text: &str) -> bool {
    let text = text.trim_end_matches(['.', '_', '-', ' ', '[', '/', '=', ':']).to_ascii_lowercase();
    WORDS.iter().any(|word| {
        text.strip_suffix(word).is_some_and(|before| {
            // "moe_layer", "model.layers", "moelayer", but no word that ends in h.
            !before.ends_with(|c: char| c.is_ascii_alphanumeric()) || word.len() > 1
        })
    })
}

/// A name with its layer's number taken out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::import) struct Numbered {
    /// What the names of other layers have in common with it.
    pub(super) rest: String,
    pub(in crate::import) layer: u32,
}

/// The layer that a name names, where it says so or has but one number.
pub(in crate::import) fn layer_of(name: &str) -> Option<Numbered> {
    let parts = parts(name);
    let said = parts.iter().position(|(text, _)| says_layer(text));
    let at = said.or((parts.len() == 1).then_some(0))?;
    numbered(name, &parts, at)
}

fn numbered(name: &str, parts: &[(&str, &str)], at: usize) -> Option<Numbered> {
    let layer = parts.get(at)?.1.parse().ok()?;
    let before: usize = parts[..at].iter().map(|(text, number)| text.len() + number.len()).sum();
    let start = before + parts[at].0.len();
    let rest = format!("{}#{}", &name[..start], &name[start + parts[at].1.len()..]);
    Some(Numbered { rest, layer })
}

/// The layers that names name: by the word before a number, else by the one number in which they
/// differ. None where no two of them can be told apart so.
pub(super) fn layers_of<'n>(names: impl Iterator<Item = &'n str>) -> Option<Vec<Numbered>> {
    let names: Vec<&str> = names.collect();
    let said: Option<Vec<Numbered>> = names.iter().map(|name| layer_of(name)).collect();
    if said.is_some() {
        return said;
    }
    let all: Vec<Vec<(&str, &str)>> = names.iter().map(|name| parts(name)).collect();
    let first = all.first()?;
    let same = all.iter().all(|parts| {
        parts.len() == first.len() && parts.iter().zip(first).all(|(a, b)| a.0 == b.0)
    });
    let differs = |&at: &usize| all.iter().any(|parts| parts[at].1 != first[at].1);
    let mut differing = (0..first.len()).filter(|at| same && differs(at));
    let (Some(at), None) = (differing.next(), differing.next()) else { return None };
    names.iter().zip(&all).map(|(name, parts)| numbered(name, parts, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers(names: &[&str]) -> Option<Vec<u32>> {
        layers_of(names.iter().copied()).map(|all| all.iter().map(|name| name.layer).collect())
    }

    #[test]
    fn layers_are_found_in_names() {
        let of = |name| layer_of(name).map(|found| found.layer);
        assert_eq!(of("layer00.top6"), Some(0));
        assert_eq!(of("ffn_moe_logits-12"), Some(12));
        assert_eq!(of("model.layers.17.mlp.gate"), Some(17));
        assert_eq!(of("blk.3.ffn_gate_2"), Some(3));
        assert_eq!(of("7"), Some(7));
        assert_eq!(of("topk_ids"), None);
        assert_eq!(of("batch4_9"), None, "nothing says which number is the layer");
        assert_eq!(of("run2_layer-5"), Some(5));
        assert_eq!(layers(&["gate4_k8", "gate11_k8"]), Some(vec![4, 11]));
        assert_eq!(layers(&["a1_2", "a2_3"]), None);
        assert_eq!(layer_of("layer03.top6").unwrap().rest, "layer#.top6");
    }

    #[test]
    fn names_are_compared_plainly() {
        assert!(is_ids("TopK-IDs") && is_ids("expert_indices") && is_ids("a.b.routed_experts"));
        assert!(is_scores("router_logits") && is_weights("topk_weights"));
        assert!(is_counts("expert_load") && !is_counts("expert_ids"));
    }
}
