//! A token's compute: what a person gave, or what a link's source measured beside it.
//!
//! A published link often comes with the compute of the very machine that it was measured on; to price its copies
//! beside another machine's compute turns findings around.

use serde::Serialize;

use crate::link::Link;
use crate::picos::Picos;

/// A token's compute with every expert resident, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCompute {
    /// The time; zero where nobody says.
    pub time: Picos,
    /// Where it comes from.
    pub source: ComputeSource,
}

/// Where a token's compute comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeSource {
    /// The caller.
    Given,
    /// The link's profile.
    Profile,
    /// Nobody: compute is left out.
    Unknown,
}

impl Link {
    /// A token's compute beside this link: what was `given`, else the profile's own, else nothing is known.
    ///
    /// A link's source measured both together, so its compute is the one that its copies run beside.
    pub fn token_compute(&self, given: Option<Picos>) -> TokenCompute {
        match (given, self.compute_per_token) {
            (Some(time), _) => TokenCompute { time, source: ComputeSource::Given },
            (None, Some(time)) => TokenCompute { time, source: ComputeSource::Profile },
            (None, None) => TokenCompute { time: Picos::ZERO, source: ComputeSource::Unknown },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_is_what_was_given_then_the_profiles_own() {
        let ms = Picos::from_ms_f64;
        let mut link = Link::affine("l", 0, 1);
        let said = |link: &Link, given| {
            let TokenCompute { time, source } = link.token_compute(given);
            (time, source)
        };
        assert_eq!(said(&link, None), (Picos::ZERO, ComputeSource::Unknown));
        link.compute_per_token = Some(ms(3.41));
        assert_eq!(said(&link, None), (ms(3.41), ComputeSource::Profile));
        assert_eq!(said(&link, Some(ms(0.25))), (ms(0.25), ComputeSource::Given));
    }
}
