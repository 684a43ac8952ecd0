//! `hotset live run` and `live check`: settings run live, and held against their replays.

use hotset::cost_models::MachineProfile;
use hotset::live::{Calibration, LiveModel, LiveSetting, Replayed};
use hotset::policies::PolicySpec;
use hotset::reports::Output;
use hotset::sim::{Counts, Named, Parts, Preparation, ReplayProgress, Size, Window};
use hotset::traces::{Phase, Trace};

use super::point::{self, LivePoint, Names, Replay};
use super::settings::{self, Request};
use super::{calibrate, report};
use crate::cli::{LiveArgs, LiveCheckArgs, LiveSettingArgs};
use crate::fault::{Ending, Fault};
use crate::progress::Bar;
use crate::{interrupt, output};

/// Runs settings and gives what they took.
pub fn run(args: &LiveArgs) -> Result<Ending, Fault> {
    let trace = settings::trace(&args.setting)?;
    let machine = args.setting.links.as_deref().map(settings::machine_of).transpose()?;
    // Before a GPU is asked for anything: what is wrong with the flags is told anywhere.
    settings::check_names(&args.setting, &trace)?;
    settings::requests(&args.setting, &trace, machine.as_ref())?;
    let model = settings::model(&args.setting.model, &trace)?;
    let mut ran = Ran::new(&trace, &model, &args.setting);
    ran.all(&args.setting, machine.as_ref())?;
    ran.write_steps(args.tokens_to.as_deref())?;
    let output = report::ran(&trace, &model, &ran.points)?;
    output::give(&output, &args.output)?;
    Ok(Ending::Passed)
}

/// Runs settings, predicts them and says where they are off.
pub fn check(args: &LiveCheckArgs) -> Result<Ending, Fault> {
    let trace = settings::trace(&args.setting)?;
    let given = args.setting.links.as_deref().map(settings::machine_of).transpose()?;
    settings::check_names(&args.setting, &trace)?;
    if let Some(machine) = &given {
        settings::requests(&args.setting, &trace, Some(machine))?;
    }
    let model = settings::model(&args.setting.model, &trace)?;
    let machine = match given {
        Some(machine) => machine,
        None => {
            let host_threads = settings::host_threads(&args.setting.model);
            // The sizes that these settings have, and what lies around them.
            let own = model.expert_bytes();
            let sizes = vec![own / 2, own, own.saturating_mul(2), 8 << 20];
            let what = Calibration { host_threads, sizes, repeats: 9 };
            let timings = calibrate::timings(&model, &what)?;
            settings::machine(timings.as_bytes(), "timings of this run")?
        }
    };
    let mut ran = Ran::new(&trace, &model, &args.setting);
    ran.all(&args.setting, Some(&machine))?;
    ran.write_steps(args.tokens_to.as_deref())?;
    let allowed = report::Allowed { most: args.most_error, median: args.most_median };
    let (output, failures): (Output, Vec<String>) =
        report::checked(&trace, &model, &ran.points, &allowed)?;
    output::give(&output, &args.output)?;
    for failure in &failures {
        eprintln!("check failed: {failure}");
    }
    Ok(if failures.is_empty() { Ending::Passed } else { Ending::Failed })
}

/// Settings on their way.
struct Ran<'a> {
    trace: &'a Trace,
    model: &'a LiveModel,
    live: LiveSetting,
    points: Vec<LivePoint>,
    steps: String,
}

impl<'a> Ran<'a> {
    fn new(trace: &'a Trace, model: &'a LiveModel, args: &LiveSettingArgs) -> Self {
        let live = settings::live(&args.model);
        Self { trace, model, live, points: Vec::new(), steps: point::STEP_COLUMNS.to_owned() }
    }

    fn all(
        &mut self,
        args: &LiveSettingArgs,
        machine: Option<&MachineProfile>,
    ) -> Result<(), Fault> {
        let bar = Bar::new();
        let requests = settings::requests(args, self.trace, machine)?;
        let runs = |r: &Request| {
            let compare = &r.compare;
            compare.policies.len() * compare.capacities.len() * compare.scopes.len()
        };
        bar.begin(requests.iter().map(runs).sum::<usize>() as u64);
        for request in &requests {
            let parts = Parts::of(self.trace, &request.compare)?;
            let prepared = Preparation::of(&parts, &request.compare)?;
            for (place, size) in prepared.sizes().iter().enumerate() {
                for (number, policy) in request.compare.policies.iter().enumerate() {
                    if interrupt::requested() {
                        return Err(Fault::Interrupted);
                    }
                    if !prepared.leaves_out(number, place) {
                        self.one(&prepared, request, policy, size)?;
                    }
                    bar.advance();
                }
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        prepared: &Preparation<'_>,
        request: &Request,
        policy: &Named<PolicySpec>,
        size: &Size,
    ) -> Result<(), Fault> {
        let setting = prepared.setting(&policy.value, size);
        let replayed = Replayed::of(prepared);
        let run = replayed.run(self.model, &setting, &self.live)?;
        let replay = match prepared.timelines().pop() {
            None => None,
            Some(timeline) => {
                let (_, steps, digest) = replayed.predict(&setting, timeline)?;
                Some(Replay { steps, digest })
            }
        };
        let names = Names {
            policy: &policy.text,
            scope: size.scope.name(),
            prefetch: &request.prefetch,
            miss: &request.miss,
            slots: size.slots.total(),
            warmup: request.compare.warmup.unwrap_or(0),
            hit_rates: Phase::ALL.map(|phase| hit_rate(&run.counts, phase)),
        };
        point::step_rows(&mut self.steps, &names, &run, replay.as_ref());
        let trace = prepared.trace();
        self.points.extend(point::points(trace, self.model, &names, &run, replay.as_ref()));
        Ok(())
    }

    fn write_steps(&self, path: Option<&std::path::Path>) -> Result<(), Fault> {
        path.map_or(Ok(()), |path| output::write_whole(path, self.steps.as_bytes()))
    }
}

fn hit_rate(counts: &Counts, phase: Phase) -> Option<f64> {
    let bucket = counts.bucket(phase, Window::Steady);
    let (accesses, hits) = (bucket.accesses, bucket.hits);
    (accesses > 0).then(|| hits as f64 / accesses as f64)
}
