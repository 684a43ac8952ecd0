//! Predicted ids on their way into a trace: one spool a lookahead, so that shards can be joined.

use std::path::Path;
use std::sync::Arc;

use crate::column::Column;
use crate::error::{Error, Result};
use crate::parts::{IdData, PredictionData};
use crate::spool::Spool;

/// `[lookahead]` spools of 16-bit ids `[token][layer][width]`, 65,535 where there is none.
pub(super) struct PredictionSpool {
    width: usize,
    lookaheads: Vec<Spool>,
}

impl PredictionSpool {
    pub(super) fn new(folder: &Arc<Path>, lookaheads: usize, width: usize) -> Self {
        Self { width, lookaheads: (0..lookaheads).map(|_| Spool::new(folder)).collect() }
    }

    /// Lookaheads and ids in an entry.
    pub(super) fn extent(&self) -> (usize, usize) {
        (self.lookaheads.len(), self.width)
    }

    /// Appends entries of one byte an id, 255 where there is none.
    pub(super) fn extend_u8(&mut self, lookahead: usize, ids: &[u8]) -> Result<()> {
        let wide = |&id: &u8| if id == u8::MAX { u16::MAX } else { id.into() };
        let block: Vec<u16> = ids.iter().map(wide).collect();
        self.extend_u16(lookahead, &block)
    }

    /// Appends entries of two bytes an id, 65,535 where there is none.
    pub(super) fn extend_u16(&mut self, lookahead: usize, ids: &[u16]) -> Result<()> {
        self.lookaheads[lookahead].extend(ids)
    }

    /// Whether every token has them.
    pub(super) fn cover(&self, tokens: u64, layers: usize) -> bool {
        let bytes = (layers as u64).checked_mul(2 * self.width as u64);
        let bytes = bytes.and_then(|row| row.checked_mul(tokens));
        self.lookaheads.iter().all(|spool| Some(spool.len()) == bytes)
    }

    /// The column `[lookahead][token][layer][width]`, at one byte an id if `narrow`.
    pub(super) fn into_data(self, narrow: bool) -> Result<PredictionData> {
        let (lookaheads, width) = self.extent();
        let mut all: Option<Spool> = None;
        for spool in self.lookaheads {
            let all = all.get_or_insert_with(|| spool.another());
            let column: Column<u16> = spool.into_column()?;
            column.windows(1, |_, ids| {
                if !narrow {
                    return all.extend(ids);
                }
                let mut bytes = Vec::with_capacity(ids.len());
                for &id in ids {
                    let fits = u8::try_from(id).ok().filter(|&id| id < u8::MAX);
                    if fits.is_none() && id != u16::MAX {
                        let problem = format!("expert {id} is predicted, no layer has so many");
                        return Err(Error::column("predictions", problem));
                    }
                    bytes.push(fits.unwrap_or(u8::MAX));
                }
                all.extend(&bytes)
            })?;
        }
        let Some(all) = all else {
            return Err(Error::column("predictions", "no lookahead or a width of 0"));
        };
        let ids = match narrow {
            true => IdData::U8(all.into_column()?),
            false => IdData::U16(all.into_column()?),
        };
        Ok(PredictionData { lookaheads, width, ids })
    }
}
