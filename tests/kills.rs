//! Sweeps that are killed at random moments and resumed give the bytes of one that was not, and
//! leave nothing behind. More of it: `HOTSET_KILLS=300 cargo test --test main kills::`

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{hotset, stderr};
use hotset::traces::{Codec, SynthConfig, synth, write_hst};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Kills in a plain run of the tests.
const KILLS: usize = 12;

fn trace(folder: &Path) -> String {
    let config = SynthConfig {
        layers: 6,
        experts: 32,
        top_k: 4,
        tokens: 4000,
        sequence_tokens: 200,
        prompt_tokens: 50,
        ..SynthConfig::default()
    };
    let path = folder.join("trace.hst");
    write_hst(&synth::generate(&config).unwrap(), &path, Codec::Raw).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A run that may be killed after so long; whether it came to its end.
fn run(args: &[&str], until: Option<Duration>) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hotset"))
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    if let Some(until) = until {
        std::thread::sleep(until);
        // SIGKILL: no handler, no clean-up.
        child.kill().unwrap();
    }
    child.wait().unwrap().success()
}

#[test]
fn killed_and_resumed_sweeps_give_the_same_bytes() {
    let kills = std::env::var("HOTSET_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let results = folder.path().join("results");
    std::fs::create_dir(&results).unwrap();
    let [plain, out, journal] =
        ["plain.json", "out.json", "journal"].map(|name| results.join(name));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let flags = ["sweep", &trace, "--policy", "lru,lfu,sieve,belady", "--scope", "global,layer"];
    let more = ["--capacity", "10%..90%:10%", "--expert-size", "2MiB", "--format", "json", "-o"];
    let flags = [&flags[..], &more].concat();
    let then = Instant::now();
    let output = hotset(&[&flags[..], &[&path(&plain)]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let whole = then.elapsed();
    let plain = std::fs::read(plain).unwrap();
    let (out_path, journal_path) = (path(&out), path(&journal));
    let resumed = [&flags[..], &[&out_path, "--resume", &journal_path]].concat();
    let mut numbers = Pcg64::seed_from_u64(13);
    let mut killed = 0;
    while killed < kills {
        let _ = std::fs::remove_file(&journal);
        let _ = std::fs::remove_file(&out);
        // Up to four kills on the way to one result.
        for _ in 0..4 {
            if run(&resumed, Some(whole.mul_f64(numbers.random_range(0.0..0.8)))) {
                break;
            }
            killed += 1;
        }
        assert!(run(&resumed, None), "not resumed after {killed} kills");
        assert!(std::fs::read(&out).unwrap() == plain, "other bytes after {killed} kills");
        // A killed run's temporary file is removed by a later one once it is a minute old; until
        // then it is all that there may be.
        let left = std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap());
        let left: Vec<_> = left
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| !["plain.json", "out.json", "journal"].contains(&&**name))
            .inspect(|name| age(&results.join(name)))
            .collect();
        assert!(left.iter().all(|name| name.starts_with(".hotset-")), "left {left:?}");
        assert!(run(&resumed, None));
        assert_eq!(std::fs::read_dir(&results).unwrap().count(), 3, "not removed: {left:?}");
    }
}

/// Makes a file an hour old.
fn age(path: &Path) {
    let then = std::time::SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}
