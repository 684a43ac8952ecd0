//! Rows of reports: what people measured, one figure or one run a line.
//!
//! Empty cells are empty texts or `None`: a report does not say everything.

/// A report of memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryRow {
    /// Its id.
    pub id: String,
    /// Where it was found: rows of one source may be of one log.
    pub source: String,
    /// The engine as written.
    pub engine: String,
    /// Its version as written.
    pub engine_version: String,
    /// The model as written.
    pub model: String,
    /// What is reported: `kv`, `file_size`, `compute_buffer_gpu`, ...
    pub kind: String,
    /// The format as written, with tensor counts in brackets where a log had them.
    pub format: String,
    /// Tokens of a sequence.
    pub context: Option<u64>,
    /// Tokens of a micro-batch.
    pub ubatch: Option<u64>,
    /// Tokens of a batch.
    pub batch: Option<u64>,
    /// Sequences.
    pub parallel: Option<u64>,
    /// Format of keys and values as written.
    pub kv_type: String,
    /// Spread over devices as written (`tp8 ep`, `2 gpu`).
    pub spread: String,
    /// The device as written.
    pub gpu: String,
    /// Memory of one device, GiB.
    pub gpu_mem_gib: Option<f64>,
    /// Settings as written.
    pub settings: String,
    /// The figure.
    pub value: f64,
    /// Its unit: MiB, GiB, bytes, tokens, params, B, x, yes.
    pub unit: String,
    /// Notes as written.
    pub notes: String,
    /// The set-up was at fault.
    pub faulty: bool,
}

/// A report of speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpeedRow {
    /// Its id.
    pub id: String,
    /// The engine as written.
    pub engine: String,
    /// Its version as written.
    pub engine_version: String,
    /// The model as written.
    pub model: String,
    /// The format as written.
    pub quant: String,
    /// The file, GiB.
    pub file_gib: Option<f64>,
    /// Parameters, 10^9.
    pub params_b: Option<f64>,
    /// The device as written.
    pub gpu: String,
    /// Devices; 0 is none.
    pub gpu_count: Option<u64>,
    /// Memory of one, GiB.
    pub gpu_mem_gib: Option<f64>,
    /// Generation and lanes, or a rate, as written.
    pub pcie: String,
    /// The host's processor as written.
    pub cpu: String,
    /// Its cores and threads as written.
    pub cores_threads: String,
    /// Type of host memory as written.
    pub ram_type: String,
    /// Its channels as written.
    pub ram_channels: String,
    /// Host memory, GB.
    pub ram_gb: Option<f64>,
    /// Its bandwidth, GB/s.
    pub ram_bandwidth_gb_s: Option<f64>,
    /// `measured` or `nominal`.
    pub ram_bandwidth_basis: String,
    /// The disk as written.
    pub disk: String,
    /// How experts are placed: `ot`, `ncmoe`, `cmoe`, `resident`, ...
    pub mode: String,
    /// Layers whose experts are on the CPU.
    pub moe_layers_on_cpu: Option<u64>,
    /// Settings as written.
    pub settings: String,
    /// Tokens in the cache when decoding.
    pub context_depth: Option<u64>,
    /// Streams.
    pub batch: Option<u64>,
    /// Decode, tokens a second over all streams.
    pub tg_tokens_s: Option<f64>,
    /// Prefill, tokens a second.
    pub pp_tokens_s: Option<f64>,
    /// Of so many tokens.
    pub pp_length: Option<u64>,
    /// Time to first token, seconds.
    pub ttft_s: Option<f64>,
    /// Memory in use over all devices, GiB.
    pub gpu_mem_used_gib: Option<f64>,
    /// Hit rate, 0 to 1.
    pub hit_rate: Option<f64>,
    /// Notes as written.
    pub notes: String,
    /// The model's configuration, as whoever collected the reports believes.
    pub assumed_config: String,
    /// The device, where the report only implies it.
    pub assumed_gpu: String,
    /// The depth, where the report only implies it.
    pub assumed_context_depth: Option<u64>,
    /// The vendor's bandwidth of one device, GB/s.
    pub assumed_gpu_bandwidth_gb_s: Option<f64>,
    /// An estimate of host memory's bandwidth, GB/s.
    pub assumed_ram_bandwidth_gb_s: Option<f64>,
    /// Share of active routed expert bytes that the CPU reads.
    pub assumed_cpu_expert_fraction: Option<f64>,
    /// Active parameters, 10^9.
    pub assumed_active_params_b: Option<f64>,
    /// The set-up was at fault.
    pub faulty: bool,
}

/// What a report of speed can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeedKind {
    /// Decoding.
    Decode,
    /// Prefill.
    Prefill,
    /// Time to the first token.
    FirstToken,
}

impl SpeedKind {
    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Prefill => "prefill",
            Self::FirstToken => "ttft",
        }
    }

    /// The unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Decode | Self::Prefill => "tokens/s",
            Self::FirstToken => "s",
        }
    }
}

impl SpeedRow {
    /// The figures that the report gives.
    pub fn reported(&self) -> impl Iterator<Item = (SpeedKind, f64)> {
        [
            (SpeedKind::Decode, self.tg_tokens_s),
            (SpeedKind::Prefill, self.pp_tokens_s),
            (SpeedKind::FirstToken, self.ttft_s),
        ]
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)))
    }
}
