//! Workloads: the sequences of a trace in an order with a chosen share of repeats, topics that
//! drift, and users who take turns, all from a seed.
//!
//! Whether a cache pays more as conversations repeat is then one number. The order says of each
//! place whether it repeats, and what share was reached, which may be less than was asked.

mod deal;
mod order;
#[cfg(test)]
mod tests;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::draw;
use crate::error::{Error, Result};
use crate::trace::Trace;
use deal::{User, documents};

pub use order::{Repeat, WorkloadOrder};

/// The most sequences that an order may have.
pub const MAX_SEQUENCES: usize = 1 << 24;

/// An order of sequences to be made from a trace.
///
/// **Documents.** Sequences cut from the same recorded document are about the same thing; a
/// sequence without one is a document of its own.
///
/// **Users.** The documents, sorted by the label of their first sequence (labels in a seeded
/// order, a label's documents in a seeded order), are dealt to the users in equal contiguous
/// shares, so that each keeps to few labels. Users take turns: place `i` is a conversation of user
/// `i` modulo `users`.
///
/// **Repetition.** With this probability the user comes back to a document that they had before,
/// each with the same chance: another of its sequences that has not run yet if there is one (any,
/// with the same chance), else any of them again, the very same tokens and routes. Otherwise the
/// conversation is about a document that they never had. Who has had none yet begins with a new
/// one; who has had all comes back to one. Both cases are counted.
///
/// **Drift.** A user goes through their documents' labels once, in the order dealt, spending on
/// each label a part of their conversations in proportion to its documents. With probability
/// `drift` a conversation, new or repeated, keeps to the label of the moment, if it has any such
/// document left; otherwise it is about any. So 0 is one mixture throughout, and 1 is one label
/// after another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Probability that a conversation comes back to a document, 0 to 1.
    pub repetition: f64,
    /// Probability that a conversation keeps to the label of the moment, 0 to 1.
    pub drift: f64,
    /// Users who take turns, from 1 to the number of documents.
    pub users: u32,
    /// Sequences in the order, up to [`MAX_SEQUENCES`]; `None`: as many as there are documents,
    /// the most that run without a repeat.
    pub sequences: Option<usize>,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for Workload {
    fn default() -> Self {
        Self { repetition: 0.0, drift: 0.0, users: 1, sequences: None, seed: 1 }
    }
}

impl Workload {
    /// Orders the sequences of a trace.
    ///
    /// # Errors
    /// [`Error::Workload`] for a share that is not from 0 to 1, for no sequences or too many, for
    /// more users than documents or sequences in the order, and for drift on a trace whose
    /// sequences have fewer than two labels.
    pub fn order(&self, trace: &Trace) -> Result<WorkloadOrder> {
        let documents = documents(trace.sequences());
        let count = documents.len();
        let length = self.sequences.unwrap_or(count);
        self.check(length, count)?;
        let mut labels: Vec<&str> = documents.iter().map(|document| document.label).collect();
        labels.sort_unstable();
        labels.dedup();
        if self.drift > 0.0 && labels.len() < 2 {
            return Err(Error::workload(
                "drift needs labels: the trace's sequences have fewer than two different ones",
            ));
        }
        let recorded = trace.sequences().iter().any(|sequence| sequence.document.is_some());
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut users = deal::deal(documents, self.users as usize, length, &mut random);
        let mut order = WorkloadOrder::empty(*self, count, recorded);
        for place in 0..length {
            let user = place % users.len();
            self.place(&mut users[user], &mut order, &mut random);
        }
        Ok(order)
    }

    fn check(&self, length: usize, documents: usize) -> Result<()> {
        for (name, share) in [("repetition", self.repetition), ("drift", self.drift)] {
            if !(0.0..=1.0).contains(&share) {
                let problem = format!("{name} is {share}; a share from 0 to 1 is possible");
                return Err(Error::workload(problem));
            }
        }
        if !(1..=MAX_SEQUENCES).contains(&length) {
            let problem = format!("{length} sequences; 1 to {MAX_SEQUENCES} are possible");
            return Err(Error::workload(problem));
        }
        let (users, most) = (self.users as usize, length.min(documents));
        if !(1..=most).contains(&users) {
            return Err(Error::workload(format!(
                "{users} users; 1 to {most} are possible with {length} sequences in the order and \
                 {documents} documents in the trace"
            )));
        }
        Ok(())
    }

    /// One conversation of a user.
    fn place(&self, user: &mut User<'_>, order: &mut WorkloadOrder, random: &mut Pcg64Mcg) {
        let comes_back = draw::chance(random, self.repetition);
        let topic = draw::chance(random, self.drift).then(|| user.topic());
        let had_any = user.had() > 0;
        let had_all = user.had() == user.documents();
        order.nothing_to_repeat += usize::from(comes_back && !had_any);
        order.nothing_new += usize::from(!comes_back && had_all);
        let (index, repeat) = user.converse(had_any && (comes_back || had_all), topic, random);
        order.indices.push(index);
        order.repeats.push(repeat);
    }
}
