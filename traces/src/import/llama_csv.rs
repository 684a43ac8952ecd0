//! llama.cpp's CSV dialects, which forks write under one name (`MOE_TRACE_OUT`) in different
//! layouts: pull request 28544 (`layer,expert`), Cartaz (`phase,token,layer,rank,expert`) and
//! thecodacus (`pos,layer,id0,id1,...`, prompts at negative positions).

use super::batch::{Batch, Token};
use super::collect::Collector;
use super::info::{Claim, FormatInfo, FuzzTarget, Importer};
use super::input::Input;
use super::lines::{Rows, at_line, each_line, number, utf8};
use super::sniff::Sniff;
use crate::error::Result;
use crate::sequence::Phase;

const COLUMNS: &[&str] = &["ids", "positions", "phases"];

pub(super) const PR28544: FormatInfo = FormatInfo {
    name: "llama-pr28544",
    description: "llama.cpp pull request 28544: layer,expert; needs `ImportOptions::top_k`, for \
                  no line says \
                  where a token ends",
    columns: COLUMNS,
    extensions: &["csv"],
    takes_prompt_tokens: false,
    recognise: is_pr28544,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(pr28544),
};

pub(super) const CARTAZ: FormatInfo = FormatInfo {
    name: "llama-cartaz",
    description: "llama.cpp, Cartaz' fork: phase,token,layer,rank,expert",
    columns: COLUMNS,
    extensions: &["csv"],
    takes_prompt_tokens: false,
    recognise: is_cartaz,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(cartaz),
};

pub(super) const THECODACUS: FormatInfo = FormatInfo {
    name: "llama-thecodacus",
    description: "llama.cpp, thecodacus' fork: pos,layer,id0,id1,...; prompts have negative \
                  positions",
    columns: COLUMNS,
    extensions: &["csv"],
    takes_prompt_tokens: false,
    recognise: is_thecodacus,
    fuzz: FuzzTarget::Lines,
    importer: Importer::Each(thecodacus),
};

fn is_pr28544(sniff: &Sniff<'_>) -> Result<Claim> {
    let columns = sniff.columns();
    let header = columns == ["layer", "expert"];
    if header {
        return Ok(Claim::Sure);
    }
    Claim::Possible.when(columns.len() == 2 && all_whole(&columns))
}

fn is_cartaz(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.columns().starts_with(&["phase", "token", "layer"]))
}

fn is_thecodacus(sniff: &Sniff<'_>) -> Result<Claim> {
    let columns = sniff.columns();
    if columns.len() < 3 || !all_whole(&columns) {
        return Ok(Claim::No);
    }
    Claim::Possible.when(has_positions(sniff.text()))
}

/// Whether the first column can only be positions: some are negative, or beyond any layer.
fn has_positions(text: &str) -> bool {
    // No model has as many layers.
    const LAYERS: i64 = 256;
    let mut first = text.lines().filter_map(|line| line.split(',').next()?.trim().parse().ok());
    first.any(|position: i64| !(0..LAYERS).contains(&position))
}

fn all_whole(columns: &[&str]) -> bool {
    columns.iter().all(|text| text.parse::<i64>().is_ok())
}

/// Ids in order of layers; a layer's run of several top-k is a prompt.
fn pr28544(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let config = into.config.as_ref().and_then(|config| config.top_k);
    let top_k = into.options.top_k.or(config);
    let mut rows = Rows::new(input, into);
    let mut passes = Passes::default();
    let mut run = Run { layer: 0, ids: Vec::new(), top_k, shortest: 0 };
    let source = each_line(input, |line, text| {
        let text = utf8(input, line, text)?;
        let (layer, expert) = text.split_once(',').unwrap_or((text, ""));
        if line == 1 && layer.trim() == "layer" {
            return Ok(());
        }
        let layer: u32 = number(input, line, "layer", Some(layer))?;
        let expert: u16 = number(input, line, "expert", Some(expert))?;
        if layer != run.layer {
            run.end(input, line, &mut passes, &mut rows)?;
            run.layer = layer;
        }
        if run.ids.len() >= 1 << 22 {
            return Err(at_line(input, line, "over 4 million experts of one layer in a row"));
        }
        run.ids.push(expert);
        Ok(())
    })?;
    if top_k.is_none() {
        let problem = format!(
            "no line says where a token ends: give `ImportOptions::top_k` (its shortest run has \
             {}), or `ImportOptions::config`",
            run.shortest
        );
        return Err(input.error("top-k", problem));
    }
    run.end(input, 0, &mut passes, &mut rows)?;
    passes.end(input, &mut rows)?;
    passes.finish(&mut rows)?;
    into.read(source);
    Ok(())
}

