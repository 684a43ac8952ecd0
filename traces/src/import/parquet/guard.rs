//! Calls of the Parquet library, which panics on some damaged files: that is an error here like
//! any other, and nothing is printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::error::Result;
use crate::import::input::Input;

static HOOK: Once = Once::new();

thread_local! {
    /// Whether this thread is inside [`guarded`].
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library. A panic in it does not reach the hook that was set before, which is told of
/// all others.
pub(super) fn guarded<T>(input: &Input<'_>, read: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !INSIDE.get() {
                before(panic);
            }
        }));
    });
    INSIDE.set(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    INSIDE.set(false);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(input.error("file", told(error))),
        Err(_) => Err(input.error("file", "damaged Parquet: its pages contradict each other")),
    }
}

/// The library's reason without its prefixes; what it does not read, with a way out.
fn told(error: ParquetError) -> String {
    match error {
        ParquetError::General(problem) => problem.replace("Parquet error: ", ""),
        ParquetError::NYI(problem) => format!(
            "{problem}: write it uncompressed or with zstd, snappy or gzip, and without what else \
             it names"
        ),
        other => format!("not Parquet that can be read: {other}"),
    }
}
