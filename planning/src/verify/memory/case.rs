//! One report with its model, its engine and what its settings say.

use hotset_cost_models::model::layer::Mixer;
use hotset_cost_models::model::{GgufBytes, Parallel};
use hotset_cost_models::{Mix, Model};

use super::super::settings::{Placement, Told};
use super::super::{MemoryRow, WhyNot};
use super::files::{File, Files};
use crate::engine::Engine;
use crate::engine::memory::{BufferRules, EngineMemory, Latent, ProfileRules};

/// No run has more tokens of a sequence, of a batch, or sequences.
const MOST_COUNT: u64 = 1 << 32;

/// A report and what its predictions need.
pub(super) struct Case<'a> {
    pub row: &'a MemoryRow,
    pub engine: &'a Engine,
    pub memory: &'a EngineMemory,
    pub model: Model,
    pub told: Told,
    file: Option<File>,
}

/// A file's bytes as far as the report knows them.
pub(super) struct Stored {
    pub bytes: GgufBytes,
    /// What the file's own size says over the formulas.
    pub factor: f64,
    /// The mix is known, not the size alone.
    pub known: bool,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        row: &'a MemoryRow,
        engine: &'a Engine,
        model: Model,
        files: &Files,
    ) -> Result<Self, WhyNot> {
        let counts = [row.context, row.parallel, row.ubatch, row.batch];
        if counts.into_iter().flatten().any(|count| count > MOST_COUNT) {
            return Err(WhyNot::new(format!(
                "a count of tokens or sequences is over {MOST_COUNT}"
            )));
        }
        let memory = engine.memory.as_ref();
        let memory =
            memory.ok_or_else(|| WhyNot::new(format!("no memory of {} is known", engine.name)))?;
        let told = Told::of(&files.notes(row), &row.settings);
        let file = files.get(row).cloned();
        Ok(Self { row, engine, memory, model, told, file })
    }

    pub(super) fn buffers(&self) -> Result<&'a BufferRules, WhyNot> {
        let rules = self.memory.buffers.as_ref();
        rules.ok_or_else(|| WhyNot::new(format!("{} plans no buffers by graph", self.engine.name)))
    }

    pub(super) fn profile(&self) -> Result<&'a ProfileRules, WhyNot> {
        let rules = self.memory.profile.as_ref();
        rules.ok_or_else(|| WhyNot::new(format!("{} measures no run", self.engine.name)))
    }

    /// The file: by the table of types of this row or of its log, else by the format's name and, for what is loaded of
    /// it, its size.
    pub(super) fn stored(&self, use_size: bool) -> Result<Stored, WhyNot> {
        let table = self.file.as_ref().and_then(|file| file.table.as_deref());
        let text = table.unwrap_or(&self.row.format);
        let size = self.file.as_ref().and_then(|file| file.bytes).filter(|_| use_size);
        let mix = Mix::parse(text);
        let bytes = match (&mix, size) {
            (Ok(mix), _) => self.model.gguf_bytes(mix),
            // Whatever the mix: its size and the shares of an even one.
            (Err(_), Some(_)) => {
                let even = Mix::parse("Q4_K_M").map_err(|error| WhyNot::new(error.to_string()))?;
                self.model.gguf_bytes(&even)
            }
            (Err(error), None) => return Err(WhyNot::new(error.to_string())),
        };
        let factor = size.map_or(1.0, |size| size / (bytes.total().max(1) as f64));
        Ok(Stored { bytes, factor, known: mix.is_ok() })
    }

    pub(super) fn context(&self) -> Result<u64, WhyNot> {
        self.row.context.ok_or_else(|| WhyNot::new("the context is not stated"))
    }

    pub(super) fn sequences(&self) -> u64 {
        self.row.parallel.unwrap_or(1).max(1)
    }

    pub(super) fn micro_batch(&self) -> u64 {
        self.row.ubatch.unwrap_or(512)
    }

    /// Where weights are, as far as flags and notes say; `-ngl` beyond the layers is all of them.
    pub(super) fn placement(&self) -> Option<Placement> {
        let layers = self.model.layers.len() as f64;
        self.told.placement.or_else(|| {
            let given = self.told.words.after(&["ngl", "n-gpu-layers"])?;
            Some(match given > layers {
                true => Placement::Accelerator,
                false => Placement::LayersOnAccelerator(given),
            })
        })
    }

    /// Devices that the weights are on.
    pub(super) fn devices(&self) -> u64 {
        let spread = self.row.spread.split_whitespace().next().unwrap_or_default();
        spread.parse().unwrap_or(1)
    }

    /// How the model is sliced: `tp8 ep dcp8`, `tp2 ep`, or so many ranks.
    pub(super) fn parallel(&self) -> Parallel {
        let tensor = self.spread("tp").unwrap_or(1);
        let words: Vec<&str> = self.row.spread.split_whitespace().collect();
        let expert = match self.spread("ep") {
            Some(expert) => expert,
            None if words.contains(&"ep") => tensor,
            None => 1,
        };
        Parallel { tensor, expert }
    }

    /// The number behind a name in the spread, as in `tp8`.
    pub(super) fn spread(&self, name: &str) -> Option<u32> {
        let words = self.row.spread.split([' ', ',', '+']);
        let mut found = words.filter_map(|word| word.trim().strip_prefix(name)?.parse().ok());
        found.find(|count| (1..=1024).contains(count))
    }

    /// Ranks of a pipeline and slices together, where the report gives their product alone.
    pub(super) fn ranks(&self) -> Option<u32> {
        let words = super::super::settings::Words::of(&self.row.spread);
        let ranks = words.numbers(&["#", "ranks"])?;
        ranks.first().map(|ranks| *ranks as u32).filter(|ranks| (1..=1024).contains(ranks))
    }

    pub(super) fn latent(&self) -> Option<Latent> {
        let latents = self.model.layers.iter().any(|l| matches!(l.mixer, Mixer::Latent(_)));
        self.told.latent.filter(|_| latents)
    }

    /// Whether weights or keys of a draft model, which the report does not name, are in the figures.
    pub(super) fn foreign_draft(&self) -> Result<(), WhyNot> {
        match self.row.notes.contains("draft model") {
            true => {
                Err(WhyNot::new("a draft model that the row does not describe is in the figure"))
            }
            false => Ok(()),
        }
    }

    /// Whether the model's own draft layers are in the figures.
    pub(super) fn drafts(&self) -> bool {
        self.row.notes.contains("draft layer")
    }
}
