//! Router traces of mixture-of-experts models: the trace, its `.hst` file, importers, statistics.
//!
//! A [`Trace`] says which experts each token used in each layer, in the order in which a model ran
//! it. It comes from [`Trace::open`] (an `.hst` file, read in place), from [`import::import`]
//! (other formats), from [`synth::generate`], or from columns through [`TraceBuilder`]; however it
//! was made, it passed every check of [`Trace::validate`].

// Columns are read in place as little-endian integers.
#[cfg(target_endian = "big")]
compile_error!("hotset reads trace columns in place and needs a little-endian machine");

mod builder;
pub mod bundled;
mod check;
mod column;
mod column_info;
mod digest;
mod draw;
mod error;
pub mod export;
mod hst;
pub mod import;
mod map;
mod math;
mod parts;
mod reuse;
mod rows;
mod select;
mod sequence;
mod shape;
mod shuffle;
mod slice;
mod spool;
mod spooled;
mod stats;
pub mod synth;
#[doc(hidden)]
pub mod testing;
mod top;
mod trace;
mod unfinished;
mod views;
mod whole_file;
mod workload;

pub use builder::TraceBuilder;
pub use bundled::bundled;
pub use column::{IdColumn, Ids, LentBytes, LentIds, LentWeights, WeightColumn, Weights};
pub use column_info::ColumnInfo;
pub use error::{Error, Result};
pub use export::{ExportFormat, ExportInfo, export, export_formats, export_watched};
pub use hst::{Codec, VERSION as HST_VERSION, write_hst, write_hst_watched};
pub use import::histogram::{
    Histogram, HistogramFormat, HistogramInfo, LayerCounts, histogram_formats,
    refusal as histogram_refusal,
};
pub use import::{
    ColumnName, Detected, Format, ImportOptions, Imported, ReadProgress, detect, formats, import,
    import_bytes, import_files, input_bytes, recognise, recognise_with,
};
pub use map::end_on_lost_pages;
pub use reuse::ReuseHistogram;
pub use sequence::{Phase, Sequence};
pub use shape::{LayerShape, MAX_EXPERTS, MAX_LAYERS, MAX_TOTAL_EXPERTS, Shape};
pub use slice::Slice;
pub use stats::{PhaseTokens, Popularity, Reuse, Spread, Stats};
pub use synth::SynthConfig;
pub use trace::Trace;
pub use unfinished::{abandon_unfinished, finished_files};
pub use views::{Embeddings, Predictions};
pub use whole_file::{Watched, temporary_folder, write_file};
pub use workload::{MAX_SEQUENCES, Repeat, Workload, WorkloadOrder};
