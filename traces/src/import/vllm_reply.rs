//! A reply of vLLM's HTTP server: the few of its fields that routes need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use super::nested::IdRows;

/// How many entries a list has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) u32);

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
pub(super) enum Routes {
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
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u32>,
    pub(super) completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Refusal {
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) routed_experts: Routes,
    pub(super) token_ids: Option<Count>,
    pub(super) prompt_token_ids: Option<Count>,
}

/// The most choices that a reply may have; each takes memory of its own.
const MAX_CHOICES: usize = 1 << 14;

#[derive(Deserialize)]
pub(super) struct Reply {
    /// `chat.completion` or `text_completion`.
    pub(super) object: Option<String>,
    /// In place of all else, where the server refused the request.
    pub(super) error: Option<Refusal>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) prompt_token_ids: Option<Count>,
    #[serde(default)]
    pub(super) prompt_routed_experts: Routes,
    #[serde(default, deserialize_with = "choices")]
    pub(super) choices: Vec<Choice>,
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
