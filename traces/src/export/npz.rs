//! `hotset-npz/1`: token-major NumPy arrays in one zip, which `--from npz` reads back.
//!
//! Arrays need one top-k in all layers. Weights in bfloat16, which NumPy lacks, become f32.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{ExportFormat, ExportInfo, Out, refused};
use crate::column::ByteColumn;
use crate::error::{Error, Result};
use crate::parts::{IdData, WeightData};
use crate::trace::Trace;

pub(super) const INFO: ExportInfo = ExportInfo {
    name: "npz",
    description: "hotset-npz/1: token-major NumPy arrays in one zip, not compressed",
    columns: &[
        "ids",
        "positions",
        "phases",
        "steps",
        "token_ids",
        "weights",
        "predictions",
        "embeddings",
    ],
    format: ExportFormat::Npz,
    exporter: export,
};

/// The sequences' own numbers where they rise, else their places: readers tell sequences apart by
/// them.
pub(super) fn sequence_numbers(trace: &Trace) -> Vec<u32> {
    let ids: Vec<u32> = trace.sequences().iter().map(|sequence| sequence.id).collect();
    let rises = ids.windows(2).all(|pair| pair[0] < pair[1]);
    if rises { ids } else { (0..ids.len() as u32).collect() }
}

fn export(trace: &Trace, out: Out<'_, '_>, path: &Path) -> Result<()> {
    let shape = trace.shape();
    let layers = shape.layers();
    let top_k = layers.first().map_or(0, |layer| layer.top_k);
    if let Some(other) = layers.iter().find(|layer| layer.top_k != top_k) {
        return Err(Error::shape(format!(
            "top-k is {top_k} in layer {}, {} in layer {}: an array has one for all; export as \
             jsonl",
            layers[0].number, other.top_k, other.number
        )));
    }
    let parts = trace.parts();
    let (t, l, k) = (trace.tokens(), layers.len(), top_k as usize);
    let mut zip = Npz { zip: ZipWriter::new(UntilFault::new(out)), path };
    let ids = |ids: &IdData| if matches!(ids, IdData::U8(_)) { "|u1" } else { "<u2" };
    zip.array("expert_ids", ids(&parts.ids), &[t, l, k], parts.ids.bytes())?;
    zip.begin("sequence", "<u4", &[t])?;
    for (sequence, number) in trace.sequences().iter().zip(sequence_numbers(trace)) {
        zip.repeat(&number.to_le_bytes(), sequence.rows.len())?;
    }
    zip.array("position", "<u4", &[t], &parts.positions)?;
    zip.array("phase", "|u1", &[t], &parts.phases)?;
    if let Some(steps) = &parts.steps {
        zip.array("step", "<u4", &[t], steps)?;
    }
    if let Some(token_ids) = &parts.token_ids {
        zip.array("token_id", "<u4", &[t], token_ids)?;
    }
    match &parts.weights {
        None => {}
        Some(WeightData::U8(w)) => zip.array("expert_weights", "|u1", &[t, l, k], w)?,
        Some(WeightData::F16(w)) => zip.array("expert_weights", "<f2", &[t, l, k], w)?,
        Some(WeightData::F32(w)) => zip.array("expert_weights", "<f4", &[t, l, k], w)?,
        Some(WeightData::Bf16(w)) => {
            zip.begin("expert_weights", "<f4", &[t, l, k])?;
            w.windows(1, |_, bits| {
                let wide = |&bits: &u16| (u32::from(bits) << 16).to_le_bytes();
                let bytes: Vec<u8> = bits.iter().flat_map(wide).collect();
                zip.write(&bytes)
            })?;
        }
    }
    if let Some(data) = &parts.predictions {
        let extent = [data.lookaheads, t, l, data.width];
        zip.array("predicted_ids", ids(&data.ids), &extent, data.ids.bytes())?;
    }
    if let Some(data) = &parts.embeddings {
        let extent = [trace.sequences().len(), data.dim];
        zip.array("prompt_embedding_in", "<f2", &extent, &data.prompt_in)?;
        zip.array("prompt_embedding_out", "<f2", &extent, &data.prompt_out)?;
    }
    let info = info(trace).to_string();
    zip.begin("info", "|u1", &[info.len()])?;
    zip.write(info.as_bytes())?;
    let written = zip.zip.finish().map_err(|e| Error::io("write", path, e.into()))?;
    written.whole().map_err(|e| Error::io("write", path, e))
}

