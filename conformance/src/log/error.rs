//! Why an engine's log cannot be compared.

use std::io;

use hotset_sim::SimError;
use thiserror::Error;

use crate::error::ConformError;

/// Why a log cannot be compared.
#[derive(Debug, Error)]
pub enum LogError {
    /// It cannot be read, or the reference's cannot be written.
    #[error("line {line}: {reason}")]
    Io {
        /// The line, from 1.
        line: u64,
        /// The system's reason.
        reason: io::Error,
    },
    /// A line that is not an event.
    #[error(
        "line {line} is not an event: {reason}; a line is like {{\"layer\":0,\"hits\":[3],\
         \"fetches\":[{{\"expert\":7,\"evicted\":null}}]}}, see docs/conform.md"
    )]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// Where and why.
        reason: String,
    },
    /// A line that is an event, but not the one whose turn it is.
    #[error("line {line}: {reason}")]
    Event {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        reason: ConformError,
    },
    /// Fewer events than the trace has.
    #[error(
        "the log ends after {events} events, the trace's steps have {of}: is it cut short, or of \
         other steps (`Replayed::phase`, `Replayed::steps`)?"
    )]
    Short {
        /// Events in the log.
        events: u64,
        /// Events of the trace.
        of: u64,
    },
    /// More events than the trace has.
    #[error(
        "line {line}: the log goes on after the {of} events of the trace's steps: is it of other \
         steps (`Replayed::phase`, `Replayed::steps`)?"
    )]
    Long {
        /// The first line too many, from 1.
        line: u64,
        /// Events of the trace.
        of: u64,
    },
    /// A policy or a cache that cannot be the reference.
    #[error(transparent)]
    Reference(#[from] ConformError),
    /// A trace that cannot drive it.
    #[error(transparent)]
    Trace(#[from] SimError),
}
