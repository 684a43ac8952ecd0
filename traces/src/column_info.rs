//! Every column that a trace may have, with the importers that give it.

use serde::Serialize;

use crate::column::IdColumn;
use crate::import::giving;
use crate::trace::Trace;

/// One column that a trace may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// Whether the trace has it.
    pub present: bool,
    /// Its element type and extent where the trace has it, else empty.
    pub detail: String,
    /// The importers that give it, where their input has it.
    pub importers: Vec<&'static str>,
}

impl Trace {
    /// Every column that a trace may have: whether this one has it, and which importers give it.
    pub fn columns(&self) -> Vec<ColumnInfo> {
        column_infos(self)
    }
}

fn column_infos(trace: &Trace) -> Vec<ColumnInfo> {
    let (tokens, row) = (trace.tokens(), trace.shape().row_len());
    let id_type = |ids: IdColumn<'_>| if matches!(ids, IdColumn::U8(_)) { "u8" } else { "u16" };
    let details = [
        ("ids", Some(format!("{} [{tokens}][{row}]", id_type(trace.ids())))),
        ("positions", Some(format!("u32 [{tokens}]"))),
        ("phases", Some(format!("u8 [{tokens}]"))),
        ("steps", trace.steps().map(|_| format!("u32 [{tokens}]"))),
        ("token_ids", trace.token_ids().map(|_| format!("u32 [{tokens}]"))),
        ("weights", trace.weights().map(|w| format!("{} [{tokens}][{row}]", w.precision()))),
        (
            "predictions",
            trace.predictions().map(|p| {
                let (ahead, layers, width) = (p.lookaheads, p.layers, p.width);
                format!("{} [{ahead}][{tokens}][{layers}][{width}]", id_type(p.ids))
            }),
        ),
        (
            "embeddings",
            trace.embeddings().map(|e| format!("2 x f16 [{}][{}]", trace.sequences().len(), e.dim)),
        ),
    ];
    details
        .into_iter()
        .map(|(name, detail)| ColumnInfo {
            name,
            present: detail.is_some(),
            detail: detail.unwrap_or_default(),
            importers: giving(name),
        })
        .collect()
}
