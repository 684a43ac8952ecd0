//! The one list of readers of counts: a line each.

use super::info::HistogramInfo;
use super::{arrays, columns, imatrix, json, moe_infinity, sglang, tensorrt_llm, text};

/// Makes [`HistogramFormat`] and the registry from the lines below.
macro_rules! readers {
    ($($(#[$doc:meta])* $format:ident => $info:expr,)*) => {
        /// A format of histograms.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum HistogramFormat {
            $($(#[$doc])* $format,)*
        }

        const REGISTRY: &[HistogramInfo] = &[$($info,)*];
        const FORMATS: &[HistogramFormat] = &[$(HistogramFormat::$format,)*];
    };
}

readers! {
    /// llama.cpp's importance matrix as GGUF.
    Imatrix => imatrix::INFO,
    /// llama.cpp's old importance matrix, which has no counts.
    ImatrixDat => imatrix::DAT,
    /// SGLang's recorder, modes `stat` and `stat_approx`.
    SglangStat => sglang::STAT,
    /// SGLang's recorder, mode `per_pass`.
    SglangPerPass => sglang::PER_PASS,
    /// TensorRT-LLM's expert statistics.
    TensorrtLlm => tensorrt_llm::INFO,
    /// MoE-Infinity's activation matrices.
    MoeInfinity => moe_infinity::INFO,
    /// A layer, an expert and its count a line, told by names.
    Columns => columns::INFO,
    /// Counts as JSON.
    Json => json::INFO,
    /// colibri's `.coli_usage`.
    ColiUsage => text::COLI,
    /// moeprof v1.
    Moeprof => text::MOEPROF,
    /// Counts as an array.
    ArrayCounts => arrays::INFO,
}

/// All formats of histograms.
pub fn histogram_formats() -> &'static [HistogramInfo] {
    REGISTRY
}

/// Every format with what the registry knows of it.
pub(crate) fn all() -> impl Iterator<Item = (HistogramFormat, &'static HistogramInfo)> {
    FORMATS.iter().copied().zip(REGISTRY)
}

impl HistogramFormat {
    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        all().find(|(_, info)| info.name == name).map(|(format, _)| format)
    }

    /// What the registry knows of it.
    pub fn info(self) -> &'static HistogramInfo {
        &REGISTRY[self as usize]
    }
}
