//! The rules by which misses are copied or served by the host, and how they are named.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::registry::{Info, NoNeeds};
use crate::{Parameter, parse_parameters};

/// What becomes of misses. Those that the host serves are not shown to the cache: they take no
/// slot and evict nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissHandler {
    /// All are fetched.
    #[default]
    Fetch,
    /// The host serves all; the cache keeps what it has.
    Host,
    /// Of a layer's misses this share is fetched, rounded so that link and host finish as close
    /// together as they can, those asked for most recently first (FreeToken's rule); the host
    /// serves the rest. A link's profile gives the share where the host's kernels were measured.
    Balanced {
        /// The share in per mille, 0 to 1000.
        fetch_permille: u32,
    },
}

/// The description of a miss handler.
pub type MissHandlerInfo = Info<NoNeeds>;

/// All miss handlers with their defaults, in the order in which they are listed.
const HANDLERS: [MissHandler; 3] =
    [MissHandler::Fetch, MissHandler::Host, MissHandler::Balanced { fetch_permille: 500 }];

/// What people are told of all miss handlers, in the same order.
pub static MISS_HANDLERS: &[&MissHandlerInfo] = &[&FETCH, &HOST, &BALANCED];

static FETCH: MissHandlerInfo = MissHandlerInfo {
    name: "fetch",
    summary: "every miss is copied into the cache",
    definition: "Every expert of an event that is not resident is demanded of the cache.",
    source: "every engine that offloads experts",
    needs: NoNeeds,
    parameters: &[],
};

static HOST: MissHandlerInfo = MissHandlerInfo {
    name: "host",
    summary: "the host's cores serve every miss",
    definition: "Only an event's residents are demanded of the cache; the host computes the others where they lie, so that the cache keeps what it has.",
    source: "llama.cpp, KTransformers: experts on the CPU",
    needs: NoNeeds,
    parameters: &[],
};

static BALANCED: MissHandlerInfo = MissHandlerInfo {
    name: "balanced",
    summary: "misses are shared between link and host so that both finish together",
    definition: "Of an event's m misses, low = floor(share m) are copied, or one more where the longer of link and host, each in units of the other's rate, is then shorter; those used most recently are copied, ties going to the lower id, and the host computes the rest.",
    source: "FreeToken",
    needs: NoNeeds,
    parameters: &[Parameter {
        name: "fetch_permille",
        default: "500",
        meaning: "share of the misses that is copied, in per mille, 0 to 1000",
    }],
};

/// Parameters of the balanced handler.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BalancedConfig {
    fetch_permille: u32,
}

impl Default for BalancedConfig {
    fn default() -> Self {
        Self { fetch_permille: 500 }
    }
}

/// Why a text names no miss handler.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MissError {
    /// No handler has that name.
    #[error("there is no miss handler '{name}'")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Parameters that it does not have, or out of their range.
    #[error("miss handler '{name}': {reason}")]
    Parameters {
        /// The handler.
        name: &'static str,
        /// Why not.
        reason: String,
    },
}

impl MissHandler {
    /// What people are told of it.
    #[must_use]
    pub fn info(self) -> &'static MissHandlerInfo {
        match self {
            Self::Fetch => &FETCH,
            Self::Host => &HOST,
            Self::Balanced { .. } => &BALANCED,
        }
    }

    /// How many of `misses` are fetched.
    #[must_use]
    pub fn fetched(self, misses: u32) -> u32 {
        match self {
            Self::Fetch => misses,
            Self::Host => 0,
            Self::Balanced { fetch_permille } => balanced(misses, fetch_permille),
        }
    }
}

fn balanced(misses: u32, fetch_permille: u32) -> u32 {
    let share = u64::from(fetch_permille.min(1000));
    let low = (u64::from(misses) * share / 1000) as u32;
    // Link and host work in units of each other's rate; the longer of both decides.
    let cost = |fetched: u32| {
        let (link, host) = (u64::from(fetched), u64::from(misses - fetched));
        (link * (1000 - share)).max(host * share)
    };
    if low < misses && cost(low + 1) < cost(low) { low + 1 } else { low }
}

impl FromStr for MissHandler {
    type Err = MissError;

    /// Reads `fetch`, `host` or `balanced:fetch_permille=415`.
    fn from_str(text: &str) -> Result<Self, MissError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let handler = HANDLERS.into_iter().find(|handler| handler.info().name == name);
        let handler = handler.ok_or_else(|| MissError::Unknown { name: name.to_owned() })?;
        let wrong = |reason| MissError::Parameters { name: handler.info().name, reason };
        match handler {
            Self::Balanced { .. } => {
                let config: BalancedConfig = parse_parameters(parameters).map_err(wrong)?;
                match config.fetch_permille {
                    fetch_permille @ 0..=1000 => Ok(Self::Balanced { fetch_permille }),
                    over => Err(wrong(format!("fetch_permille = {over} is not within 0 to 1000"))),
                }
            }
            Self::Fetch | Self::Host => {
                parse_parameters::<crate::NoConfig>(parameters).map_err(wrong)?;
                Ok(handler)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_is_listed_and_read_by_its_name() {
        assert_eq!(HANDLERS.map(MissHandler::info), MISS_HANDLERS);
        for handler in HANDLERS {
            assert_eq!(handler.info().name.parse(), Ok(handler));
        }
    }

    #[test]
    fn the_balanced_share_is_freetokens() {
        // Its own test: 0.415 of 3 is 1, of 4 is 2.
        let balanced = MissHandler::Balanced { fetch_permille: 415 };
        assert_eq!([0, 1, 3, 4].map(|misses| balanced.fetched(misses)), [0, 0, 1, 2]);
        for (permille, all) in [(0, 0), (1000, 7)] {
            assert_eq!(MissHandler::Balanced { fetch_permille: permille }.fetched(7), all);
        }
        assert_eq!((MissHandler::Fetch.fetched(7), MissHandler::Host.fetched(7)), (7, 0));
        for misses in 0..200 {
            let fetched = f64::from(balanced.fetched(misses));
            assert!((fetched - 0.415 * f64::from(misses)).abs() <= 1.0);
        }
    }

    #[test]
    fn handlers_are_read_by_name() {
        for info in MISS_HANDLERS {
            assert_eq!(info.name.parse::<MissHandler>().unwrap().info(), *info);
        }
        let balanced = MissHandler::Balanced { fetch_permille: 415 };
        assert_eq!("balanced:fetch_permille=415".parse(), Ok(balanced));
        let told = |text: &str| text.parse::<MissHandler>().unwrap_err().to_string();
        assert_eq!(told("hots"), "there is no miss handler 'hots'");
        assert!(told("host:fetch_permille=1").contains("miss handler 'host'"));
        assert!(told("balanced:fetch_permille=1001").contains("not within 0 to 1000"));
    }
}
