//! Experiments over a trace: several ways to run a cache, tested on sequences that nothing was
//! trained on, compared with LRU sequence by sequence, with intervals and a verdict.
//!
//! A crate of its own beside the replay core, which compiles every policy and takes minutes to
//! build.

mod ablation;
mod advise;
mod arm;
mod break_even;
mod compared;
mod error;
mod figures;
mod folds;
mod lead;
mod prefetch;
mod protocol;
mod report;
mod run;
mod semantic;
mod tally;
mod verdict;
mod workload_run;

pub use ablation::{ABLATED, AblationReport, Gap, ablation};
pub use advise::{Advice, Advise, Answer, BoundBy, Ranked, advise, leading};
pub use arm::{Arm, Role};
pub use break_even::BreakEven;
pub use compared::{Comparison, LinkComparison, Tested};
pub use error::ExperimentError;
pub use folds::{Fold, Folds, Parts};
pub(crate) use hotset_sim::drawn_sum;
pub use hotset_sim::{Interval, Resamples, Test};
pub use lead::{Against, CostUnit, Entrant, Lead, Race, lead};
pub use prefetch::{PredictionCost, PredictorRow, PrefetchReport, prediction_costs, prefetch};
pub use protocol::{Protocol, ProtocolSummary};
pub use report::{ArmLink, ArmRow, Block, LeftOut, Repeats};
pub use semantic::{SemanticReport, semantic};
pub use tally::Tally;
pub use verdict::Verdict;
