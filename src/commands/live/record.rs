//! `hotset live record`: one setting's decisions as a log.

use std::io::Write;

use hotset::live::{LiveSetting, Replayed};
use hotset::sim::{Parts, Preparation};

use super::settings;
use crate::cli::LiveRecordArgs;
use crate::fault::{Ending, Fault};
use crate::{output, session};

/// Runs the setting and writes its log.
pub fn run(args: &LiveRecordArgs) -> Result<Ending, Fault> {
    let trace = settings::trace(&args.setting)?;
    let machine = args.setting.links.as_deref().map(settings::machine_of).transpose()?;
    let requests = settings::requests(&args.setting, &trace, machine.as_ref())?;
    let [request] = &requests[..] else { return Err(several()) };
    let parts = Parts::of(&trace, &request.compare)?;
    let prepared = Preparation::of(&parts, &request.compare)?;
    let ([policy], [size]) = (&request.compare.policies[..], prepared.sizes()) else {
        return Err(several());
    };
    let model = settings::model(&args.setting.model, &trace)?;
    let live = LiveSetting { logs: true, ..settings::live(&args.setting.model) };
    let setting = prepared.setting(&policy.value, size);
    let run = Replayed::of(&prepared).run(&model, &setting, &live)?;
    let decisions = run.log.map(|log| log.decisions).unwrap_or_default();
    output::write_through(&args.output, |file| {
        let mut out = std::io::BufWriter::new(file);
        let mut write = || {
            for decision in &decisions {
                serde_json::to_writer(&mut out, decision)?;
                out.write_all(b"\n")?;
            }
            out.flush()
        };
        let path = args.output.display().to_string();
        write().map_err(|reason| Fault::Write { path, reason })
    })?;
    let (events, checked) = (decisions.len(), run.checked);
    let path = args.output.display();
    session::note(format!("{path}: {events} events; {checked} experts' sums checked, all right"));
    Ok(Ending::Passed)
}

fn several() -> Fault {
    let told = "a log is of one setting: give one policy, one scope, one capacity, one prefetcher \
                and one way to handle misses";
    Fault::Usage(told.to_owned())
}