/// Lines of one layer that follow each other.
struct Run {
    layer: u32,
    ids: Vec<u16>,
    top_k: Option<u32>,
    /// The shortest run but the last, which may be cut.
    shortest: usize,
}

impl Run {
    fn end(
        &mut self,
        input: &Input<'_>,
        line: u64,
        passes: &mut Passes,
        rows: &mut Rows<'_, '_, '_>,
    ) -> Result<()> {
        let ids = std::mem::take(&mut self.ids);
        if ids.is_empty() {
            return Ok(());
        }
        self.shortest = if self.shortest == 0 { ids.len() } else { self.shortest.min(ids.len()) };
        let Some(top_k) = self.top_k.filter(|&k| k > 0) else { return Ok(()) };
        let count = ids.len() / top_k as usize;
        if !ids.len().is_multiple_of(top_k as usize) {
            let (found, layer) = (ids.len(), self.layer);
            let problem = format!(
                "{found} experts of layer {layer} before it are no multiple of top-k {top_k}: \
                 correct `ImportOptions::top_k`"
            );
            return Err(at_line(input, line, problem));
        }
        passes.layer(input, rows, self.layer)?;
        for (index, ids) in ids.chunks_exact(top_k as usize).enumerate() {
            let token = index as i64 - count as i64;
            passes.batch.add(
                |problem| at_line(input, line, problem),
                token,
                self.layer,
                ids,
                &[],
            )?;
        }
        self.ids = ids;
        self.ids.clear();
        Ok(())
    }
}

/// Forward passes of one request after another, their tokens counted from the last (-1) back.
#[derive(Default)]
pub(super) struct Passes {
    pub(super) batch: Batch,
    next: u32,
    decoded: bool,
}

impl Passes {
    /// Before a layer's cells: ends the pass if the layer begins another.
    pub(super) fn layer(
        &mut self,
        input: &Input<'_>,
        rows: &mut Rows<'_, '_, '_>,
        layer: u32,
    ) -> Result<()> {
        let same = self.batch.last_layer() == Some(layer);
        if same || self.batch.ends_before(layer) {
            self.end(input, rows)?;
        }
        Ok(())
    }

    /// Ends the pass. One of several tokens is a prompt's; after decoding it begins a request.
    pub(super) fn end(&mut self, input: &Input<'_>, rows: &mut Rows<'_, '_, '_>) -> Result<()> {
        let Some((first, _)) = self.batch.tokens() else { return Ok(()) };
        let count = first.unsigned_abs();
        let phase = if count > 1 { Phase::Prefill } else { Phase::Decode };
        if rows.collector().rows() == 0 && self.next == 0 || (self.decoded && count > 1) {
            rows.sequence(None)?;
            (self.next, self.decoded) = (0, false);
        }
        self.decoded |= count == 1;
        let base = self.next;
        let Some(next) = base.checked_add(count) else {
            return Err(input.error("positions", "over 32 bits"));
        };
        self.next = next;
        self.batch.emit(input, rows, |token, _| {
            Ok(Token { position: next - token.unsigned_abs(), phase })
        })
    }

    pub(super) fn finish(&mut self, rows: &mut Rows<'_, '_, '_>) -> Result<()> {
        self.batch.note(rows);
        rows.flush()
    }
}

fn cartaz(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut grid = Grid::default();
    let mut cell: Option<(Phase, i64, u32)> = None;
    let mut ids: Vec<u16> = Vec::new();
    let source = each_line(input, |line, text| {
        let text = utf8(input, line, text)?;
        if line == 1 && text.starts_with("phase") {
            return Ok(());
        }
        let mut parts = text.split(',');
        let phase = match parts.next().map(str::trim) {
            Some("prefill") => Phase::Prefill,
            Some("decode") => Phase::Decode,
            Some("verify") => Phase::Verify,
            other => {
                let other: String = other.unwrap_or_default().chars().take(20).collect();
                let problem = format!("column phase: {other:?} is not prefill, decode or verify");
                return Err(at_line(input, line, problem));
            }
        };
        let token: i64 = number(input, line, "token", parts.next())?;
        let layer: u32 = number(input, line, "layer", parts.next())?;
        let rank: usize = number(input, line, "rank", parts.next())?;
        let expert: u16 = number(input, line, "expert", parts.next())?;
        if let Some((before, token_before, layer_before)) = cell
            && rank == 0
        {
            grid.add(input, line, &mut rows, before, token_before, layer_before, &ids, &[])?;
            ids.clear();
        }
        if rank != ids.len() || (rank > 0 && cell != Some((phase, token, layer))) {
            let problem = format!("rank {rank} where rank {} was expected", ids.len());
            return Err(at_line(input, line, problem));
        }
        cell = Some((phase, token, layer));
        ids.push(expert);
        Ok(())
    })?;
    if let Some((phase, token, layer)) = cell {
        grid.add(input, 0, &mut rows, phase, token, layer, &ids, &[])?;
    }
    grid.finish(input, &mut rows)?;
    into.read(source);
    Ok(())
}

