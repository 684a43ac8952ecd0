//! Arrays of numpy as bytes that a trace reads in place.
//!
//! The only unsafe code of this crate. A trace checks its ids when it is made, and everything that
//! reads them afterwards checks its bounds again, so that ids which somebody writes into the array
//! under a replay may end it with an exception, not with a read outside of an array; it is the same
//! with a mapped `.hst` file. The package clears the array's writeable flag to keep that from
//! happening by mistake.
#![allow(unsafe_code)]

use std::sync::Arc;

use hotset_traces::LentBytes;
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::refused;

struct Held {
    start: *const u8,
    length: usize,
    /// Keeps the array, and with it its memory; numpy neither moves nor resizes what is referred to.
    _array: Py<PyAny>,
}

// SAFETY: the pointer is to memory that `_array` keeps for as long as `Held` lives, it is only read
// through, and `Py` may be sent and shared between threads.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `lend` took `start` and `length` from an array that is contiguous, and `_array`
        // keeps it. For none, `start` is not null but any aligned address, as numpy gives it.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The bytes of an array, without a copy.
///
/// # Errors
/// It is not C-contiguous.
pub fn lend<T: Element>(array: &Bound<'_, PyArrayDyn<T>>) -> PyResult<LentBytes> {
    if !array.is_c_contiguous() {
        return Err(refused("the array is not C-contiguous: give numpy.ascontiguousarray(array)"));
    }
    let held = Held {
        start: array.data().cast::<u8>(),
        length: array.len() * size_of::<T>(),
        _array: array.clone().into_any().unbind(),
    };
    Ok(Arc::new(held))
}
