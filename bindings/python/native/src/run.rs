//! Runs a command in this process: off the GIL, stopped by Ctrl-C, followed by a bar.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use hotset::host::{self, Follower, Host, Refusal};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{of_refusal, refused};
use crate::foreign::{self, Failure};
use crate::trace::Trace;

/// How often Ctrl-C is looked for and the bar is moved.
const LOOK: Duration = Duration::from_millis(50);
/// As the main thread of a program has it.
const STACK_BYTES: usize = 8 << 20;

/// Counts what is done, and stops the work.
#[derive(Default)]
struct Watch {
    replays: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    failure: Arc<Failure>,
}

impl Follower for Watch {
    fn begin(&self, replays: u64) {
        self.replays.store(replays, Ordering::Relaxed);
    }

    fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failure.has_happened()
    }
}

/// Within a thread state that lasts as long as the thread's work, so that policies in Python take the
/// GIL without making one at every call.
fn within_a_thread_state(work: &mut (dyn FnMut() + Send)) {
    Python::attach(|py| py.detach(work));
}

/// run(words, traces, policies, progress): the words of a command line, traces and policies by the
/// names that stand for them, and a callable that is told (done, of how many).
/// Gives (output, notes, passed).
#[pyfunction]
#[pyo3(signature = (words, traces = Vec::new(), policies = Vec::new(), progress = None))]
pub fn run(
    py: Python<'_>,
    words: Vec<String>,
    traces: Vec<(String, Trace)>,
    policies: Vec<(String, Py<PyAny>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>, bool)> {
    let given = Given { words, traces, policies };
    let answer = watched(py, given, progress, host::run)?;
    Ok((answer.output, answer.notes, answer.passed))
}

/// make_trace(words, traces): the words of 'trace import', 'slice', 'compose' or 'shuffle' behind
/// 'trace', without --output. Gives (trace, notes).
#[pyfunction]
#[pyo3(signature = (words, traces = Vec::new()))]
pub fn make_trace(
    py: Python<'_>,
    words: Vec<String>,
    traces: Vec<(String, Trace)>,
) -> PyResult<(Trace, Vec<String>)> {
    let given = Given { words, traces, policies: Vec::new() };
    let (trace, notes) = watched(py, given, None, host::trace)?;
    Ok((Trace::of(trace), notes))
}

struct Given {
    words: Vec<String>,
    traces: Vec<(String, Trace)>,
    policies: Vec<(String, Py<PyAny>)>,
}

fn watched<T: Send + 'static>(
    py: Python<'_>,
    given: Given,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Vec<String>, Host) -> Result<T, Refusal> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let mut host = Host::new().followed_by(Arc::clone(&watch) as Arc<dyn Follower>);
    for (name, trace) in given.traces {
        host = host.with_trace(name, trace.shared());
    }
    if !given.policies.is_empty() {
        host = host.with_threads_in(within_a_thread_state);
    }
    for (name, factory) in given.policies {
        host = host.with_policy(foreign::given(&name, factory, Arc::clone(&watch.failure))?);
    }
    let (send, receive) = channel();
    let words = given.words;
    let worker = std::thread::Builder::new()
        .name("hotset".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // Whoever waits is there until this is received.
            let _ = send.send(work(words, host));
        })
        .map_err(|error| refused(format!("cannot start a thread: {error}")))?;
    let mut receive = receive;
    let mut interrupt = None;
    let answer = loop {
        let (answer, back) = py.detach(move || (receive.recv_timeout(LOOK), receive));
        receive = back;
        match answer {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(answer) => break Some(answer),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
        if interrupt.is_none()
            && let Err(raised) = py.check_signals().and_then(|()| tell(py, &watch, &progress))
        {
            watch.stop.store(true, Ordering::Relaxed);
            interrupt = Some(raised);
        }
    };
    let ended = py.detach(|| worker.join());
    if let Some(raised) = interrupt {
        return Err(raised);
    }
    if let Some(raised) = watch.failure.take() {
        return Err(raised);
    }
    match (answer, ended) {
        (Some(answer), Ok(())) => {
            tell(py, &watch, &progress)?;
            answer.map_err(of_refusal)
        }
        _ => Err(PyRuntimeError::new_err(
            "hotset ended unexpectedly; this is a fault of its own, please report it with the text above",
        )),
    }
}

fn tell(py: Python<'_>, watch: &Watch, progress: &Option<Py<PyAny>>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let (done, of) = (watch.done.load(Ordering::Relaxed), watch.replays.load(Ordering::Relaxed));
    progress.call1(py, (done, of)).map(|_| ())
}
