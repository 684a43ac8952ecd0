//! The predictors by name: what each is, what it needs, its parameters, and how it is built.

use thiserror::Error;

// All, so that a predictor is one line in the list below.
use super::*;
use crate::registry::{NoConfig, read_config};
use crate::semantic::GuideConfig;

macro_rules! predictors {
    ($($predictor:ident: $module:ident($config:ty)),* $(,)?) => {
        /// A predictor with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is described by its module's INFO")]
        pub enum PredictorSpec {
            $($predictor($config),)*
        }

        impl PredictorSpec {
            /// What people are told of this predictor.
            #[must_use]
            pub fn info(&self) -> &'static PredictorInfo {
                match self {
                    $(Self::$predictor(_) => &super::$module::INFO,)*
                }
            }

            /// Reads a predictor by its name and `key=value,...`; `None` for a name that is not
            /// one of [`PREDICTORS`].
            ///
            /// # Errors
            /// An unknown or repeated key, or a value out of its range.
            pub fn read(name: &str, parameters: &str) -> Option<Result<Self, String>> {
                $(if name == super::$module::INFO.name {
                    return Some(read_config(parameters).map(Self::$predictor));
                })*
                None
            }

            /// Bytes that such a predictor comes to hold: all that it allocates when it is built,
            /// and where it stores conversations or maps, a full store without its embeddings.
            #[must_use]
            pub fn memory(&self, layers: &Layers, horizon: Horizon) -> u64 {
                match self {
                    $(Self::$predictor(config) => $predictor::memory(layers, horizon, config),)*
                }
            }

            /// A predictor that has seen nothing yet.
            #[must_use]
            pub fn build(&self, layers: &Layers, horizon: Horizon) -> AnyPredictor {
                match self {
                    $(Self::$predictor(config) =>
                        AnyPredictor::$predictor(Box::new($predictor::new(layers, horizon, config))),)*
                }
            }
        }

        /// A predictor that is chosen at run time.
        #[derive(Debug, Clone)]
        #[allow(missing_docs, reason = "each variant is documented where it is defined")]
        pub enum AnyPredictor {
            $($predictor(Box<$predictor>),)*
        }

        impl Predictor for AnyPredictor {
            fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
                match self {
                    $(Self::$predictor(predictor) => predictor.begin_sequence(lane, opening),)*
                }
            }

            fn end_sequence(&mut self, lane: u32) {
                match self {
                    $(Self::$predictor(predictor) => predictor.end_sequence(lane),)*
                }
            }

            #[inline]
            fn observe(&mut self, token: &Token<'_>) {
                match self {
                    $(Self::$predictor(predictor) => predictor.observe(token),)*
                }
            }

            #[inline]
            fn predict(
                &mut self,
                token: &Token<'_>,
                target: u32,
                width: usize,
                guesses: &mut Vec<Guess>,
            ) {
                match self {
                    $(Self::$predictor(predictor) =>
                        predictor.predict(token, target, width, guesses),)*
                }
            }

            fn set_learning(&mut self, learning: bool) {
                match self {
                    $(Self::$predictor(predictor) => predictor.set_learning(learning),)*
                }
            }
        }

        /// All predictors that need nothing but what [`Predictor`] is told, in the order in which
        /// they are listed.
        pub static PREDICTORS: &[&PredictorInfo] = &[$(&super::$module::INFO,)*];
    };
}

predictors! {
    CrossLayer: cross_layer(CrossLayerConfig),
    PreviousToken: previous_token(NoConfig),
    Popularity: popularity(NoConfig),
    Semantic: semantic(GuideConfig),
    ActivationMap: activation_map(ActivationMapConfig),
    ExpertMap: expert_map(ExpertMapConfig),
    Linear: linear(LinearConfig),
}

/// A predictor that would take more memory than is allowed; nothing was allocated for it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("predictor '{predictor}' would take {bytes} bytes of memory, but may take {limit}")]
pub struct PredictorTooLarge {
    /// The predictor.
    pub predictor: &'static str,
    /// Bytes that it would take.
    pub bytes: u64,
    /// Bytes that it may take.
    pub limit: u64,
}

impl PredictorSpec {
    /// Refuses a predictor that would come to hold more than `limit` bytes. Nothing is allocated:
    /// ask before [`build`](Self::build).
    ///
    /// # Errors
    /// Says how much it would take.
    pub fn check_memory(
        &self,
        layers: &Layers,
        horizon: Horizon,
        limit: u64,
    ) -> Result<(), PredictorTooLarge> {
        let bytes = self.memory(layers, horizon);
        if bytes <= limit {
            return Ok(());
        }
        Err(PredictorTooLarge { predictor: self.info().name, bytes, limit })
    }

    /// Who makes the profiles that the predictor goes by; `None` for one that goes by none.
    #[must_use]
    pub fn guide(&self) -> Option<GuideConfig> {
        match self {
            Self::Semantic(config) => Some(*config),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predictor_is_read_by_its_name_and_lists_parameters_that_it_reads() {
        for info in PREDICTORS {
            let read = |parameters: &str| PredictorSpec::read(info.name, parameters).unwrap();
            let spec = read("").unwrap();
            assert_eq!(spec.info(), *info);
            assert!(info.summary.len() <= 60, "{} has too long a summary", info.name);
            for parameter in info.parameters {
                let text = format!("{}={}", parameter.name, parameter.default);
                assert_eq!(read(&text), Ok(spec.clone()), "{text}: the default stated is another");
            }
            assert!(read("no-such-key=1").is_err());
        }
        assert_eq!(PredictorSpec::read("magic", ""), None);
    }
}
