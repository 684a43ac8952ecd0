//! libCacheSim on the same accesses, in the same run, where its package is installed.

use std::process::Command;

use hotset::traces::export::{ExportFormat, export};

use crate::Result;
use crate::support::{Workload, array_lru};

/// What runs the library; `HOTSET_PYTHON` names another interpreter than `python3`.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/libcachesim_speed.py");

/// One of its policies.
pub struct Peer {
    name: String,
    /// Best processor time of a pass.
    pub seconds: f64,
}

/// What was measured of it.
pub struct Peers {
    all: Vec<Peer>,
    /// The same in words: its version, or what is needed to measure it.
    pub told: String,
}

impl Peers {
    /// Its policy of that name.
    pub fn of(&self, name: &str) -> Option<&Peer> {
        self.all.iter().find(|peer| peer.name == name)
    }
}

/// Measures all of its policies that are policies here too; none where the package is missing.
pub fn measure(workload: &Workload, rounds: u32) -> Result<Peers> {
    let python = std::env::var("HOTSET_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let version = "import importlib.metadata, libcachesim; \
                   print(importlib.metadata.version('libcachesim'))";
    let asked = Command::new(&python).args(["-c", version]).output();
    let Some(asked) = asked.ok().filter(|asked| asked.status.success()) else {
        let told = "libCacheSim was not measured: its package (`pip install libcachesim`, from PyPI; \
                    `HOTSET_PYTHON` names the interpreter that has it) was not there.";
        return Ok(Peers { all: Vec::new(), told: told.to_owned() });
    };
    let version = String::from_utf8(asked.stdout)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.oracleGeneral");
    export(&workload.trace, ExportFormat::OracleGeneral, &path)?;
    let mut run = Command::new(&python);
    run.arg(SCRIPT).arg(&path).args([workload.slots.to_string(), rounds.to_string()]);
    let ran = run.output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    let mut all = Vec::new();
    for line in String::from_utf8(ran.stdout)?.lines() {
        let [name, seconds, missed] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("libCacheSim's line '{line}'").into());
        };
        if name == "lru" {
            check_lru(workload, missed.parse()?)?;
        }
        all.push(Peer { name: name.to_owned(), seconds: seconds.parse()? });
    }
    let told = format!(
        "libCacheSim {} ran in the same run on the same accesses (`benches/libcachesim_speed.py`).",
        version.trim()
    );
    Ok(Peers { all, told })
}

/// Its LRU must miss what the array LRU misses, or it ran over something else.
fn check_lru(workload: &Workload, missed: f64) -> Result<()> {
    let own = array_lru(&workload.keys, workload.slots) as f64;
    let theirs = missed * workload.accesses() as f64;
    if (own - theirs).abs() > 0.5 {
        return Err(
            format!("libCacheSim's LRU misses {theirs:.0} times, the array LRU {own}").into()
        );
    }
    Ok(())
}
