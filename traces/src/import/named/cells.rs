//! Records into cells: a list of experts, one expert a line, or a layer of several tokens a line.

use super::json::Sink;
use super::passes::{Cell, Fault, Met, Passes};
use super::record::{Place, Record};
use super::store::Store;
use crate::error::{Error, Result};
use crate::import::input::Input;

/// What was read of one file.
pub(super) struct File {
    /// Its rows in the store.
    pub(super) rows: std::ops::Range<u64>,
    pub(super) met: Met,
    pub(super) next_sequence: u32,
    pub(super) next_pass: u32,
    /// What it says of its model.
    pub(super) stated: Stated,
    /// Objects that had no experts.
    pub(super) others: u64,
    /// The last expert of every row is one beside those that the file states.
    pub(super) shared_expert: bool,
}

/// What a header, or every line, says of the model.
#[derive(Debug, Default, Clone)]
pub(super) struct Stated {
    pub(super) experts: Option<u32>,
    pub(super) top_k: Option<u32>,
    pub(super) model: Option<String>,
}

/// Whether a number behind the ids of a row fills it up: -1, also as writers without a sign have it.
fn is_padding(id: i64) -> bool {
    const UNSIGNED: [i64; 4] = [u16::MAX as i64, i32::MAX as i64, u32::MAX as i64, i64::MAX];
    id < 0 || UNSIGNED.contains(&id)
}

/// Whether the last expert of all rows is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Unknown,
    /// The expert, and in how many cells.
    Always(u16, u64),
    Never,
}

/// Where cells go: the passes of one file.
pub(super) struct Cells<'a> {
    store: &'a mut Store,
    passes: Passes,
    begun: u64,
    stated: Stated,
    others: u64,
    /// An expert a line: the cell that is being collected.
    open: Option<(Place, u32)>,
    /// Ranks of the experts of that cell, where they are written.
    ranks: Vec<i64>,
    /// The caller's top-k, where a line has one expert.
    top_k: Option<u32>,
    ids: Vec<u16>,
    weights: Vec<f32>,
    /// Objects with lists of records: each a sequence.
    groups: u32,
    shared: Shared,
    store_fault: Option<Error>,
}

impl<'a> Cells<'a> {
    /// For a file whose first sequence and pass have these numbers in the store; `any_order` takes
    /// its cells in whatever order they come.
    pub(super) fn new(
        store: &'a mut Store,
        begun: (u32, u32),
        top_k: Option<u32>,
        any_order: bool,
    ) -> Self {
        let rows = store.rows();
        let passes = Passes::new(begun.0, begun.1);
        Self {
            store,
            passes: if any_order { passes.in_any_order() } else { passes },
            begun: rows,
            stated: Stated::default(),
            others: 0,
            open: None,
            ranks: Vec::new(),
            top_k,
            ids: Vec::new(),
            weights: Vec::new(),
            groups: 0,
            shared: Shared::Unknown,
            store_fault: None,
        }
    }

    /// Ends the file.
    pub(super) fn finish(mut self, input: &Input<'_>) -> Result<File> {
        let end = self.close().and_then(|()| self.tell(|cells| cells.passes.end(cells.store)));
        if let Some(e) = self.store_fault {
            return Err(e);
        }
        end.map_err(|problem| input.error("end", problem))?;
        let shared_expert = self.shared_expert();
        Ok(File {
            shared_expert,
            rows: self.begun..self.store.rows(),
            next_sequence: self.passes.next_sequence,
            next_pass: self.passes.pass(),
            met: self.passes.met,
            stated: self.stated,
            others: self.others,
        })
    }

    /// A fault of the store is kept whole; one of a cell is said in words.
    fn tell(&mut self, act: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), String> {
        match act(self) {
            Ok(()) => Ok(()),
            Err(Fault::Cell(problem)) => Err(problem),
            Err(Fault::Store(e)) => {
                let text = e.to_string();
                self.store_fault = Some(e);
                Err(text)
            }
        }
    }

