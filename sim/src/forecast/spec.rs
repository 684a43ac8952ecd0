//! The prefetch source and its control as people name them: `name:key=value,...`.

use std::fmt;
use std::str::FromStr;

use hotset_policies::parse_parameters;
use hotset_policies::predict::{
    Horizon, PREDICTORS, PredictorInfo, PredictorSpec, PrefetchControl,
};
use serde::{Serialize, Serializer};

use super::oracle::{self, OracleConfig};
use super::recorded;
use crate::SimError;

/// What is prefetched.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Prefetch {
    /// Nothing.
    #[default]
    None,
    /// What a source predicts.
    By(Forecast),
}

/// A prefetch source and what is made of its guesses.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// The prefetch source.
    pub source: PrefetchSource,
    /// What is fetched of it.
    pub control: PrefetchControl,
    /// When a predictor that learns does so.
    pub learn: Learn,
    text: String,
}

/// When a predictor learns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Learn {
    /// On the training part, where there is one, and on in the run.
    #[default]
    Both,
    /// In the run alone: it begins knowing nothing.
    Online,
    /// On the training part alone.
    Trained,
}

impl FromStr for Learn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "both" => Ok(Self::Both),
            "online" => Ok(Self::Online),
            "trained" => Ok(Self::Trained),
            _ => Err(format!("learn = '{text}' is none of both, online, trained")),
        }
    }
}

/// The prefetch source.
#[derive(Debug, Clone, PartialEq)]
pub enum PrefetchSource {
    /// The predictions that the trace recorded.
    Recorded,
    /// The future, with errors.
    Oracle(OracleConfig),
    /// A predictor that sees what an engine sees.
    Learned(PredictorSpec),
}

impl PrefetchSource {
    /// What people are told of it.
    #[must_use]
    pub fn info(&self) -> &'static PredictorInfo {
        match self {
            Self::Recorded => &recorded::INFO,
            Self::Oracle(_) => &oracle::INFO,
            Self::Learned(spec) => spec.info(),
        }
    }
}

impl Forecast {
    /// `source` under the default control, learning as it goes.
    #[must_use]
    pub fn new(source: PrefetchSource) -> Self {
        let text = source.info().name.to_owned();
        Self { source, control: PrefetchControl::default(), learn: Learn::Both, text }
    }

    /// The distances at which it predicts.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        self.control.horizon()
    }

    /// Whether it must be trained on something before the run: it learns, but not in the run.
    #[must_use]
    pub fn needs_training(&self) -> bool {
        self.learn == Learn::Trained
    }
}

/// All predictors, in the order in which they are listed.
pub fn predictors() -> impl Iterator<Item = &'static PredictorInfo> {
    [&recorded::INFO].into_iter().chain(PREDICTORS.iter().copied()).chain([&oracle::INFO])
}

impl FromStr for Prefetch {
    type Err = SimError;

    /// Reads `none`, `ahead` or `cross-layer:order=2,lookahead=2,width=4,learn=trained`.
    fn from_str(text: &str) -> Result<Self, SimError> {
        let wrong = |reason: String| SimError::PrefetchText { text: text.to_owned(), reason };
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if name == "none" {
            return match parameters {
                "" => Ok(Self::None),
                _ => Err(wrong("'none' has no parameters".to_owned())),
            };
        }
        let (mut control, mut own, mut learn) = (Vec::new(), Vec::new(), None);
        for pair in parameters.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key.trim() {
                "learn" if learn.is_none() => {
                    learn = Some(value.trim().parse::<Learn>().map_err(wrong)?);
                }
                key if PrefetchControl::KEYS.contains(&key) => control.push(pair),
                _ => own.push(pair),
            }
        }
        let control: PrefetchControl = parse_parameters(&control.join(",")).map_err(wrong)?;
        control.check().map_err(wrong)?;
        let own = own.join(",");
        let source = if name == recorded::INFO.name {
            parse_parameters::<hotset_policies::NoConfig>(&own).map(|_| PrefetchSource::Recorded)
        } else if name == oracle::INFO.name {
            oracle::config(&own).map(PrefetchSource::Oracle)
        } else {
            match PredictorSpec::read(name, &own) {
                Some(read) => read.map(PrefetchSource::Learned),
                None => {
                    let names: Vec<&str> = predictors().map(|info| info.name).collect();
                    Err(format!("there are none, {}", names.join(", ")))
                }
            }
        }
        .map_err(wrong)?;
        if learn.is_some() && !matches!(source, PrefetchSource::Learned(_)) {
            return Err(wrong(format!("'{name}' does not learn: it has no 'learn'")));
        }
        let text = text.trim().to_owned();
        Ok(Self::By(Forecast { source, control, learn: learn.unwrap_or_default(), text }))
    }
}

impl fmt::Display for Prefetch {
    /// As it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::By(forecast) => f.write_str(&forecast.text),
        }
    }
}

impl Serialize for Prefetch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use hotset_policies::predict::{CrossLayerConfig, Order};

    use super::*;
    use hotset_policies::predict::Priority;

    fn read(text: &str) -> Forecast {
        match text.parse().unwrap() {
            Prefetch::By(forecast) => forecast,
            Prefetch::None => panic!("{text} is none"),
        }
    }

    #[test]
    fn prefetchers_are_read_by_name() {
        assert_eq!("none".parse(), Ok(Prefetch::None));
        assert_eq!(read("ahead"), Forecast::new(PrefetchSource::Recorded));
        let two = read("cross-layer:order=2,lookahead=2,width=4,learn=trained,priority=confidence");
        let config = CrossLayerConfig { order: Order::Two, ..CrossLayerConfig::default() };
        assert_eq!(two.source, PrefetchSource::Learned(PredictorSpec::CrossLayer(config)));
        assert_eq!((two.control.lookahead, two.control.width), (2, 4));
        assert_eq!((two.control.priority, two.learn), (Priority::Confidence, Learn::Trained));
        assert_eq!(two.horizon(), Horizon::at(2));
        assert!(two.needs_training());
        assert_eq!(read("ahead:reach=3").horizon(), Horizon { nearest: 1, farthest: 3 });
        for info in predictors() {
            assert_eq!(read(info.name).source.info(), info);
        }
    }

    #[test]
    fn the_defaults_of_control_are_those_stated() {
        for parameter in PrefetchControl::PARAMETERS {
            let text = format!("cross-layer:{}={}", parameter.name, parameter.default);
            let stated = read(&text);
            assert_eq!(
                (stated.control, stated.learn),
                (PrefetchControl::default(), Learn::Both),
                "{text}"
            );
            assert!(parameter.name == "learn" || PrefetchControl::KEYS.contains(&parameter.name));
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let told = |text: &str| text.parse::<Prefetch>().unwrap_err().to_string();
        assert!(told("ahead:lookahead=0").contains("at least 1 layer"));
        assert!(told("ahead:reach=0").contains("at least 1 layer"));
        assert!(told("ahead:depth=1").contains("unknown field `depth`"));
        assert!(told("magic").contains("there are none, ahead, "));
        assert!(told("none:width=1").contains("no parameters"));
        assert!(told("ahead:learn=both").contains("does not learn"));
        assert!(told("popularity:learn=maybe").contains("none of both, online, trained"));
        assert!(told("ahead:threshold=2").contains("threshold = 2 is not within 0 to 1"));
        assert!(told("ahead:budget=-1").contains("budget"));
        assert!(told("cross-layer:order=3").contains("neither 1 nor 2"));
        assert!(told("oracle:precision=0").contains("precision"));
    }
}
