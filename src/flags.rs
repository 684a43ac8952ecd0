//! From a field of the libraries to the flag that sets it.
//!
//! A library knows nothing of the command line: its messages name the field, as in
//! `` `Training::share` ``, which is what its callers set. Here each such name becomes the flag that a
//! person types, so that no message is written twice.

/// Each field that a library's message names, and its flag.
const FLAGS: &[(&str, &str)] = &[
    // conformance
    ("Replayed::phase", "--phase"),
    ("Replayed::steps", "--chunk"),
    // planning
    ("Model::unknown_keys", "--allow-unknown"),
    ("MemoryReserve::activations", "--activations"),
    ("MemoryReserve::buffers", "--prefill-buffers"),
    ("MemoryReserve::chunk", "--chunk"),
    ("MemoryReserve::draft", "--draft-model"),
    ("MemoryReserve::free", "--free"),
    ("MemoryReserve::graphs", "--graphs"),
    ("MemoryReserve::host_reserved", "--host-reserved"),
    ("MemoryReserve::micro_batch", "--ubatch"),
    ("MemoryReserve::other", "--other"),
    ("MemoryReserve::overlap", "--prefill-overlap"),
    ("MemoryReserve::process", "--process"),
    ("MemoryReserve::slack", "--slack"),
    ("MemoryReserve::usable_share", "--usable-share"),
    ("Offload::bank", "--bank"),
    ("Offload::host_layers", "--cpu-moe"),
    ("Offload::load", "--load"),
    ("Offload::misses", "--miss"),
    ("Known::models", "--model"),
    ("Pace::efficiency", "--efficiency"),
    ("Pace::fixed_ms", "--fixed-ms"),
    ("Pace::measured", "--measured-step"),
    ("Parallel::expert", "--ep"),
    ("Parallel::tensor", "--tp"),
    ("Request::context", "--context"),
    ("Request::engine", "--engine"),
    ("Request::users", "--users"),
    ("Routing::of_histogram", "--histogram"),
    ("Routing::of_trace", "--trace"),
    ("Routing::of_trace::stand_in", "--stand-in"),
    ("Speculation::accept", "--accept"),
    ("Speculation::drafts", "--speculate"),
    ("Storage::rest_format", "--rest-format"),
    ("Storage::checkpoint", "--weights"),
    ("WhatIf::axes", "--vary"),
    ("HostMemory::capacity", "--host-slots"),
    ("HostMemory::policy", "--host-policy"),
    ("Serving::prefill", "--prefill"),
    ("TimeModel::disk", "--disk"),
    ("Format::Json", "--format json"),
    ("Settings::compute_ms_per_token", "--compute-ms"),
    ("Settings::machine", "--machine"),
    ("Compare::expert_bytes", "--expert-size"),
    ("Compare::links", "--link"),
    ("Compare::policy_memory", "--policy-memory"),
    ("Compare::sample", "--sample"),
    ("Compare::scopes", "--scope"),
    ("Compare::timelines", "--no-timeline"),
    ("Protocol::expert_bytes", "--expert-size"),
    ("Protocol::resamples", "--resamples"),
    ("Serving::composition", "--concurrency"),
    ("Serving::misses", "--miss"),
    ("TimeModel::compute", "--compute-ms"),
    ("TimeModel::copies", "--copies"),
    ("Training::share", "--train"),
    ("ImportOptions::prompt_tokens", "--prompt-tokens"),
    ("ImportOptions::dense_layers", "--dense-layers"),
    ("ImportOptions::skip_layers", "--skip-layers"),
    ("ImportOptions::config", "--config"),
    ("ImportOptions::top_k", "--top-k"),
    ("ImportOptions::layers", "--layers"),
    ("ImportOptions::phase", "--phase"),
    ("ImportOptions::experts", "--experts"),
    ("ImportOptions::columns", "--columns"),
    ("import::Format", "--from"),
];

/// A library's text with flags where it names fields.
pub fn with_flags(text: &str) -> String {
    let mut told = text.to_owned();
    for (field, flag) in FLAGS {
        told = told.replace(&format!("`{field}`"), flag);
    }
    told
}