    fn state(&mut self, record: &Record, chosen: Option<usize>) {
        let whole = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
        // A row's number of experts may be the length of the row.
        let experts = whole(record.experts).filter(|&n| chosen.is_none_or(|k| n as usize != k));
        self.stated.experts = self.stated.experts.max(experts);
        if chosen.is_none() {
            self.stated.top_k = self.stated.top_k.or(whole(record.top_k));
        }
        if self.stated.model.is_none() {
            self.stated.model.clone_from(&record.model);
        }
    }

    /// Takes ids of the record from `from` on into the buffer: those behind them may be -1.
    fn take(&mut self, ids: &[i64], weights: &[f32], layer: u32) -> Result<(), String> {
        self.ids.clear();
        self.weights.clear();
        let used = ids.iter().position(|&id| is_padding(id)).unwrap_or(ids.len());
        if let Some(id) = ids[used..].iter().find(|&&id| !is_padding(id)) {
            return Err(format!(
                "layer {layer}: expert {id} behind a -1: some experts of this row are hidden (a \
                 cache's log hides its hits), so it is no routing"
            ));
        }
        self.passes.met.padded |= used < ids.len();
        for &id in &ids[..used] {
            let id =
                u16::try_from(id).map_err(|_| format!("id {id}; expert ids are 0 to 65535"))?;
            self.ids.push(id);
        }
        if weights.len() == ids.len() {
            self.weights.extend_from_slice(&weights[..used]);
        }
        if used == 0 {
            return Err(format!("layer {layer} has no expert"));
        }
        self.distinct(layer)
    }

    /// Refuses a row with an expert twice, and notes whether the last one is a shared expert.
    fn distinct(&mut self, layer: u32) -> Result<(), String> {
        let ids = &self.ids;
        if let Some(at) = (1..ids.len()).find(|&at| ids[..at].contains(&ids[at])) {
            let id = ids[at];
            return Err(format!(
                "layer {layer} has expert {id} twice in one row: a router chooses each once, so \
                 that these are no ids of experts (counts, or scores?)"
            ));
        }
        let Some((&last, others)) = ids.split_last() else { return Ok(()) };
        self.shared = match self.shared {
            Shared::Unknown => Shared::Always(last, 1),
            Shared::Always(id, _) if id != last || others.is_empty() => Shared::Never,
            Shared::Always(id, cells) => Shared::Always(id, cells + 1),
            Shared::Never => Shared::Never,
        };
        Ok(())
    }

    /// The fused shared expert that stands last in every row, by what the file states.
    fn shared_expert(&self) -> bool {
        match self.shared {
            // One row is no rule.
            Shared::Always(id, 2..) => self.stated.experts == Some(u32::from(id)),
            _ => false,
        }
    }