/// What the arrays cannot say.
fn info(trace: &Trace) -> serde_json::Value {
    let (shape, sequences) = (trace.shape(), trace.sequences());
    let mut info = json!({
        "format": "hotset-npz/1",
        "model": trace.name(),
        "layers": shape.layers().len(),
        "experts": shape.max_experts(),
        "moe_layer_ids": shape.layers().iter().map(|layer| layer.number).collect::<Vec<_>>(),
        "prompt_tokens": sequences.iter().map(|s| s.prompt_tokens).collect::<Vec<_>>(),
        "digest": trace.digest(),
    });
    if shape.layers().iter().any(|layer| layer.expert_bytes > 0) {
        let bytes: Vec<u64> = shape.layers().iter().map(|layer| layer.expert_bytes).collect();
        info["expert_bytes"] = json!(bytes);
    }
    if sequences.iter().any(|sequence| !sequence.label.is_empty()) {
        let labels: Vec<&str> = sequences.iter().map(|s| s.label.as_str()).collect();
        info["sequence_labels"] = json!(labels);
    }
    if sequences.iter().any(|sequence| sequence.document.is_some()) {
        info["doc"] = json!(sequences.iter().map(|s| s.document).collect::<Vec<_>>());
    }
    if sequences.iter().any(|sequence| sequence.has_repetition.is_some()) {
        info["has_repetition"] =
            json!(sequences.iter().map(|s| s.has_repetition).collect::<Vec<_>>());
    }
    info
}

/// Passes on what is written until that fails once. From then on it takes everything and keeps
/// nothing: a `ZipWriter` that is dropped after a fault writes its directory all the same, and
/// prints to standard error where it cannot.
struct UntilFault<W> {
    out: W,
    failed: bool,
}

impl<W: Write + Seek> UntilFault<W> {
    fn new(out: W) -> Self {
        Self { out, failed: false }
    }

    /// Whether everything was passed on.
    fn whole(&self) -> std::io::Result<()> {
        match self.failed {
            true => Err(std::io::Error::other("an earlier write failed")),
            false => Ok(()),
        }
    }

    /// What `work` gives, or once anything has failed what stands for it.
    fn pass<T>(
        &mut self,
        instead: T,
        work: impl FnOnce(&mut W) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        if self.failed {
            return Ok(instead);
        }
        let done = work(&mut self.out);
        self.failed = done.is_err();
        done
    }
}

impl<W: Write + Seek> Write for UntilFault<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pass(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pass((), Write::flush)
    }
}

impl<W: Write + Seek> Seek for UntilFault<W> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.pass(0, |out| out.seek(to))
    }
}

/// The zip that is being written.
struct Npz<'a, W: Write + Seek> {
    zip: ZipWriter<UntilFault<W>>,
    path: &'a Path,
}

impl<W: Write + Seek> Npz<'_, W> {
    /// Begins an array.
    fn begin(&mut self, name: &str, descr: &str, shape: &[usize]) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        self.zip
            .start_file(format!("{name}.npy"), options)
            .map_err(|e| Error::io("write", self.path, e.into()))?;
        let extent: Vec<String> = shape.iter().map(usize::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let mut text = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}",
            extent.join(", ")
        );
        // The values begin at a multiple of 64, as NumPy has it.
        text.push_str(&" ".repeat(63 - (10 + text.len()) % 64));
        text.push('\n');
        self.write(b"\x93NUMPY\x01\x00")?;
        self.write(&(text.len() as u16).to_le_bytes())?;
        self.write(text.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.zip.write_all(bytes).map_err(refused(self.path))
    }

    fn repeat(&mut self, bytes: &[u8], count: usize) -> Result<()> {
        let block = bytes.repeat(count.min(1 << 12));
        let mut left = count * bytes.len();
        while left > 0 {
            let now = left.min(block.len());
            self.write(&block[..now])?;
            left -= now;
        }
        Ok(())
    }

    fn array(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[usize],
        values: &dyn ByteColumn,
    ) -> Result<()> {
        self.begin(name, descr, shape)?;
        values.byte_windows(&mut |bytes| self.write(bytes))
    }
}
