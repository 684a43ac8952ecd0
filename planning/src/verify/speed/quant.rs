//! Bits a weight of what people call a format, for experts and for the rest.

use hotset_cost_models::Model;

/// Bits a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bits {
    pub experts: f64,
    pub rest: f64,
}

/// By name, the longest first among those that begin alike. Block formats give the experts' bits; the rest is what
/// the usual mixes around them keep: K-quants a little more, dynamic mixes and checkpoints 8 bits and up.
const NAMES: [(&str, f64, f64); 30] = [
    ("iq1_s", 1.75, 4.5),
    ("iq1_m", 1.95, 4.5),
    ("iq2_xxs", 2.2, 5.0),
    ("iq2_xs", 2.4, 5.0),
    ("iq2_m", 2.7, 5.0),
    ("iq2_k", 2.75, 8.5),
    ("q2_k", 2.8, 5.5),
    ("iq3_xxs", 3.1, 5.5),
    ("iq3_k", 3.6, 6.0),
    ("iq3_s", 3.5, 5.0),
    ("q3_k", 3.6, 5.5),
    ("iq4_xs", 4.3, 5.5),
    ("iq4_k", 4.8, 8.5),
    ("q4_0", 4.5, 4.8),
    ("q4_k", 4.85, 5.5),
    ("mxfp4", 4.25, 8.5),
    ("nvfp4", 4.5, 16.0),
    ("iq5_k", 5.5, 8.5),
    ("q5_k", 5.6, 6.0),
    ("iq6_k", 6.7, 8.5),
    ("q6_k", 6.6, 6.6),
    ("q8_0", 8.5, 8.5),
    ("int4", 4.5, 16.0),
    ("int8", 8.5, 8.5),
    ("fp8", 8.03, 8.03),
    ("4-bit", 4.5, 5.5),
    ("q4", 4.8, 5.5),
    ("q3", 3.6, 5.5),
    ("q2", 2.6, 8.5),
    ("bf16", 16.0, 16.0),
];

/// The bits that a text names: of experts where it says so, and where it names one format, of all.
pub(super) fn bits(text: &str) -> Option<Bits> {
    let lower = text.to_lowercase();
    let named = |text: &str| NAMES.iter().find(|(name, ..)| text.contains(name));
    // `experts IQ4_XS, attention Q5_K`, `q4 experts, Q8 rest`: what stands around the word.
    let of_experts = lower.split([',', ';', '(', ')']).find(|part| {
        part.contains("expert") && !part.contains("shared expert") && named(part).is_some()
    });
    let mixed = lower.contains("gate/up") && lower.contains("down");
    let experts = match of_experts {
        // Two of three matrices in one format, one in another.
        Some(part) if mixed => {
            let mut found = NAMES.iter().filter(|(name, ..)| part.contains(name));
            let (first, second) = (found.next()?, found.next());
            second.map_or(first.1, |second| (2.0 * first.1 + second.1) / 3.0)
        }
        Some(part) => named(part)?.1,
        None => named(&lower)?.1,
    };
    let rest = match of_experts {
        Some(_) if lower.contains("q8") => 8.5,
        Some(_) => 6.0,
        None => named(&lower)?.2,
    };
    Some(Bits { experts, rest })
}

/// A model's bytes in a format: outside the routed experts, and of all routed experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    /// Bytes that every token reads outside the routed experts, output head included.
    pub dense: f64,
    /// Bytes of all routed experts.
    pub routed: f64,
}

/// Bytes by the named format, the experts' corrected by the file's size where that is given.
pub(super) fn weights(model: &Model, bits: Bits, file: Option<f64>) -> Weights {
    let parameters = model.parameters();
    let routed = parameters.routed as f64;
    let outside = parameters.total() as f64 - routed;
    let embedding = if model.tied { 0.0 } else { parameters.embed as f64 };
    let mut bits = bits;
    if let Some(file) = file {
        let rest = outside * bits.rest / 8.0;
        if rest < file * 0.7 {
            bits.experts = (file - rest) * 8.0 / routed.max(1.0);
        } else {
            let all = file * 8.0 / (outside + routed).max(1.0);
            bits = Bits { experts: all, rest: all };
        }
    }
    Weights { dense: (outside - embedding) * bits.rest / 8.0, routed: routed * bits.experts / 8.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_as_people_write_them() {
        let of = |text| bits(text).map(|bits| (bits.experts, bits.rest));
        assert_eq!(of("UD-Q2_K_XL"), Some((2.8, 5.5)));
        assert_eq!(of("custom: experts IQ4_XS, attention Q5_K, output Q6_K"), Some((4.3, 6.0)));
        assert_eq!(of("q4 experts, Q8 rest"), Some((4.8, 8.5)));
        let mixed =
            of("q2 (IQ2_XXS gate/up + Q2_K down experts, Q8 attention/shared/output)").unwrap();
        assert!((mixed.0 - 2.4).abs() < 0.01 && mixed.1 == 8.5, "{mixed:?}");
        assert_eq!(of("IQ2_K_R4 mix, q8_0 attention and shared experts"), Some((2.75, 8.5)));
        assert_eq!(of("Q8_0"), Some((8.5, 8.5)));
        assert_eq!(of(""), None);
        assert_eq!(of("unsloth dynamic 4.5-bit"), None);
    }

    #[test]
    fn a_files_size_says_what_its_experts_take() {
        let model = Model::builtin("Qwen3-30B-A3B").unwrap();
        let named = weights(&model, bits("Q4_K_M").unwrap(), None);
        let sized = weights(&model, bits("Q4_K_M").unwrap(), Some(18.6e9));
        assert!((sized.routed / named.routed - 1.0).abs() < 0.05, "{sized:?} {named:?}");
    }
}
