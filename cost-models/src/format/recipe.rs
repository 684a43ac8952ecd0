//! llama.cpp's recipes: which type each tensor of a quantised file gets.
//!
//! Source: the rules of llama.cpp's quantiser (`src/llama-quant.cpp`, read at build of 2026-11), written as a table of
//! our own. What matters of a tensor is its role, its layer, the experts of the model, and how many query heads share
//! a key head.

mod roles;

use super::GgmlType;
use GgmlType as T;
pub use roles::{Place, Role, Shape};

macro_rules! recipes {
    ($($name:ident $text:literal $kind:ident),* $(,)?) => {
        /// A recipe of llama.cpp's quantiser.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Recipe { $(#[doc = $text] $name,)* }

        impl Recipe {
            /// Every recipe.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, as people type it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The type of tensors that no rule singles out.
            pub fn base(self) -> GgmlType {
                match self { $(Self::$name => T::$kind,)* }
            }
        }
    };
}

recipes! {
    F32 "F32" F32, F16 "F16" F16, Bf16 "BF16" Bf16,
    Q4_0 "Q4_0" Q4_0, Q4_1 "Q4_1" Q4_1, Q5_0 "Q5_0" Q5_0, Q5_1 "Q5_1" Q5_1, Q8_0 "Q8_0" Q8_0,
    Q2K "Q2_K" Q2K, Q2KS "Q2_K_S" Q2K,
    Q3KS "Q3_K_S" Q3K, Q3KM "Q3_K_M" Q3K, Q3KL "Q3_K_L" Q3K,
    Q4KS "Q4_K_S" Q4K, Q4KM "Q4_K_M" Q4K, Q5KS "Q5_K_S" Q5K, Q5KM "Q5_K_M" Q5K, Q6K "Q6_K" Q6K,
    Iq1S "IQ1_S" Iq1S, Iq1M "IQ1_M" Iq1M,
    Iq2Xxs "IQ2_XXS" Iq2Xxs, Iq2Xs "IQ2_XS" Iq2Xs, Iq2S "IQ2_S" Iq2Xs, Iq2M "IQ2_M" Iq2S,
    Iq3Xxs "IQ3_XXS" Iq3Xxs, Iq3Xs "IQ3_XS" Iq3S, Iq3S "IQ3_S" Iq3S, Iq3M "IQ3_M" Iq3S,
    Iq4Nl "IQ4_NL" Iq4Nl, Iq4Xs "IQ4_XS" Iq4Xs,
    Tq1_0 "TQ1_0" Tq1_0, Tq2_0 "TQ2_0" Tq2_0,
    Mxfp4 "MXFP4" Mxfp4, Nvfp4 "NVFP4" Nvfp4,
}

use Recipe as R;

/// The layers that the mixed recipes give more bits: the first and last eighth, and every third between.
fn more_bits(layer: u32, layers: u32) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

impl Recipe {
    /// The recipe of this name, in either case; `Q3_K`, `Q4_K` and `Q5_K` are the medium ones, `MXFP4_MOE` is `MXFP4`.
    pub fn from_name(name: &str) -> Option<Self> {
        let upper = name.to_ascii_uppercase();
        let full = match upper.as_str() {
            "Q3_K" => "Q3_K_M",
            "Q4_K" => "Q4_K_M",
            "Q5_K" => "Q5_K_M",
            "MXFP4_MOE" => "MXFP4",
            other => other,
        };
        Self::ALL.iter().copied().find(|recipe| recipe.name() == full)
    }

    /// The type that the quantiser gives a tensor, fallbacks for widths included.
    pub fn type_of(self, place: Place, model: &Shape) -> GgmlType {
        if place.role == Role::Small {
            return T::F32;
        }
        let base = self.base();
        if matches!(base, T::F32 | T::F16 | T::Bf16) {
            return base;
        }
        self.chosen(place, model).for_columns(place.columns)
    }

    fn chosen(self, place: Place, model: &Shape) -> GgmlType {
        let base = self.base();
        let head = place.role == Role::Head || (place.role == Role::Embedding && model.tied);
        if self == R::Mxfp4 {
            return if place.routed { base } else { T::Q8_0 };
        }
        if head {
            return self.head(place.columns);
        }
        match place.role {
            Role::Embedding => self.embedding(),
            _ if self.is_tiny() => self.tiny(place, model),
            Role::Fused if model.before_2026 => self.fused(),
            Role::FromLatent if model.before_2026 => base,
            Role::Value | Role::Fused | Role::FromLatent => self.value(place, model),
            Role::Key if model.experts == 8 => T::Q8_0,
            Role::Key | Role::Query if self == R::Iq3Xs => T::Iq3Xxs,
            Role::Key | Role::Query if self == R::Iq3Xxs => T::Iq2S,
            Role::Down => self.down(place.layer, model),
            Role::Output => self.output(model),
            Role::Into if self == R::Iq3Xs => {
                let eighth = model.layers / 8;
                let middle = (eighth..7 * model.layers / 8).contains(&place.layer);
                if middle { T::Iq3Xxs } else { base }
            }
            _ => base,
        }
    }

