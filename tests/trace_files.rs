//! What becomes of files: damaged inputs, outputs that are refused, interrupted or in the way.

use crate::common::{hotset, refused, stderr, stdout};
use crate::trace::{import, small};
use std::path::Path;

#[test]
fn an_output_never_takes_its_inputs_place() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let ids = folder.path().join("ids.txt");
    let dotted = folder.path().join(".").join("small.hst");
    let (path, dotted) = (trace.to_str().unwrap(), dotted.to_str().unwrap());
    let before = std::fs::read(&trace).unwrap();
    for command in [
        &["trace", "export", path, "--to", "jsonl"][..],
        &["trace", "slice", path],
        &["trace", "compose", path, "--concurrency", "1"],
        &["trace", "shuffle", path],
        &["trace", "info", path],
        &["trace", "validate", path],
        &["compare", path],
        &["sweep", path],
        &["sweep", "--resume", path],
        &["replay", path],
        &["compare", "--policy", "static", "--histogram", path],
        &["compare", "--link", &format!("h200-pcie,{path}")],
        &["experiment", "prefetch", path],
        &["plan", "--model", path, "--machine", "h200"],
        &["plan", "--model", "OLMoE-1B-7B", "--machine", path],
        &["preflight", "--model", path, "--machine", "h200"],
        &["conform", path, "--policy", "lru", "--capacity", "25%"],
        &["link", "fit", path],
        &["link", "show", path],
        &["verify-live", path, "--links", "a", "--traces", "b"],
    ] {
        refused(&[command, &["-o", dotted]].concat(), &["the output is the input"]);
        assert!(std::fs::read(&trace).unwrap() == before, "{command:?}");
    }
    let recorded = ["conform", path, "--policy", "lru", "--capacity", "25%", "--record", dotted];
    refused(&recorded, &["the output is the input"]);
    refused(&["replay", path, "--trace-events", dotted], &["the output is the input"]);
    let new = folder.path().join("new.json");
    std::fs::write(&new, "").unwrap();
    let new = new.to_str().unwrap();
    refused(&["replay", path, "--trace-events", new, "-o", new], &["the output is the input"]);
    assert!(std::fs::read(&trace).unwrap() == before);
    let ids = ids.to_str().unwrap();
    let import = |input: &str, output: &str, part: &str| {
        refused(&["trace", "import", "--from", "ids", input, "-o", output], &[part]);
    };
    import(ids, ids, "the output is the input");
    let whole = folder.path().to_str().unwrap();
    import(whole, &format!("{whole}/new.hst"), "lies in the input folder");
}

#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let path = trace.to_str().unwrap();
    let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
    std::fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    stdout(&["trace", "export", path, "--to", "jsonl", "-o", link.to_str().unwrap()]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().starts_with("{\""));
    for command in [&["trace", "slice", path][..], &["trace", "export", path, "--to", "npz"]] {
        stdout(&[command, &["-o", "/dev/null"]].concat());
        let kind = std::fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device());
    }
    stdout(&["trace", "info", path, "-o", "/dev/null"]);
    if Path::new("/dev/full").exists() {
        let full = ["trace", "export", path, "--to", "jsonl", "-o", "/dev/full"];
        refused(&full, &["cannot write /dev/full"]);
    }
}

#[test]
fn write_errors_name_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("absent").join("out.hst");
    let output = hotset(&["trace", "slice", "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("absent/out.hst") && !error.contains(".hotset-"), "{error}");
}

#[test]
fn damaged_files_are_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let trace = small(folder.path());
    let good = std::fs::read(&trace).unwrap();
    let bad = folder.path().join("bad.hst");
    let path = bad.to_str().unwrap();
    let try_bytes = |bytes: &[u8], parts: &[&str]| {
        std::fs::write(&bad, bytes).unwrap();
        refused(&["compare", path], parts);
        refused(&["trace", "info", path], parts);
        let out = folder.path().join("out.json");
        refused(&["compare", path, "-o", out.to_str().unwrap()], parts);
        assert!(!out.exists(), "an output file was left");
        assert_eq!(hotset(&["trace", "validate", path]).status.code(), Some(1));
    };
    try_bytes(&good[..good.len() - 1], &["bad.hst"]);
    try_bytes(&good[..40], &["bad.hst"]);
    try_bytes(&[], &["bad.hst"]);
    try_bytes(
        b"PK\x03\x04 not a trace at all, but long enough for a preamble of 64 bytes....",
        &["bad.hst"],
    );
    let mut longer = good.clone();
    longer.push(0);
    try_bytes(&longer, &["bad.hst"]);
    for place in (0..good.len()).step_by(good.len() / 60 + 1) {
        let mut flipped = good.clone();
        flipped[place] ^= 0x10;
        try_bytes(&flipped, &["bad.hst"]);
    }
}

#[test]
fn bad_imports_are_refused_and_leave_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    let out = folder.path().join("out.hst");
    let try_import = |from: &str, bytes: &[u8], more: &[&str], parts: &[&str]| {
        std::fs::write(&input, bytes).unwrap();
        let paths = [input.to_str().unwrap(), "-o", out.to_str().unwrap()];
        refused(&[&["trace", "import", "--from", from], &paths[..], more].concat(), parts);
        assert!(!out.exists(), "an output file was left");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file stayed");
    };
    try_import("ids", b"", &[], &[]);
    try_import("ids", b"1\n2\nthree\n", &[], &["line 3"]);
    try_import("ids", b"1\n-2\n", &[], &["line 2"]);
    try_import("ids", b"5\n", &["--experts", "5"], &["5"]);
    try_import("npy", b"\x93NUMPY\x01\x00", &[], &["in"]);
    try_import("npz", b"PK\x05\x06", &[], &["in"]);
    try_import("nzp", b"", &[], &["did you mean 'npz'?"]);
    // One token, one layer, top-2, the same expert twice.
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{header:<117}\n");
    npy.extend((padded.len() as u16).to_le_bytes());
    npy.extend(padded.as_bytes());
    let twice = [&npy[..], &[3, 3]].concat();
    try_import("npy", &twice, &[], &["3"]);
    try_import("npy", &[&npy[..], &[3, 1]].concat(), &["--experts", "3"], &["3"]);
    try_import("npy", &[&npy[..], &[3, 1]].concat(), &["--top-k", "4"], &["top-k 4"]);
    let fine = [&npy[..], &[3, 1]].concat();
    std::fs::write(&input, fine).unwrap();
    import("npy", &input, &out, &[]);
}

/// Ctrl-C while a file is being written: the work ends with code 3, says so, and leaves nothing.
#[cfg(unix)]
#[test]
fn an_interrupted_export_leaves_nothing() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.jsonl");
    let mut child = Command::new(env!("CARGO_BIN_EXE_hotset"))
        .args(["trace", "export", "--to", "jsonl", "-o", out.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let entries = || std::fs::read_dir(folder.path()).unwrap().count();
    // The temporary file is there: the work is being written.
    while entries() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    if child.try_wait().unwrap().is_none() {
        let id = child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    // A machine that wrote it all before the signal came has nothing to show.
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("interrupted; nothing was written"));
        assert_eq!(entries(), 0, "something was left");
    }
}
