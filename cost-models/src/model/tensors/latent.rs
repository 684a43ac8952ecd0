//! Tensors of attention over latents and over a compressed past.

use super::{LatentTensors, List};
use crate::format::Role;
use crate::model::layer::{CompressedAttention, CompressedPast, Indexer, LatentAttention};

impl List {
    pub(super) fn latent(&mut self, latent: &LatentAttention) {
        let hidden = self.hidden;
        let queries = latent.heads * (latent.nope + latent.rope);
        match latent.query_rank {
            Some(rank) => {
                self.dense(Role::Other, rank, hidden);
                self.dense(Role::Other, queries, rank);
                self.vectors(&[rank]);
            }
            None => self.dense(Role::Query, queries, hidden),
        }
        self.dense(Role::Other, latent.latent + latent.rope, hidden);
        self.vectors(&[latent.latent]);
        if self.latent != LatentTensors::Split {
            let rows = latent.heads * (latent.nope + latent.value);
            self.dense(Role::FromLatent, rows, latent.latent);
        }
        if self.latent != LatentTensors::Joined {
            self.dense(Role::Other, latent.latent * latent.heads, latent.nope);
            self.dense(Role::Other, latent.value * latent.heads, latent.latent);
        }
        self.dense(Role::Output, hidden, latent.heads * latent.value);
        let gate = latent.output_gate.rows(latent.heads, latent.value);
        self.dense(Role::Other, gate, hidden);
        if let Some(indexer) = latent.indexer {
            self.indexer(indexer, latent.query_rank.unwrap_or(hidden));
        }
    }

    pub(super) fn indexer(&mut self, indexer: Indexer, query_rank: u64) {
        self.dense(Role::Other, indexer.heads * indexer.width, query_rank);
        self.dense(Role::Other, indexer.width, self.hidden);
        self.dense(Role::Other, indexer.heads, self.hidden);
        self.vectors(&[indexer.width; 2]);
    }

    pub(super) fn compressed(&mut self, compressed: &CompressedAttention) {
        let (hidden, width) = (self.hidden, compressed.width);
        let groups = compressed.output_groups.max(1);
        self.dense(Role::Other, compressed.query_rank, hidden);
        self.dense(Role::Other, compressed.heads * width, compressed.query_rank);
        self.dense(Role::Other, width, hidden);
        let of_group = compressed.heads * width / groups;
        self.dense(Role::Other, groups * compressed.output_rank, of_group);
        self.dense(Role::Output, hidden, groups * compressed.output_rank);
        self.vectors(&[compressed.query_rank, width, compressed.heads]);
        let (entry, indexer) = match compressed.past {
            CompressedPast::None => return,
            CompressedPast::Heavy(_) => (width, None),
            CompressedPast::Sparse(_, indexer) => (2 * width, Some(indexer)),
        };
        self.dense(Role::Other, entry, hidden);
        self.dense(Role::Other, entry, hidden);
        if let Some(indexer) = indexer {
            self.dense(Role::Other, 2 * indexer.width, hidden);
            self.dense(Role::Other, 2 * indexer.width, hidden);
            self.dense(Role::Other, indexer.heads * indexer.width, compressed.query_rank);
            self.dense(Role::Other, indexer.heads, hidden);
        }
    }
}
