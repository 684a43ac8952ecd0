//! libCacheSim's `oracleGeneral`: binary records of 24 bytes, little-endian and packed: time u32,
//! object u64, size u32, and i64 the number of the object's next request (-1: there is none).
//!
//! An object is an expert by its dense key; time is the step. Requests are in the order in which
//! an engine asks: step by step, within one layer by layer, of each token the best expert first.
//! A trace without steps counts every token as one.

use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use super::{ExportFormat, ExportInfo, Out, refused};
use crate::error::Result;
use crate::trace::Trace;

pub(super) const INFO: ExportInfo = ExportInfo {
    name: "oracle-general",
    description: "libCacheSim's oracleGeneral: one request an expert, with its next use",
    columns: &["ids"],
    format: ExportFormat::OracleGeneral,
    exporter: export,
};

const RECORD: usize = 24;
/// Requests that are made at a time.
const BLOCK: usize = 1 << 16;

fn export(trace: &Trace, out: Out<'_, '_>, path: &Path) -> Result<()> {
    let shape = trace.shape();
    let steps = Steps::of(trace);
    let row_len = shape.row_len() as u64;
    let mut next = vec![-1i64; shape.total_experts() as usize];
    let mut end = trace.tokens() as u64 * row_len;
    let mut requests: Vec<(u32, u32, u32)> = Vec::new();
    // From the end to the start, for the next use is known only then.
    for step in (0..steps.len()).rev() {
        let rows = steps.step(step);
        for (layer, of) in shape.layers().iter().enumerate().rev() {
            let bytes = u32::try_from(of.expert_bytes).unwrap_or(u32::MAX).max(1);
            for index in rows.clone().rev() {
                let ids = trace.layer_ids(steps.row(index), layer);
                for rank in (0..ids.len()).rev() {
                    let key = shape.key_base(layer) + ids.get(rank);
                    requests.push((step as u32, key, bytes));
                }
                if requests.len() >= BLOCK {
                    end = flush(&mut requests, &mut next, end, out).map_err(refused(path))?;
                }
            }
        }
    }
    flush(&mut requests, &mut next, end, out).map_err(refused(path))?;
    Ok(())
}

/// Writes requests that were gathered from the last on, ending at request `end`; answers where
/// they begin.
fn flush(
    requests: &mut Vec<(u32, u32, u32)>,
    next: &mut [i64],
    end: u64,
    out: Out<'_, '_>,
) -> std::io::Result<u64> {
    let mut block = vec![0u8; requests.len() * RECORD];
    let start = end - requests.len() as u64;
    for (back, &(time, key, bytes)) in requests.iter().enumerate() {
        let number = end - 1 - back as u64;
        let record = &mut block[(number - start) as usize * RECORD..][..RECORD];
        record[..4].copy_from_slice(&time.to_le_bytes());
        record[4..12].copy_from_slice(&u64::from(key).to_le_bytes());
        record[12..16].copy_from_slice(&bytes.to_le_bytes());
        let after = std::mem::replace(&mut next[key as usize], number as i64);
        record[16..].copy_from_slice(&after.to_le_bytes());
    }
    requests.clear();
    out.seek(SeekFrom::Start(start * RECORD as u64))?;
    out.write_all(&block)?;
    Ok(start)
}

/// Rows by step: recorded ones, else every row is its own.
enum Steps {
    Single(usize),
    Recorded { order: Vec<u32>, bounds: Vec<u32> },
}

impl Steps {
    fn of(trace: &Trace) -> Self {
        let Some(steps) = trace.steps() else { return Self::Single(trace.tokens()) };
        let key = |row: &u32| (steps[*row as usize], trace.phases()[*row as usize]);
        let mut order: Vec<u32> = (0..steps.len() as u32).collect();
        order.sort_by_key(key);
        let mut bounds = vec![0];
        for run in order.chunk_by(|a, b| key(a) == key(b)) {
            bounds.push(bounds[bounds.len() - 1] + run.len() as u32);
        }
        Self::Recorded { order, bounds }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(rows) => *rows,
            Self::Recorded { bounds, .. } => bounds.len() - 1,
        }
    }

    /// The places of a step's rows.
    fn step(&self, step: usize) -> Range<usize> {
        match self {
            Self::Single(_) => step..step + 1,
            Self::Recorded { bounds, .. } => bounds[step] as usize..bounds[step + 1] as usize,
        }
    }

    fn row(&self, place: usize) -> usize {
        match self {
            Self::Single(_) => place,
            Self::Recorded { order, .. } => order[place] as usize,
        }
    }
}