    fn add(&mut self, place: Place, layer: u32) -> Result<(), String> {
        let (ids, weights) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.weights));
        let cell = Cell { place, layer, ids: &ids, weights: &weights };
        let added = self.tell(|cells| cells.passes.add(cells.store, cell));
        (self.ids, self.weights) = (ids, weights);
        added
    }

    /// Ends the cell of one expert a line.
    fn close(&mut self) -> Result<(), String> {
        let Some((place, layer)) = self.open.take() else { return Ok(()) };
        if self.ranks.len() == self.ids.len() {
            self.by_rank(place, layer)?;
        }
        self.ranks.clear();
        let added = self.add(place, layer);
        self.ids.clear();
        self.weights.clear();
        added
    }

    /// Sorts the experts of the open cell by their ranks, which are all ranks from the first on.
    fn by_rank(&mut self, place: Place, layer: u32) -> Result<(), String> {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_by_key(|&at| self.ranks[at]);
        let first = order.first().map_or(0, |&at| self.ranks[at]);
        let all = (first..).zip(&order).all(|(rank, &at)| self.ranks[at] == rank);
        if !all || !(0..=1).contains(&first) {
            let token = place.token.unwrap_or_default();
            return Err(format!(
                "token {token} has ranks {:?} alone in layer {layer}: the lines of its experts do \
                 not stand together. Sort them by token and layer",
                self.ranks
            ));
        }
        if self.weights.len() == self.ids.len() {
            self.weights = order.iter().map(|&at| self.weights[at]).collect();
        }
        self.ids = order.iter().map(|&at| self.ids[at]).collect();
        Ok(())
    }

    /// One expert of a cell whose other experts stand in other lines.
    fn one_expert(&mut self, record: &Record, place: Place, layer: u32) -> Result<(), String> {
        let id = record.ids.values[0];
        let weight =
            record.weights.values.first().copied().filter(|_| record.weights.values.len() == 1);
        if is_padding(id) {
            self.passes.met.padded = true;
            return Ok(());
        }
        let id = u16::try_from(id).map_err(|_| format!("id {id}; expert ids are 0 to 65535"))?;
        let rank = record.rank();
        let next = match rank {
            Some(rank) => self.ranks.contains(&rank),
            None => self.top_k.is_some_and(|k| self.ids.len() >= k as usize),
        };
        let same = self.open.is_some_and(|(open, at)| {
            at == layer && Place { token_id: None, ..open } == Place { token_id: None, ..place }
        });
        if !same || next {
            self.close()?;
            self.open = Some((place, layer));
        }
        if self.ids.contains(&id) && rank.is_none() {
            self.passes.met.copies += 1;
            return Ok(());
        }
        self.ranks.extend(rank);
        self.ids.push(id);
        self.weights.extend(weight);
        Ok(())
    }

    /// A layer of several tokens.
    fn batch(&mut self, record: &Record, mut place: Place, layer: u32) -> Result<(), String> {
        let lists = &record.ids;
        let first = place.token.take();
        let k = lists.rows.first().copied().unwrap_or(0);
        if lists.rows.iter().all(|&len| len == k) && k > 0 {
            let narrow: Option<Vec<u16>> =
                lists.values.iter().map(|&id| u16::try_from(id).ok()).collect();
            if narrow
                .is_some_and(|ids| self.passes.has_list(self.store, place.sequence, layer, &ids, k))
            {
                self.passes.copied(lists.rows.len() as u64);
                return Ok(());
            }
        }
        let (mut at, mut weight_at) = (0, 0);
        for (index, &len) in lists.rows.iter().enumerate() {
            let ids = &lists.values[at..at + len];
            at += len;
            let weighted = record.weights.rows.get(index) == Some(&len);
            let weights = match weighted {
                true => &record.weights.values[weight_at..weight_at + len],
                false => &[][..],
            };
            weight_at += if weighted { len } else { 0 };
            self.take(ids, weights, layer)?;
            let token = first.map(|first| first.saturating_add(index as i64));
            self.add(Place { token, ..place }, layer)?;
        }
        Ok(())
    }
}

impl Sink for Cells<'_> {
    fn record(&mut self, record: &mut Record) -> Result<(), String> {
        let Some(layer) = record.layer() else {
            self.others += 1;
            self.state(record, None);
            return Ok(());
        };
        let mut place = record.place();
        let single = record.ids.single && record.ids.values.len() == 1;
        if single && place.token.is_none() && place.sequence.is_none() && record.rank().is_none() {
            // How many layers and experts there are, in a header.
            self.others += 1;
            self.state(record, None);
            return Ok(());
        }
        let layer = u32::try_from(layer).map_err(|_| format!("layer {layer}"))?;
        if self.passes.met.other_phase.is_none() {
            self.passes.met.other_phase.clone_from(&record.other_phase);
        }
        if self.groups > 0 && place.sequence.is_none() {
            place.sequence = Some(self.groups - 1);
        }
        if !record.ids.rows.is_empty() {
            self.close()?;
            return self.batch(record, place, layer);
        }
        if single {
            self.state(record, Some(1));
            return self.one_expert(record, place, layer);
        }
        self.close()?;
        let (ids, weights) =
            (std::mem::take(&mut record.ids.values), std::mem::take(&mut record.weights.values));
        let taken = self.take(&ids, &weights, layer);
        (record.ids.values, record.weights.values) = (ids, weights);
        taken?;
        self.state(record, Some(self.ids.len()));
        self.add(place, layer)
    }

    fn group(&mut self) {
        self.groups += 1;
    }

    fn other(&mut self, record: &Record, _: &[String]) {
        self.others += 1;
        self.state(record, None);
    }
}
