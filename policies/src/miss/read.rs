//! Miss handlers by name, with their parameters.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use super::lossy::{self, BiasConfig, LowPrecisionConfig, millionths, within};
use super::split::q16;
use super::{FetchOrder, MISS_HANDLERS, MissHandler, Split};
use crate::{NoConfig, nearest, parse_parameters, suggestion};

/// Why a text names no miss handler.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MissError {
    /// No handler has that name.
    #[error("there is no miss handler '{name}'{}", suggestion(*.near))]
    Unknown {
        /// The name.
        name: String,
        /// The handler whose name is most like it.
        near: Option<&'static str>,
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SplitConfig {
    fetch: Option<f64>,
    fetch_permille: Option<u32>,
    max_fetch: Option<u32>,
    order: FetchOrder,
}

impl SplitConfig {
    fn split(&self) -> Result<Split, String> {
        let share = match (self.fetch, self.fetch_permille) {
            (Some(_), Some(_)) => return Err("fetch and fetch_permille are the same".to_owned()),
            (Some(share), None) => Some(within("fetch", share)?),
            (None, Some(permille @ 0..=1000)) => Some(f64::from(permille) / 1000.0),
            (None, Some(over)) => {
                return Err(format!("fetch_permille = {over} is not within 0 to 1000"));
            }
            // A cap that is given alone holds always.
            (None, None) => self.max_fetch.map(|_| 0.0),
        };
        let max_fetch = self.max_fetch.unwrap_or(1);
        Ok(Split { fetch_q16: share.map(q16), max_fetch, order: self.order })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FiddlerConfig {
    cpu: Option<u32>,
    gpu: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HybrimoeConfig {
    copy: Option<u64>,
    host: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CountConfig {
    n: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DropConfig {
    below: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SubstituteConfig {
    above: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TopConfig {
    k: Option<u32>,
}

/// All miss handlers with their defaults, in the order in which they are listed.
const HANDLERS: [MissHandler; 14] = [
    MissHandler::Fetch,
    MissHandler::Host,
    MissHandler::Balanced(Split::UNKNOWN),
    MissHandler::Freetoken(Split::UNKNOWN),
    MissHandler::UploadCap { n: 2 },
    MissHandler::Fiddler { cpu: 7, gpu: 70 },
    MissHandler::Hybrimoe { copy: None, host: None },
    MissHandler::CpuLayers { n: None },
    MissHandler::Defer { n: 2 },
    MissHandler::Drop { below_ppm: 50_000 },
    MissHandler::Substitute { above_ppm: 0 },
    lossy::LOW_PRECISION,
    lossy::BIAS,
    MissHandler::Top { k: 4 },
];

/// `default` with the parameters that are given.
fn read(default: MissHandler, parameters: &str) -> Result<MissHandler, String> {
    let split = || parse_parameters::<SplitConfig>(parameters)?.split();
    let count = || parse_parameters::<CountConfig>(parameters).map(|config| config.n);
    Ok(match default {
        MissHandler::Fetch | MissHandler::Host => {
            parse_parameters::<NoConfig>(parameters).map(|_| default)?
        }
        MissHandler::Balanced(_) => MissHandler::Balanced(split()?),
        MissHandler::Freetoken(_) => MissHandler::Freetoken(split()?),
        MissHandler::UploadCap { n } => match count()? {
            Some(0) => {
                return Err(
                    "n = 0 copies nothing: give at least 1, or miss handler 'host'".to_owned()
                );
            }
            given => MissHandler::UploadCap { n: given.unwrap_or(n) },
        },
        MissHandler::Fiddler { cpu, gpu } => {
            let given: FiddlerConfig = parse_parameters(parameters)?;
            MissHandler::Fiddler { cpu: given.cpu.unwrap_or(cpu), gpu: given.gpu.unwrap_or(gpu) }
        }
        MissHandler::Hybrimoe { .. } => {
            let HybrimoeConfig { copy, host } = parse_parameters(parameters)?;
            MissHandler::Hybrimoe { copy, host }
        }
        MissHandler::CpuLayers { .. } => MissHandler::CpuLayers { n: count()? },
        MissHandler::Defer { n } => MissHandler::Defer { n: count()?.unwrap_or(n) },
        MissHandler::Drop { below_ppm } => {
            let DropConfig { below } = parse_parameters(parameters)?;
            let below = below.map(|share| millionths("below", share)).transpose()?;
            MissHandler::Drop { below_ppm: below.unwrap_or(below_ppm) }
        }
        MissHandler::Substitute { above_ppm } => {
            let SubstituteConfig { above } = parse_parameters(parameters)?;
            let above = above.map(|share| millionths("above", share)).transpose()?;
            MissHandler::Substitute { above_ppm: above.unwrap_or(above_ppm) }
        }
        MissHandler::LowPrecision { .. } => {
            parse_parameters::<LowPrecisionConfig>(parameters)?.rule()?
        }
        MissHandler::Bias { .. } => parse_parameters::<BiasConfig>(parameters)?.rule()?,
        MissHandler::Top { k } => match parse_parameters(parameters)? {
            TopConfig { k: Some(0) } => {
                return Err("k = 0 leaves no expert: give at least 1".to_owned());
            }
            TopConfig { k: given } => MissHandler::Top { k: given.unwrap_or(k) },
        },
    })
}

impl FromStr for MissHandler {
    type Err = MissError;

    /// Reads `name` or `name:key=value,key=value`, as in `balanced:fetch=0.415`.
    fn from_str(text: &str) -> Result<Self, MissError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let default = HANDLERS.into_iter().find(|handler| handler.info().name == name);
        let default = default.ok_or_else(|| {
            let near = nearest(name, MISS_HANDLERS.iter().map(|info| info.name));
            MissError::Unknown { name: name.to_owned(), near }
        })?;
        let wrong = |reason| MissError::Parameters { name: default.info().name, reason };
        read(default, parameters).map_err(wrong)
    }
}

impl fmt::Display for MissHandler {
    /// As it can be read again; what is not known yet is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.info().name)?;
        let millionths = |part: u32| f64::from(part) / 1e6;
        match *self {
            Self::Balanced(split) | Self::Freetoken(split) => match split.fetch_q16 {
                Some(0) => write!(f, ":max_fetch={}", split.max_fetch)?,
                // Five decimals tell 1/65536 apart.
                Some(share) => write!(f, ":fetch={:.5}", f64::from(share) / 65536.0)?,
                None => return Ok(()),
            },
            Self::UploadCap { n } | Self::Defer { n } | Self::CpuLayers { n: Some(n) } => {
                write!(f, ":n={n}")?;
            }
            Self::Fiddler { cpu, gpu } => write!(f, ":cpu={cpu},gpu={gpu}")?,
            Self::Hybrimoe { copy: Some(copy), host: Some(host) } => {
                write!(f, ":copy={copy},host={host}")?;
            }
            Self::Drop { below_ppm } => write!(f, ":below={}", millionths(below_ppm))?,
            Self::Substitute { above_ppm } => write!(f, ":above={}", millionths(above_ppm))?,
            Self::LowPrecision { whole_ppm, low_ppm, size_ppm } => {
                let [whole, low, size] = [whole_ppm, low_ppm, size_ppm].map(millionths);
                write!(f, ":whole={whole},low={low},size={size}")?;
            }
            Self::Bias { lambda_ppm, keep } => {
                write!(f, ":lambda={},keep={keep}", millionths(lambda_ppm))?;
            }
            Self::Top { k } => write!(f, ":k={k}")?,
            Self::Fetch | Self::Host | Self::CpuLayers { n: None } | Self::Hybrimoe { .. } => {}
        }
        match *self {
            Self::Balanced(split) | Self::Freetoken(split) if split.order == FetchOrder::Lowest => {
                write!(f, ",order=lowest")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_told_as_they_are_read() {
        for text in [
            "fetch",
            "host",
            "balanced",
            "balanced:fetch=0.41499",
            "balanced:max_fetch=3,order=lowest",
            "upload-cap:n=1",
            "fiddler:cpu=7,gpu=70",
            "hybrimoe:copy=3,host=1",
            "cpu-layers",
            "cpu-layers:n=3",
            "defer:n=2",
            "drop:below=0.05",
            "substitute:above=0.5",
            "low-precision:whole=0.5,low=0.75,size=0.25",
            "bias:lambda=1.5,keep=2",
            "top:k=4",
        ] {
            assert_eq!(text.parse::<MissHandler>().unwrap().to_string(), text);
        }
        for share in 1..=65_536 {
            let told = MissHandler::Balanced(Split { fetch_q16: Some(share), ..Split::default() });
            assert_eq!(told.to_string().parse(), Ok(told));
        }
    }

    #[test]
    fn handlers_are_read_by_name_with_the_defaults_stated() {
        assert_eq!(HANDLERS.map(MissHandler::info), MISS_HANDLERS);
        for (info, default) in MISS_HANDLERS.iter().zip(HANDLERS) {
            let plain: MissHandler = info.name.parse().unwrap();
            assert_eq!(plain, default);
            assert!(info.summary.len() <= 64, "{} has too long a summary", info.name);
            for parameter in info.parameters.iter().filter(|of| of.name != "max_fetch") {
                if let Ok(value) = parameter.default.parse::<f64>() {
                    let text = format!("{}:{}={value}", info.name, parameter.name);
                    assert_eq!(text.parse(), Ok(plain), "{text}: the default stated is another");
                }
            }
        }
    }

    #[test]
    fn parameters_are_read() {
        let split = |text: &str| match text.parse() {
            Ok(MissHandler::Balanced(split)) => split,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(split("balanced:fetch=0.415"), Split::of_share(0.415));
        assert_eq!(split("balanced:fetch_permille=415"), Split::of_share(0.415));
        let capped = split("balanced:max_fetch=3,order=lowest");
        assert_eq!((capped.fetch_q16, capped.max_fetch), (Some(0), 3));
        assert_eq!(capped.order, FetchOrder::Lowest);
        assert_eq!(split("balanced").fetch_q16, None);
        assert_eq!("drop:below=0.05".parse(), Ok(MissHandler::Drop { below_ppm: 50_000 }));
        assert_eq!("cpu-layers:n=26".parse(), Ok(MissHandler::CpuLayers { n: Some(26) }));
        assert_eq!("top:k=6".parse(), Ok(MissHandler::Top { k: 6 }));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let told = |text: &str| text.parse::<MissHandler>().unwrap_err().to_string();
        assert_eq!(told("hots"), "there is no miss handler 'hots'; did you mean 'host'?");
        assert!(told("host:fetch_permille=1").contains("miss handler 'host'"));
        assert!(told("balanced:fetch_permille=1001").contains("not within 0 to 1000"));
        assert!(told("balanced:fetch=1.5").contains("fetch = 1.5 is not within 0 to 1"));
        assert!(told("balanced:fetch=1,fetch_permille=1").contains("the same"));
        assert!(told("upload-cap:n=0").contains("n = 0 copies nothing: give at least 1"));
        assert!(told("top:k=0").contains("at least 1"));
        assert!(told("drop:below=nan").contains("not a finite number"));
        assert!(told("low-precision:whole=0.9,low=0.5").contains("low is less than whole"));
        assert!(told("low-precision:size=0").contains("size = 0 is no copy"));
        assert!(told("bias:lambda=11").contains("lambda = 11 is not within 0 to 10"));
    }
}
