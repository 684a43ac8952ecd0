//! BigMoeOnEdge's route trace, version 1: a preamble of `#` lines, then CSV by column name, one
//! row for each expert that the router chose: turn, phase (0 prefill, 1 decode), step (the
//! position in the context), layer, slot (the rank), expert, weight.
//!
//! The last layer has one prompt token alone, so of a prompt only that token is a whole row.

use super::batch::{Batch, Token};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line, number, utf8};
use super::sniff::Sniff;
use crate::error::Result;
use crate::trace::Phase;

pub(super) const INFO: FormatInfo = FormatInfo {
    name: "bigmoe",
    description: "BigMoeOnEdge's route trace: CSV with turn, phase, step, layer, slot, expert, \
                  weight",
    columns: &["ids", "positions", "phases", "weights"],
    extensions: &["csv"],
    takes_prompt_tokens: false,
    recognise,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(import),
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    if sniff.comments().any(|line| line.starts_with("# route_trace")) {
        return Ok(Claim::Sure);
    }
    let columns = sniff.columns();
    let needed = ["phase", "step", "layer", "slot", "expert"];
    Claim::Likely.when(needed.iter().all(|name| columns.contains(name)))
}

/// Where the columns are.
#[derive(Clone, Copy)]
struct Columns {
    turn: Option<usize>,
    phase: usize,
    step: usize,
    layer: usize,
    slot: usize,
    expert: usize,
    weight: Option<usize>,
}

impl Columns {
    fn find(header: &str) -> Result<Self, String> {
        let place = |name: &str| header.split(',').position(|column| column.trim() == name);
        let needed = |name: &str| place(name).ok_or_else(|| format!("column {name} is missing"));
        Ok(Self {
            turn: place("turn"),
            phase: needed("phase")?,
            step: needed("step")?,
            layer: needed("layer")?,
            slot: needed("slot")?,
            expert: needed("expert")?,
            weight: place("weight"),
        })
    }
}

/// The cell that rows are being read of: turn, phase, step, layer.
type Cell = (u32, Phase, u32, u32);

fn import(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut columns = None;
    let mut cell: Option<Cell> = None;
    let (mut ids, mut weights) = (Vec::new(), Vec::new());
    let mut passes = Turns { batch: Batch::default(), turn: None };
    let source = each_line(input, |line, text| {
        let text = utf8(input, line, text)?;
        if let Some(fact) = text.strip_prefix('#') {
            preamble(fact, rows.collector());
            return Ok(());
        }
        let Some(columns) = columns else {
            let found = Columns::find(text).map_err(|problem| at_line(input, line, problem))?;
            columns = Some(found);
            return Ok(());
        };
        let Columns { turn, phase, step, layer, slot, expert, weight } = columns;
        let part = |column: usize| text.split(',').nth(column);
        let whole = |name, column| number::<u32>(input, line, name, part(column));
        let turn = turn.map_or(Ok(0), |column| whole("turn", column))?;
        let phase = match whole("phase", phase)? {
            0 => Phase::Prefill,
            1 => Phase::Decode,
            other => return Err(at_line(input, line, format!("phase {other}; 0 and 1 are known"))),
        };
        let now = (turn, phase, whole("step", step)?, whole("layer", layer)?);
        let rank = whole("slot", slot)? as usize;
        if rank == 0
            && let Some(before) = cell.replace(now)
        {
            passes.add(input, line, &mut rows, before, &ids, &weights)?;
            ids.clear();
            weights.clear();
        }
        if rank != ids.len() || cell != Some(now) {
            let problem = format!("slot {rank} where slot {} was expected", ids.len());
            return Err(at_line(input, line, problem));
        }
        ids.push(number::<u16>(input, line, "expert", part(expert))?);
        if let Some(column) = weight {
            let weight: f32 = number(input, line, "weight", part(column))?;
            if !weight.is_finite() {
                rows.collector().no_weights("the engine did not know some of them (nan)");
            }
            // Left out as a whole where one is unknown.
            weights.push(if weight.is_finite() { weight } else { 0.0 });
        }
        Ok(())
    })?;
    if let Some(cell) = cell {
        passes.add(input, 0, &mut rows, cell, &ids, &weights)?;
    }
    passes.end(input, &mut rows)?;
    passes.batch.note(&mut rows);
    rows.flush()?;
    into.read(source);
    Ok(())
}

/// `model=... n_expert=16`, or `layer=0 expert_bytes=1234`.
fn preamble(fact: &str, into: &mut Collector<'_>) {
    let value = |name: &str| {
        fact.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    };
    let count = |name: &str| value(name).and_then(|text| text.parse::<u32>().ok());
    into.stated_experts = into.stated_experts.max(count("n_expert").filter(|&n| n > 0));
    let model = value("model").map(|path| path.rsplit(['/', '\\']).next().unwrap_or(path));
    into.stated_name = into.stated_name.take().or(model.map(str::to_owned));
    let bytes = value("expert_bytes").and_then(|text| text.parse().ok());
    if let (Some(layer), Some(bytes)) = (count("layer"), bytes)
        && into.stated_bytes.len() < 1 << 16
    {
        into.stated_bytes.push((layer, bytes));
    }
}

/// Passes of the turns of a session.
struct Turns {
    batch: Batch,
    turn: Option<(u32, Phase)>,
}

impl Turns {
    fn add(
        &mut self,
        input: &Input<'_>,
        line: u64,
        rows: &mut Rows<'_, '_, '_>,
        cell: Cell,
        ids: &[u16],
        weights: &[f32],
    ) -> Result<()> {
        let (turn, phase, step, layer) = cell;
        if self.batch.ends_before(layer) || self.turn.is_some_and(|now| now != (turn, phase)) {
            self.end(input, rows)?;
        }
        self.turn = Some((turn, phase));
        let fault = |problem| at_line(input, line, problem);
        self.batch.add(fault, step.into(), layer, ids, weights)
    }

    /// A turn goes on with its session's context; where positions fall, a new one began.
    fn end(&mut self, input: &Input<'_>, rows: &mut Rows<'_, '_, '_>) -> Result<()> {
        let (Some((first, _)), Some((_, phase))) = (self.batch.tokens(), self.turn) else {
            return Ok(());
        };
        if rows.last_position().is_none_or(|last| i64::from(last) >= i64::from(first)) {
            rows.sequence(None)?;
        }
        self.batch.emit(input, rows, |token, _| Ok(Token { position: token as u32, phase }))
    }
}
