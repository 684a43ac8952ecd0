//! What comes of a workload: the order, what repeats in it, and the trace that runs so.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::Workload;
use crate::error::Result;
use crate::trace::Trace;

/// What a place in an order has to do with the places before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// A document that was not there before.
    New,
    /// Another sequence of a document that was.
    SameDocument,
    /// A sequence that ran before: the same tokens and routes again.
    SameSequence,
}

/// An order of sequences, with what repeats in it.
///
/// Its [`Display`](fmt::Display) says in a line what was reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadOrder {
    /// What was asked.
    pub workload: Workload,
    /// Indices of the trace's sequences, in the order in which they run.
    pub indices: Vec<usize>,
    /// What each has to do with those before it, in that order.
    pub repeats: Vec<Repeat>,
    /// Places where a repeat was due before the user had had any document: a new one is there.
    pub nothing_to_repeat: usize,
    /// Places where a new document was due after the user had had all: a repeat is there.
    pub nothing_new: usize,
    /// Documents in the trace.
    pub documents: usize,
    /// Whether the trace says which document its sequences are from; if not, each is its own, and
    /// only the same sequence can come again.
    pub documents_recorded: bool,
}

impl WorkloadOrder {
    pub(super) fn empty(workload: Workload, documents: usize, documents_recorded: bool) -> Self {
        Self {
            workload,
            indices: Vec::new(),
            repeats: Vec::new(),
            nothing_to_repeat: 0,
            nothing_new: 0,
            documents,
            documents_recorded,
        }
    }

    /// How many places are of this kind.
    #[must_use]
    pub fn count(&self, kind: Repeat) -> usize {
        self.repeats.iter().filter(|&&repeat| repeat == kind).count()
    }

    /// The share of places that repeat a document, the same sequence or another; to be held
    /// against [`Workload::repetition`].
    #[must_use]
    pub fn repetition(&self) -> f64 {
        let repeated = self.repeats.len() - self.count(Repeat::New);
        repeated as f64 / self.repeats.len().max(1) as f64
    }

    /// The user of a place.
    #[must_use]
    pub fn user(&self, place: usize) -> usize {
        place % self.workload.users.max(1) as usize
    }

    /// The trace's sequences in this order, as a trace of their own; each keeps its id, label and
    /// document, however often it is there. Recorded steps are left out, for the engine ran
    /// another order; the provenance says so, and how the order was made.
    ///
    /// # Errors
    /// Those of [`Trace::select_sequences`]: the order of another trace, or more tokens than fit.
    pub fn arrange(&self, trace: &Trace) -> Result<Trace> {
        let made: Value = serde_json::from_str(trace.provenance()).unwrap_or(Value::Null);
        let kinds = [Repeat::New, Repeat::SameDocument, Repeat::SameSequence];
        let [new, document, sequence] = kinds.map(|kind| self.count(kind));
        let mut provenance = json!({
            "workload": self.workload,
            "sequences": { "new": new, "same_document": document, "same_sequence": sequence },
            "of": { "digest": trace.digest(), "made": made },
        });
        if trace.steps().is_some() {
            provenance["steps"] = json!("left out: the engine ran another order");
        }
        let builder = trace.selection(&self.indices)?.without_steps();
        builder.provenance(provenance.to_string()).build()
    }
}

impl fmt::Display for WorkloadOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |kind| self.count(kind);
        write!(
            f,
            "{} sequences: {} new, {} of a document seen before, {} run again; repetition {:.1}% \
             (asked {:.1}%)",
            self.indices.len(),
            of(Repeat::New),
            of(Repeat::SameDocument),
            of(Repeat::SameSequence),
            100.0 * self.repetition(),
            100.0 * self.workload.repetition,
        )?;
        if self.nothing_to_repeat > 0 {
            write!(f, "; {} new for want of anything to repeat", self.nothing_to_repeat)?;
        }
        if self.nothing_new > 0 {
            let (places, documents) = (self.nothing_new, self.documents);
            write!(f, "; {places} repeated for want of more than {documents} documents")?;
        }
        if !self.documents_recorded {
            write!(f, "; the trace names no documents, so only the same sequence can repeat")?;
        }
        Ok(())
    }
}
