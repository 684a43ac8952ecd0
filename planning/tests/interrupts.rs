//! Somebody who stops a plan: whatever it measures, it ends soon.

use std::sync::atomic::{AtomicUsize, Ordering};

use hotset_cost_models::{Model, find_hardware};
use hotset_planning::{PlanError, Request, Routing, plan, what_if};
use hotset_sim::ReplayProgress;
use hotset_traces::{Trace, bundled};

/// Says stop from the look after so many on.
struct Stops {
    after: usize,
    looks: AtomicUsize,
}

impl Stops {
    fn after(looks: usize) -> Self {
        Self { after: looks, looks: AtomicUsize::new(0) }
    }
}

impl ReplayProgress for Stops {
    fn begin(&self, _: u64) {}
    fn advance(&self) {}
    fn cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.after
    }
}

fn request() -> Request {
    let machine = find_hardware("rtx-4090").unwrap();
    let mut request = Request::new(Model::builtin("OLMoE-1B-7B").unwrap(), machine);
    request.reserve.free = Some(3 << 30);
    request.machine.host_memory.value = 3 << 30;
    (request.context, request.users) = (4096, 4);
    request
}

#[test]
fn a_plan_that_is_stopped_gives_nothing_wherever_it_was() {
    let trace: Trace = bundled().unwrap();
    let request = request();
    let nobody = Stops::after(usize::MAX);
    let routing = Routing::of_trace(&request.model, &trace, false).unwrap().watched_by(&nobody);
    plan(&request, &routing).unwrap();
    let looks = nobody.looks.load(Ordering::Relaxed);
    assert!(looks > 8, "{looks}");
    for after in [0, 1, looks / 3, looks / 2, looks - 1] {
        let stops = Stops::after(after);
        let routing = Routing::of_trace(&request.model, &trace, false).unwrap().watched_by(&stops);
        let stopped = plan(&request, &routing);
        assert!(matches!(stopped, Err(PlanError::Interrupted)), "{after} of {looks}");
    }
}

#[test]
fn a_what_if_that_is_stopped_gives_nothing() {
    let trace: Trace = bundled().unwrap();
    let request = request();
    let axes = ["users=1..4", "host-memory=3,64"].map(|axis| axis.parse().unwrap());
    for after in [0, 3, 10] {
        let stops = Stops::after(after);
        let routing =
            |model: &Model| Ok(Routing::of_trace(model, &trace, false)?.watched_by(&stops));
        let stopped = what_if(&request, &axes, routing);
        assert!(matches!(stopped, Err(PlanError::Interrupted)), "{after}");
    }
}