    /// The recipes of 1 and 2 bits have rules of their own.
    fn is_tiny(self) -> bool {
        matches!(self, R::Iq1S | R::Iq1M | R::Iq2Xxs | R::Iq2Xs | R::Iq2S | R::Iq2M)
    }

    fn head(self, columns: u64) -> GgmlType {
        let base = self.base();
        if !columns.is_multiple_of(base.block()) || base == T::Q8_0 {
            T::Q8_0
        } else if self.is_tiny() || self == R::Iq3Xxs {
            T::Q5K
        } else {
            T::Q6K
        }
    }

    fn embedding(self) -> GgmlType {
        match self {
            R::Iq2Xxs | R::Iq2Xs | R::Iq1S | R::Iq1M => T::Q2K,
            R::Iq2S | R::Iq2M | R::Iq3Xxs => T::Iq3S,
            R::Tq1_0 | R::Tq2_0 => T::Q4K,
            _ => self.base(),
        }
    }

    fn tiny(self, place: Place, model: &Shape) -> GgmlType {
        let two = matches!(self, R::Iq2S | R::Iq2M);
        let better = if two { T::Iq3S } else { T::Q2K };
        match place.role {
            Role::Fused | Role::FromLatent if model.before_2026 => self.base(),
            Role::Value | Role::Fused | Role::FromLatent => {
                if model.group >= 4 || model.experts >= 4 { T::Q4K } else { better }
            }
            Role::Key if model.experts == 8 => T::Q4K,
            Role::Down if place.layer < model.layers / 8 => better,
            Role::Output if model.experts == 8 => T::Q5K,
            Role::Output if matches!(self, R::Iq1S | R::Iq1M) => T::Iq2Xxs,
            Role::Output if two => T::Iq3S,
            _ => self.base(),
        }
    }

    fn value(self, place: Place, model: &Shape) -> GgmlType {
        if model.experts == 8 {
            return T::Q8_0;
        }
        let shared = model.group >= 4;
        match self {
            R::Q2K if shared => T::Q4K,
            R::Q2K => T::Q3K,
            R::Q2KS | R::Iq3Xxs | R::Iq3Xs | R::Iq3S if shared => T::Q4K,
            R::Iq3Xxs if !model.imatrix => T::Iq3S,
            R::Iq3M => T::Q4K,
            R::Q3KM if place.value < 2 => T::Q5K,
            R::Q3KM => T::Q4K,
            R::Q3KL => T::Q5K,
            R::Iq4Nl | R::Iq4Xs if shared => T::Q5K,
            R::Q4KM | R::Q5KM if more_bits(place.value, model.values) => T::Q6K,
            R::Q4KS if place.value < 4 => T::Q5K,
            _ => self.base(),
        }
    }

    fn fused(self) -> GgmlType {
        match self {
            R::Q3KM | R::Q3KL | R::Iq3M => T::Q4K,
            R::Q4KM => T::Q5K,
            R::Q5KM => T::Q6K,
            _ => self.base(),
        }
    }

    fn down(self, layer: u32, model: &Shape) -> GgmlType {
        let first_eighth = layer < model.layers / 8;
        match self {
            R::Q2K => T::Q3K,
            R::Q2KS if first_eighth => T::Q4K,
            R::Iq3Xxs if !model.imatrix => {
                if first_eighth {
                    T::Q4K
                } else {
                    T::Q3K
                }
            }
            R::Iq4Nl | R::Iq4Xs if first_eighth && !model.imatrix => T::Q5K,
            R::Q4_0 if first_eighth && model.imatrix => T::Q4_1,
            R::Q5_0 if first_eighth && model.imatrix => T::Q5_1,
            R::Q3KM if layer < model.layers / 16 => T::Q5K,
            R::Q3KM => T::Q4K,
            R::Iq3M if first_eighth || (model.experts == 8 && more_bits(layer, model.layers)) => {
                T::Q4K
            }
            R::Q3KL => T::Q5K,
            R::Q4KM | R::Q5KM if more_bits(layer, model.layers) => T::Q6K,
            R::Q4KS if first_eighth => T::Q5K,
            _ => self.base(),
        }
    }

    fn output(self, model: &Shape) -> GgmlType {
        if model.experts == 8 {
            let bumped = [
                R::Q2K,
                R::Iq3Xs,
                R::Iq3Xxs,
                R::Q3KS,
                R::Q3KM,
                R::Iq4Nl,
                R::Q4KS,
                R::Q4KM,
                R::Iq3S,
                R::Iq3M,
                R::Iq4Xs,
            ];
            return if bumped.contains(&self) { T::Q5K } else { self.base() };
        }
        match self {
            R::Q2K => T::Q3K,
            R::Iq3Xxs => T::Iq3S,
            R::Q3KM | R::Iq3M => T::Q4K,
            R::Q3KL => T::Q5K,
            _ => self.base(),
        }
    }
}

#[cfg(test)]
mod tests;
