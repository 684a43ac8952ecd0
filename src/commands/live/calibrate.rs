//! `hotset live calibrate`.

use std::fmt::Write;

use hotset::live::{Calibration, LiveModel, Timing, calibrate};

use super::settings;
use crate::cli::CalibrateArgs;
use crate::fault::{Ending, Fault};
use crate::{commands, output};

/// Times the machine and gives the rows.
pub fn run(args: &CalibrateArgs) -> Result<Ending, Fault> {
    let trace = commands::open(args.model.trace.as_deref())?;
    let model = settings::model(&args.model, &trace)?;
    let mut what = Calibration {
        repeats: args.repeats,
        host_threads: settings::host_threads(&args.model),
        ..Calibration::default()
    };
    if !args.sizes.is_empty() {
        what.sizes.clone_from(&args.sizes);
    }
    let rows = timings(&model, &what)?;
    match &args.output {
        Some(path) => output::write_whole(path, rows.as_bytes())?,
        None => output::print(&rows)?,
    }
    Ok(Ending::Passed)
}

/// The machine's timings as the file that 'hotset link fit' reads.
pub fn timings(model: &LiveModel, what: &Calibration) -> Result<String, Fault> {
    let device = model.device_name();
    let mut rows = "device,link,mode,bytes,transfers,ms\n".to_owned();
    let mut row = |timing: &Timing| {
        let Timing { link, mode, bytes, transfers, ms } = timing;
        // Writing to a text cannot fail.
        let _ = writeln!(rows, "{device},{link},{mode},{bytes},{transfers},{ms:.6}");
    };
    calibrate(model, what, &mut row)?;
    Ok(rows)
}