fn thecodacus(input: &Input<'_>, into: &mut Collector<'_>) -> Result<()> {
    let mut rows = Rows::new(input, into);
    let mut grid = Grid { from_prompt: true, ..Grid::default() };
    let mut ids = Vec::new();
    let mut prompts = false;
    let source = each_line(input, |line, text| {
        let text = utf8(input, line, text)?;
        let mut parts = text.split(',');
        let position: i64 = number(input, line, "pos", parts.next())?;
        let layer: u32 = number(input, line, "layer", parts.next())?;
        ids.clear();
        for part in parts {
            ids.push(number(input, line, "id", Some(part))?);
        }
        let phase = if position < 0 { Phase::Prefill } else { Phase::Decode };
        prompts |= position < 0;
        grid.add(input, line, &mut rows, phase, position, layer, &ids, &[])
    })?;
    grid.finish(input, &mut rows)?;
    if prompts {
        into.note(
            "prompt tokens are kept, but this tool reads a strided tensor flat, so that they are \
             probably wrong: keep the decode tokens alone, with 'hotset trace slice'",
        );
    }
    into.read(source);
    Ok(())
}

/// Cells with tokens of their own, in passes over the layers; a falling position begins a request.
#[derive(Default)]
pub(super) struct Grid {
    batch: Batch,
    phase: Option<Phase>,
    /// Positions begin at the least (negative) token of each prompt.
    pub(super) from_prompt: bool,
    base: i64,
    begun: bool,
}

impl Grid {
    /// Begins a request of its own.
    pub(super) fn request(
        &mut self,
        input: &Input<'_>,
        rows: &mut Rows<'_, '_, '_>,
        id: u32,
    ) -> Result<()> {
        self.end(input, rows)?;
        self.begun = true;
        rows.sequence(Some(id))
    }

    #[expect(clippy::too_many_arguments, reason = "a cell has so many parts")]
    pub(super) fn add(
        &mut self,
        input: &Input<'_>,
        line: u64,
        rows: &mut Rows<'_, '_, '_>,
        phase: Phase,
        token: i64,
        layer: u32,
        ids: &[u16],
        weights: &[f32],
    ) -> Result<()> {
        if self.batch.ends_before(layer) || self.phase.is_some_and(|before| before != phase) {
            self.end(input, rows)?;
        }
        self.phase = Some(phase);
        self.batch.add(|problem| at_line(input, line, problem), token, layer, ids, weights)
    }

    fn end(&mut self, input: &Input<'_>, rows: &mut Rows<'_, '_, '_>) -> Result<()> {
        let (Some((first, _)), Some(phase)) = (self.batch.tokens(), self.phase) else {
            return Ok(());
        };
        let prompt = self.from_prompt && first < 0;
        let position = |base: i64, token: i32| u32::try_from(i64::from(token) + base).ok();
        let falls = rows.last_position() >= position(self.base, first);
        if !self.begun || (prompt && falls) || (falls && !rows.at_start()) {
            rows.sequence(None)?;
            self.base = if prompt { -i64::from(first) } else { 0 };
        }
        self.begun = true;
        let base = self.base;
        self.batch.emit(input, rows, |token, _| {
            let position = position(base, token);
            let problem = || input.error(format!("token {token}"), "a position below 0");
            Ok(Token { position: position.ok_or_else(problem)?, phase })
        })
    }

    pub(super) fn finish(&mut self, input: &Input<'_>, rows: &mut Rows<'_, '_, '_>) -> Result<()> {
        self.end(input, rows)?;
        self.batch.note(rows);
        rows.flush()
    }
}
