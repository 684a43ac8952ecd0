//! What is raised: one class, a `ValueError`, whose text says what, where and what to do.

use hotset::host::Refusal;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

create_exception!(hotset, HotsetError, PyValueError, "What hotset refuses; the text says why.");

/// An error of this package.
pub fn refused(text: impl std::fmt::Display) -> PyErr {
    HotsetError::new_err(text.to_string())
}

/// Why a command gave nothing.
pub fn of_refusal(refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
        Refusal::Usage(text) => refused(text),
    }
}
