//! The deterministic replay core: a trace's steps in, decisions and prices out.
//!
//! The simulator is an engine that copies nothing: it drives the real
//! [`ExpertCache`](hotset_policies::ExpertCache) with a recorded trace, counts its plans and
//! prices every byte that they move. The same input, flags and seed give the same result on any
//! machine, with any number of threads.

mod adaptive;
mod bootstrap;
mod bypass;
mod capacity;
mod columns;
mod compare;
mod compose;
mod counts;
mod curve;
mod device;
mod drive;
mod elastic;
mod engine;
mod error;
mod forecast;
mod future;
mod host_memory;
mod host_side;
mod intervals;
mod journal;
mod knee;
mod memory;
mod meter;
mod open_loop;
mod parts;
mod phase_filter;
mod placing;
mod prefetching;
mod prefill;
mod prepare;
mod prices;
mod progress;
mod replay;
mod replay_report;
mod report;
mod request;
mod sampling;
mod sequence_counts;
mod sequences;
mod sequential;
mod serving;
mod setting;
mod size;
mod steps;
mod sweep;
pub mod timeline;
mod training;
mod verify_live;

pub use adaptive::AdaptiveSplit;
pub use bootstrap::{Interval, Resamples, Test, drawn_sum};
pub use capacity::{Capacity, Scope, even_split};
pub use columns::check_columns;
pub use compare::{compare, compare_misses};
pub use compose::{Arrival, Composition};
pub use counts::{Bucket, Counts, TierCounts, Window};
pub use curve::{CurveSetting, LruCurve};
pub use device::{DecisionDigest, Device, DeviceEvent, PassedExpert};
pub use drive::{EventSink, drive, drive_watched};
pub use elastic::{Change, Schedule};
pub use error::SimError;
pub use forecast::{
    Forecast, GuidedPolicy, Learn, OracleConfig, Prefetch, PrefetchSource, Quality, check_needs,
    predictors, score, score_predictor, train_predictor, trained, trained_guide,
};
pub use future::Futures;
pub use host_memory::{HostMemory, HostSetting, Tiered};
pub use knee::{Knee, KneeRule, knee_of_chord, knee_of_saving};
pub use memory::POLICY_MEMORY;
pub use open_loop::{OPEN_LOOP, OpenLoop};
pub use parts::Parts;
pub use phase_filter::PhaseFilter;
pub use placing::Placed;
pub use prefill::Prefill;
pub use prepare::Preparation;
pub use prices::{Breakdown, Prices, SplitPrice};
pub use progress::ReplayProgress;
pub use replay::{replay, replay_on, replay_timed, replay_until};
pub use replay_report::{LayerRow, LayerTime, Recording, ReplayReport, StepTimes, replay_in_full};
pub use report::{LinkPrice, Report, Row, SCHEMA, Settings, TraceSummary};
pub use request::{Compare, CountedUses, Named, Training};
pub use sampling::{SampleSummary, Sampled, SampledPrice};
pub use sequence_counts::SequenceCounts;
pub use serving::Serving;
pub use setting::{Semantics, Setting};
pub use size::Size;
pub use steps::{PREFILL_CHUNK, Steps};
pub use sweep::{LruPoints, Sweep, SweepReport, sweep, sweep_part};
pub use timeline::{Compute, CopyOrder, Spent, Splits, StepTime, TimeModel, Timeline, Times, Wait};
pub use training::{Shuffle, SplitTrace, TrainingSplit, uses};
pub use verify_live::{LiveError, LiveReport, LiveRow, LiveSpent, PrefetchEffect, verify_live};
