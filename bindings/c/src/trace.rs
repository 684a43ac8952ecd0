//! Recorded traces, to drive an engine's cache with.

use std::ffi::c_char;

use hotset_traces::Trace as Inner;

use crate::status::{Failure, Status, exclusive, guarded, shared, text};

/// A recorded router trace; immutable, so that threads may share it.
pub struct Trace {
    inner: Inner,
}

/// A trace's measures.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TraceShape {
    /// Tokens: rows.
    pub tokens: usize,
    /// MoE layers.
    pub layers: usize,
    /// The most experts that any layer has.
    pub max_experts: u32,
    /// The most experts that a token uses in any layer.
    pub max_top_k: u32,
}

fn opened(trace: Inner) -> *mut Trace {
    Box::into_raw(Box::new(Trace { inner: trace }))
}

fn failed(error: hotset_traces::Error) -> Failure {
    let status = match error {
        hotset_traces::Error::Io { .. } => Status::Io,
        _ => Status::InvalidArgument,
    };
    Failure { status, text: error.to_string() }
}

/// Opens an .hst file; null opens the trace that comes with hotset. It is to be freed.
///
/// # Safety
/// `path` is null or a text; `trace` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_trace_open(path: *const c_char, trace: *mut *mut Trace) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let trace = unsafe { exclusive(trace, "trace") }?;
        *trace = opened(if path.is_null() {
            hotset_traces::bundled().map_err(failed)?
        } else {
            // SAFETY: the caller's promise.
            Inner::open(unsafe { text(path, "path") }?).map_err(failed)?
        });
        Ok(())
    })
}

/// Frees a trace; null is passed over.
///
/// # Safety
/// `trace` is null or from `hotset_trace_open`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_trace_free(trace: *mut Trace) {
    if !trace.is_null() {
        guarded(|| {
            // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
            drop(unsafe { Box::from_raw(trace) });
            Ok(())
        });
    }
}

/// How large it is.
///
/// # Safety
/// `trace` is from `hotset_trace_open`; `shape` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_trace_shape(trace: *const Trace, shape: *mut TraceShape) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let trace = &unsafe { shared(trace, "trace") }?.inner;
        if shape.is_null() {
            return Err(Failure::null("shape"));
        }
        let layers = trace.shape().layers();
        let measured = TraceShape {
            tokens: trace.tokens(),
            layers: layers.len(),
            max_experts: trace.shape().max_experts(),
            max_top_k: layers.iter().map(|layer| layer.top_k).max().unwrap_or(0),
        };
        // SAFETY: the caller's promise, and it is not null.
        unsafe { shape.write(measured) };
        Ok(())
    })
}

/// Experts and top-k of a layer.
///
/// # Safety
/// `trace` is from `hotset_trace_open`; `experts` and `top_k` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_trace_layer(
    trace: *const Trace,
    layer: usize,
    experts: *mut u32,
    top_k: *mut u32,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (trace, experts, top_k) = unsafe {
            (
                &shared(trace, "trace")?.inner,
                exclusive(experts, "experts")?,
                exclusive(top_k, "top_k")?,
            )
        };
        let layers = trace.shape().layers();
        let Some(of) = layers.get(layer) else {
            let last = layers.len() - 1;
            return Err(Failure::invalid(format!("layer {layer}: there are 0 to {last}")));
        };
        (*experts, *top_k) = (of.experts, of.top_k);
        Ok(())
    })
}

/// The experts of one token in one layer, best first, into `experts`; `count` gets how many. `phase`,
/// where it is not null, gets 0 (prefill), 1 (decode) or 2 (verify).
///
/// # Safety
/// `trace` is from `hotset_trace_open`; `experts` has room for `room` numbers; `count` can be written to,
/// `phase` too unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_trace_experts(
    trace: *const Trace,
    token: usize,
    layer: usize,
    room: usize,
    experts: *mut u32,
    count: *mut usize,
    phase: *mut u8,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (trace, count) =
            unsafe { (&shared(trace, "trace")?.inner, exclusive(count, "count")?) };
        let (tokens, layers) = (trace.tokens(), trace.shape().layers().len());
        if token >= tokens || layer >= layers {
            let told = format!("token {token} of {tokens}, layer {layer} of {layers}");
            return Err(Failure::invalid(told));
        }
        let ids = trace.layer_ids(token, layer);
        if experts.is_null() {
            return Err(Failure::null("experts"));
        }
        if ids.len() > room {
            return Err(Failure::invalid(format!("experts: room for {room} of {}", ids.len())));
        }
        for (place, id) in ids.iter().enumerate() {
            // SAFETY: there is room for so many.
            unsafe { experts.add(place).write(id) };
        }
        *count = ids.len();
        if !phase.is_null() {
            // SAFETY: the caller's promise.
            unsafe { phase.write(trace.phases()[token]) };
        }
        Ok(())
    })
}
