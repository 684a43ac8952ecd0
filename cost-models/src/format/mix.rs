//! What people call a quantised file: a recipe's name, a table of tensor types, or both.
//!
//! `Q4_K_M` is not a type but a recipe that gives tensors different types, layer by layer. llama.cpp's own recipes are
//! rules ([`recipe`](super::recipe)); a load log's table of types says what a file really holds, whoever made it; a
//! name alone of somebody's own mix leaves a range.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::GgmlType;
use super::recipe::Recipe;

/// How the tensors of a GGUF file are stored, as far as a person can say.
///
/// ```
/// use hotset_cost_models::format::Mix;
///
/// assert!(Mix::parse("Q4_K_M").is_ok());
/// assert!(Mix::parse("UD-Q4_K_XL [f32:241 q4_K:290 q5_K:37 q6_K:11]").unwrap().counts.is_some());
/// assert!(Mix::parse("MXFP4 experts, F16 rest").is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// As it was given.
    pub name: String,
    /// What the name says, where it says anything.
    pub named: Option<Named>,
    /// Tensors by type, where a table was given.
    pub counts: Option<Vec<(GgmlType, u32)>>,
}

/// What a mix's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A recipe of llama.cpp's quantiser.
    Recipe(Recipe),
    /// Unsloth's dynamic mix around a recipe: which tensors get more bits is not public.
    Dynamic(Recipe),
    /// Every matrix in this type, as converters write and `--pure` does.
    Pure(GgmlType),
    /// Experts in one type, all other matrices in another.
    Split {
        /// Of routed experts.
        experts: GgmlType,
        /// Of all other matrices.
        rest: GgmlType,
    },
}

/// No mix has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "unknown mix `{text}`: {why}; known are llama.cpp's recipes (Q2_K, Q3_K_S/M/L, Q4_0, Q4_K_S/M, Q5_K_S/M, Q6_K, \
     Q8_0, IQ1_S to IQ4_NL, MXFP4, BF16, F16), UD- before one and _XL after it, ik_llama.cpp's types (IQ4_KS, IQ3_K_R4, \
     ...), EXPERTS+REST (mxfp4+f16), and a load log's table of types (f32:361 q8_0:612 iq3_k_r4:116)"
)]
pub struct UnknownMix {
    /// What was given.
    pub text: String,
    /// The part that has no meaning.
    pub why: String,
}

impl Mix {
    /// Reads a name, a table of types, or a name with its table in brackets.
    ///
    /// # Errors
    /// [`UnknownMix`] says which part has no meaning, and what would.
    pub fn parse(text: &str) -> Result<Self, UnknownMix> {
        let wrong = |why: String| UnknownMix { text: text.into(), why };
        let trimmed = text.trim();
        let (name, table) = match trimmed.split_once('[') {
            Some((name, table)) => (name.trim(), Some(table.trim_end_matches(']'))),
            None if trimmed.contains(':') => ("", Some(trimmed)),
            None => (trimmed, None),
        };
        let named = named(name);
        let counts = table.map(counts).transpose().map_err(wrong)?;
        if named.is_none() && counts.is_none() {
            return Err(wrong(if name.is_empty() {
                "it is empty".into()
            } else {
                format!("`{name}` is no recipe and no type")
            }));
        }
        Ok(Self { name: trimmed.into(), named, counts })
    }
}

