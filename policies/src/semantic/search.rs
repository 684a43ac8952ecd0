//! The exact search for the nearest embeddings, behind bounds from codes of one byte.
//!
//! The vectors with the highest upper bounds are scored exactly; whatever could still beat the
//! worst of them is scored too. So the answer is that of scoring everything, at about a quarter of
//! the memory read.

use std::collections::TryReserveError;

use super::SemanticError;
use super::codes::{Codes, QueryCodes};
use super::error::expect_length;
use super::vectors::{dot, unit_into};

/// A conversation near a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its index in the store.
    pub index: u32,
    /// Cosine of the embeddings, in f32 and in a fixed order of additions; 0 with a zero vector.
    pub cosine: f32,
}

/// Buffers of a search, so that a query allocates nothing: one for each thread that asks.
#[derive(Debug, Clone)]
pub struct Search {
    unit: Vec<f32>,
    codes: QueryCodes,
    /// What each embedding's cosine with the query is at most, in the order of the store.
    bounds: Vec<f32>,
    /// The same with their indices, in any order.
    ranked: Vec<(f32, u32)>,
    found: Vec<Neighbour>,
}

/// The store's embeddings, in full and in codes.
#[derive(Debug, Clone)]
pub(super) struct Embeddings {
    pub(super) dimension: usize,
    /// Unit vectors, `[conversations][dimension]`.
    pub(super) units: Vec<f32>,
    pub(super) codes: Codes,
    /// When each came in: the smaller, the older.
    pub(super) born: Vec<u64>,
}

impl Embeddings {
    /// None yet, but room for `capacity`.
    pub(super) fn with_capacity(
        capacity: usize,
        dimension: usize,
    ) -> Result<Self, TryReserveError> {
        let (mut units, mut born) = (Vec::new(), Vec::new());
        units.try_reserve_exact(capacity.saturating_mul(dimension))?;
        born.try_reserve_exact(capacity)?;
        Ok(Self { dimension, units, codes: Codes::with_capacity(capacity, dimension)?, born })
    }

    /// Bytes of each embedding.
    pub(super) fn bytes(dimension: usize) -> usize {
        dimension * size_of::<f32>() + size_of::<u64>() + Codes::bytes(dimension)
    }

    pub(super) fn unit(&self, index: u32) -> &[f32] {
        &self.units[index as usize * self.dimension..][..self.dimension]
    }

    pub(super) fn len(&self) -> usize {
        self.born.len()
    }

    /// Puts the unit vector in place of number `at`, or as the next one.
    pub(super) fn set(&mut self, at: usize, unit: &[f32], born: u64) {
        if at == self.len() {
            self.units.resize((at + 1) * self.dimension, 0.0);
            self.born.push(0);
        }
        self.units[at * self.dimension..][..self.dimension].copy_from_slice(unit);
        self.born[at] = born;
        self.codes.set(at, unit);
    }
}

impl Search {
    /// Bytes for each embedding of the store.
    pub(super) const BYTES: usize =
        size_of::<f32>() + size_of::<(f32, u32)>() + size_of::<Neighbour>();

    /// For a store of `capacity` embeddings.
    pub(super) fn with_capacity(
        capacity: usize,
        dimension: usize,
    ) -> Result<Self, TryReserveError> {
        let (mut bounds, mut ranked, mut found) = (Vec::new(), Vec::new(), Vec::new());
        bounds.try_reserve_exact(capacity)?;
        ranked.try_reserve_exact(capacity)?;
        found.try_reserve_exact(capacity)?;
        let (unit, codes) = (vec![0.0; dimension], QueryCodes::for_dimension(dimension));
        Ok(Self { unit, codes, bounds, ranked, found })
    }

    /// Cosine of the query taken with an embedding.
    pub(super) fn cosine(&self, embeddings: &Embeddings, index: u32) -> f32 {
        dot(&self.unit, embeddings.unit(index))
    }

    /// The query as a unit vector.
    pub(super) fn unit(&self) -> &[f32] {
        &self.unit
    }

    /// Takes a query, as a unit vector from now on.
    pub(super) fn take(&mut self, query: &[f32], dimension: usize) -> Result<(), SemanticError> {
        expect_length("the embedding", dimension, query.len())?;
        self.unit.resize(dimension, 0.0);
        unit_into(query, &mut self.unit)?;
        self.codes.set(&self.unit);
        Ok(())
    }

    /// Finds upper bounds of the cosines of all with the query taken, in the order of the store.
    pub(super) fn find_bounds(&mut self, embeddings: &Embeddings) {
        self.bounds.clear();
        self.bounds.extend(embeddings.codes.upper_bounds(&self.codes));
    }

    /// What [`Search::find_bounds`] found.
    pub(super) fn bounds(&self) -> &[f32] {
        &self.bounds
    }

    /// The `k` nearest to the query taken, nearest first, ties to the older.
    pub(super) fn nearest(&mut self, embeddings: &Embeddings, k: usize) -> &[Neighbour] {
        let k = k.min(embeddings.len());
        self.found.clear();
        if k == 0 {
            return &self.found;
        }
        self.find_bounds(embeddings);
        self.ranked.clear();
        self.ranked.extend(self.bounds.iter().copied().zip(0..));
        self.ranked.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
        let score = |index| dot(&self.unit, embeddings.unit(index));
        let promising = self.ranked[..k].iter().map(|&(_, index)| score(index));
        let worst = promising.fold(f32::INFINITY, f32::min);
        // In the order of the store, so that memory is read forwards however many there are.
        let possible = (0..).zip(&self.bounds).filter(|&(_, &bound)| bound >= worst);
        self.found.extend(possible.map(|(index, _)| Neighbour { index, cosine: score(index) }));
        let order = |a: &Neighbour, b: &Neighbour| {
            let born = |one: &Neighbour| embeddings.born[one.index as usize];
            b.cosine.total_cmp(&a.cosine).then_with(|| born(a).cmp(&born(b)))
        };
        self.found.select_nth_unstable_by(k - 1, order);
        self.found.truncate(k);
        self.found.sort_unstable_by(order);
        &self.found
    }
}
