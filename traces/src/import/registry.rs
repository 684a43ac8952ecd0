//! The one list of importers: a line each.

use super::info::FormatInfo;
use super::{
    bigmoe, coli_route, dynamo, esft, eval_callback, flame, ids, jsonl, lattice, llama_csv,
    llama_nvmoe, moe_stream, named, nested_json, npy, npz, nvmoe, parquet, policylang, rollout,
    safetensors, sglang, sglang_json, tables, vllm, vllm_json, warp,
};

/// Makes [`Format`] and the registry from the lines below.
macro_rules! importers {
    ($($(#[$doc:meta])* $format:ident => $info:expr,)*) => {
        /// A format that can be imported.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        const REGISTRY: &[FormatInfo] = &[$($info,)*];
        const FORMATS: &[Format] = &[$(Format::$format,)*];
    };
}

importers! {
    /// `hotset-npz/1`, or the arrays of a Hugging Face recording.
    Npz => npz::INFO,
    /// A bare array of ids.
    Npy => npy::INFO,
    /// One integer a line.
    Ids => ids::INFO,
    /// The arrays of [`Format::Npz`] as safetensors.
    Safetensors => safetensors::INFO,
    /// One token a line, experts by layer.
    Jsonl => jsonl::INFO,
    /// One row a token and layer.
    Parquet => parquet::INFO,
    /// vLLM's `routed_experts`, one array a request.
    Vllm => vllm::INFO,
    /// vLLM's HTTP replies.
    VllmJson => vllm_json::INFO,
    /// SGLang's recorder, mode `per_token`.
    Sglang => sglang::INFO,
    /// SGLang's `/generate` replies.
    SglangJson => sglang_json::INFO,
    /// slime's rollouts.
    Slime => rollout::SLIME,
    /// miles' rollouts.
    Miles => rollout::MILES,
    /// llama.cpp, pull request 28544.
    LlamaPr28544 => llama_csv::PR28544,
    /// llama.cpp, Cartaz' fork.
    LlamaCartaz => llama_csv::CARTAZ,
    /// llama.cpp, thecodacus' fork.
    LlamaThecodacus => llama_csv::THECODACUS,
    /// llama.cpp, nvmoe's raw records.
    LlamaNvmoe => llama_nvmoe::INFO,
    /// The text of llama.cpp's eval-callback.
    LlamaEvalCallback => eval_callback::INFO,
    /// nvmoe's tokens.
    Nvmoe => nvmoe::INFO,
    /// warp's tokens.
    Warp => warp::INFO,
    /// BigMoeOnEdge's route trace.
    Bigmoe => bigmoe::INFO,
    /// moe-policylang's recorder.
    Policylang => policylang::INFO,
    /// lattice-inference's routing trace.
    Lattice => lattice::INFO,
    /// FLAME-MoE's traces.
    FlameMoe => flame::INFO,
    /// Named columns, whoever wrote them.
    Columns => named::INFO,
    /// Arrays and tensors of ids or router scores.
    Arrays => tables::INFO,
    /// ESFT's text files, one a layer.
    Esft => esft::INFO,
    /// colibri's `ROUTE_TRACE`.
    ColiRoute => coli_route::INFO,
    /// The binary stream of llama.cpp forks.
    LlamaMoeStream => moe_stream::INFO,
    /// JSON with levels of tokens and layers.
    NestedJson => nested_json::INFO,
    /// Dynamo's HTTP replies.
    Dynamo => dynamo::INFO,
}

/// All formats, in the order in which they are listed to people.
pub fn formats() -> &'static [FormatInfo] {
    REGISTRY
}

/// Every format with what the registry knows of it.
pub(crate) fn all() -> impl Iterator<Item = (Format, &'static FormatInfo)> {
    FORMATS.iter().copied().zip(REGISTRY)
}

impl Format {
    /// The format of that name; see [`formats`] for the names.
    pub fn from_name(name: &str) -> Option<Self> {
        all().find(|(_, info)| info.name == name).map(|(format, _)| format)
    }

    /// Whether it takes [`crate::ImportOptions::prompt_tokens`]: its rows are requests that do not
    /// say where their prompts end. Other formats say so, or have no requests.
    pub fn takes_prompt_tokens(self) -> bool {
        self.info().takes_prompt_tokens
    }

    /// What the registry knows of it.
    pub fn info(self) -> &'static FormatInfo {
        &REGISTRY[self as usize]
    }
}

/// The importers that give a column.
pub(crate) fn giving(column: &str) -> Vec<&'static str> {
    REGISTRY.iter().filter(|info| info.columns.contains(&column)).map(|info| info.name).collect()
}