impl FromStr for Mix {
    type Err = UnknownMix;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// What a name says; `None` where nothing is known of it.
fn named(name: &str) -> Option<Named> {
    // A remark in brackets says when or by whom: `Q4_K_M (2024-01 rules)`.
    let name = name.split('(').next().unwrap_or("").trim();
    let upper = name.to_ascii_uppercase();
    if let Some(split) = split(&upper) {
        return Some(split);
    }
    let (dynamic, base) = match upper.strip_prefix("UD-") {
        Some(base) => (true, base),
        None => (false, upper.as_str()),
    };
    let plain = base.strip_suffix("_XL").or_else(|| base.strip_suffix("_XXL"));
    // Somebody's own mix near a recipe.
    let near = ["-LIKE", " RECIPE", " MIX"].iter().find_map(|end| base.strip_suffix(end));
    if let Some(near) = near {
        return Recipe::from_name(near.strip_suffix("_XL").unwrap_or(near))
            .or_else(|| recipe_near(near.strip_suffix("_XL")?))
            .map(Named::Dynamic);
    }
    if dynamic || plain.is_some() {
        return recipe_near(plain.unwrap_or(base)).map(Named::Dynamic);
    }
    if let Some(recipe) = Recipe::from_name(base) {
        return Some(Named::Recipe(recipe));
    }
    GgmlType::from_name(base).map(Named::Pure)
}

/// `UD-Q4_K_XL` is near `Q4_K_M`, `UD-Q8_K_XL` near `Q8_0`.
fn recipe_near(base: &str) -> Option<Recipe> {
    let medium = format!("{base}_M");
    let eight = if base == "Q8_K" { "Q8_0" } else { base };
    Recipe::from_name(&medium).or_else(|| Recipe::from_name(eight))
}

/// `mxfp4+f16`, `MXFP4 experts, F16 rest` in either order.
fn split(upper: &str) -> Option<Named> {
    let kind = |word: &str| GgmlType::from_name(word.trim());
    if let Some((experts, rest)) = upper.split_once('+') {
        return Some(Named::Split { experts: kind(experts)?, rest: kind(rest)? });
    }
    let (first, second) = upper.split_once(',')?;
    let part =
        |word: &str| [first, second].iter().find_map(|part| kind(part.trim().strip_suffix(word)?));
    Some(Named::Split { experts: part("EXPERTS")?, rest: part("REST")? })
}

/// `f32:361 q8_0:612`, as load logs print it; a trailing `...` is passed over, for the table is then not whole.
fn counts(table: &str) -> Result<Vec<(GgmlType, u32)>, String> {
    let mut counts: Vec<(GgmlType, u32)> = Vec::new();
    let words = table.split([' ', ',', '\n', '\t']).filter(|word| !word.is_empty());
    for word in words {
        if word.trim_matches('.').is_empty() {
            return Err("the table of types is cut off".into());
        }
        let (name, count) =
            word.split_once(':').ok_or_else(|| format!("`{word}` is not TYPE:TENSORS"))?;
        let kind = GgmlType::from_name(name).ok_or_else(|| format!("`{name}` is no type"))?;
        let count: u32 = count.parse().map_err(|_| format!("`{word}` counts no tensors"))?;
        match counts.iter_mut().find(|known| known.0 == kind) {
            Some(known) => known.1 = known.1.saturating_add(count),
            None => counts.push((kind, count)),
        }
    }
    if counts.is_empty() { Err("the table of types is empty".into()) } else { Ok(counts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Option<Named> {
        Mix::parse(text).unwrap().named
    }

    #[test]
    fn names_as_people_type_them() {
        use GgmlType as T;
        assert_eq!(named("q4_k_m"), Some(Named::Recipe(Recipe::Q4KM)));
        assert_eq!(named(" IQ4_XS "), Some(Named::Recipe(Recipe::Iq4Xs)));
        assert_eq!(named("Q4_K_M (2024-01 rules)"), Some(Named::Recipe(Recipe::Q4KM)));
        assert_eq!(named("UD-Q4_K_XL"), Some(Named::Dynamic(Recipe::Q4KM)));
        assert_eq!(named("UD-IQ2_XXS"), Some(Named::Dynamic(Recipe::Iq2Xxs)));
        assert_eq!(named("UD-Q8_K_XL"), Some(Named::Dynamic(Recipe::Q8_0)));
        assert_eq!(named("IQ3_XXS recipe"), Some(Named::Dynamic(Recipe::Iq3Xxs)));
        assert_eq!(named("IQ4_KS"), Some(Named::Pure(T::Iq4Ks)));
        assert_eq!(named("IQ3_K_R4"), Some(Named::Pure(T::Iq3K)));
        let split = Some(Named::Split { experts: T::Mxfp4, rest: T::F16 });
        assert_eq!(named("mxfp4+f16"), split);
        assert_eq!(named("F16 rest, MXFP4 experts"), split);
        assert_eq!(named("my-own [f32:1 q8_0:2]"), None, "the table says more");
    }

    #[test]
    fn tables_of_types() {
        let mix = Mix::parse("IQ3 [f32:361 q8_0:612 iq3_k_r4:116 iq3_k:2]").unwrap();
        let counts: Vec<_> = mix.counts.unwrap().iter().map(|(k, n)| (k.name(), *n)).collect();
        assert_eq!(counts, [("f32", 361), ("q8_0", 612), ("iq3_k", 118)]);
        assert!(Mix::parse("f32:1, q4_K:2").unwrap().counts.is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |text: &str| Mix::parse(text).unwrap_err().to_string();
        assert!(said("Q4_K_MM").contains("unknown mix `Q4_K_MM`: `Q4_K_MM` is no recipe"));
        assert!(said("").contains("it is empty"));
        assert!(said("x [q4_K:1 ...]").contains("the table of types is cut off"));
        assert!(said("f32:1 q9_k:2").contains("`q9_k` is no type"));
        assert!(said("f32:many").contains("`f32:many` counts no tensors"));
        assert!(said("f32:1 q4_k").contains("`q4_k` is not TYPE:TENSORS"));
        assert!(said("x []").contains("the table of types is empty"));
    }
}
