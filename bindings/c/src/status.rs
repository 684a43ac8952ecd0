//! How a call ended, and the text of the last one that failed.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// A pointer is null that must not be.
    NullPointer = 1,
    /// A number, name or text that cannot be.
    InvalidArgument = 2,
    /// The cache cannot do it now: a slot is in use.
    InUse = 3,
    /// A file that cannot be read.
    Io = 4,
    /// A fault of hotset's own; the handle must only be freed.
    Panic = 5,
}

/// Why a call failed.
pub(crate) struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub fn invalid(text: impl std::fmt::Display) -> Self {
        Self { status: Status::InvalidArgument, text: text.to_string() }
    }

    pub fn null(what: &str) -> Self {
        Self { status: Status::NullPointer, text: format!("{what} is null") }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// What went wrong in this thread's last call that failed; empty before the first. Valid until the
/// thread's next call.
#[unsafe(no_mangle)]
pub extern "C" fn hotset_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

fn remember(text: String) {
    // A text with a zero in it is cut there.
    let bytes = text.split('\0').next().unwrap_or_default().as_bytes().to_vec();
    LAST.set(CString::new(bytes).unwrap_or_default());
}

/// Does the work; a failure or a panic becomes a status with a text.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(Failure { status, text })) => {
            remember(text);
            status
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = text.unwrap_or_else(|| "unknown".to_owned());
            remember(format!("a fault of hotset's own: {text}"));
            Status::Panic
        }
    }
}

/// What a pointer points to, to read.
///
/// # Safety
/// The pointer is null or valid for reads of a `T` for `'a`.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// What a pointer points to, to change.
///
/// # Safety
/// The pointer is null or valid for reads and writes of a `T` for `'a`, and nobody else uses it.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// `length` values; none of them needs no pointer.
///
/// # Safety
/// Where `length` is not 0, the pointer is null or valid for reads of so many `T`s for `'a`.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    length: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    if length > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::invalid(format!("{what}: {length} entries are no length")));
    }
    // SAFETY: the caller's promise; the length fits into memory.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// A text.
///
/// # Safety
/// The pointer is null or to bytes that end with a zero, valid for `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|_| Failure::invalid(format!("{what} is no UTF-8")))
}
