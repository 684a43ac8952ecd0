//! `hotset plan` and `hotset preflight` from outside: formats, exit codes, refusals, and a plan's
//! prices against a replay of the same trace.

use crate::common::{counts_file, hotset, json, refused, stderr, stdout};

const OLMOE: [&str; 7] =
    ["plan", "--model", "OLMoE-1B-7B", "--machine", "h200", "--trace", "bundled"];

/// OLMoE with so many bytes of an H200.
fn olmoe(free: &str) -> serde_json::Value {
    json(&[&OLMOE[..], &["--free", free, "--context", "4096"]].concat())
}

#[test]
fn a_plans_misses_and_copies_are_those_of_a_replay() {
    let plan = olmoe("5GiB");
    let slots = plan["fit"]["slots"].as_u64().unwrap();
    assert!((100..900).contains(&slots), "{slots}");
    let expert = plan["model"]["expert_bytes"].to_string();
    // The plan counts from the first quarter of the steps on.
    let replay = json(&[
        "compare",
        "--policy",
        "lru",
        "--phase",
        "decode",
        "--capacity",
        &slots.to_string(),
        "--expert-size",
        &expert,
        "--link",
        "h200-pcie",
        "--warmup",
        "3072",
    ]);
    let rows = replay["rows"].as_array().unwrap();
    let steady = rows.iter().find(|row| row["window"] == "steady").unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let misses = number(&steady["misses"]) / number(&steady["tokens"]) / 16.0;
    let planned = number(&plan["speed"]["need"]["misses"]);
    assert!((planned / misses - 1.0).abs() < 1e-9, "{planned} against {misses}");
    // A burst of the mean number of misses costs about the mean of the bursts.
    let timeline = number(&steady["links"][0]["timeline_ms_per_token"]);
    let link = number(&plan["speed"]["parts"]["link_ms"]);
    assert!((link / timeline - 1.0).abs() < 0.05, "{link} against {timeline}");
    let moved = number(&plan["speed"]["moved_mib"]);
    assert!((moved / number(&steady["mib_per_token"]) - 1.0).abs() < 1e-9, "{moved}");
}

#[test]
fn results_do_not_depend_on_threads() {
    let run = |threads: &str| {
        let flags = ["--users", "4", "--free", "6GiB", "--format", "json", "--threads", threads];
        stdout(&[&OLMOE[..], &flags].concat())
    };
    assert_eq!(run("1"), run("2"));
    let vary = |threads: &str| {
        let flags = ["--vary", "users=1..4", "--vary", "gpu-memory=6,8", "--threads", threads];
        stdout(&[&OLMOE[..], &flags].concat())
    };
    assert_eq!(vary("1"), vary("2"));
}

#[test]
fn tables_fit_80_columns() {
    let plan = stdout(&[&OLMOE[..], &["--users", "8", "--free", "7GiB"]].concat());
    let what_if = stdout(&[&OLMOE[..], &["--vary", "gpu-memory=4,8,16"]].concat());
    let check = hotset(&["preflight", "--model", "DeepSeek-V3", "--machine", "8xh200"]);
    let check = String::from_utf8(check.stdout).unwrap();
    for text in [plan, what_if, check] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn what_ifs_in_every_format() {
    let flags = ["--vary", "users=1,2,49", "--free", "16GiB", "--context", "1024"];
    let result = json(&[&OLMOE[..], &flags].concat());
    let points = result["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    assert!(points[0]["speed"]["timeline"]["tokens_per_s"].as_f64() > Some(0.0));
    let reason = points[2]["reason"].as_str().unwrap();
    assert!(reason.contains("48 sequences"), "{reason}");
    let csv = stdout(&[&OLMOE[..], &flags, &["--format", "csv"]].concat());
    let mut lines = csv.lines();
    assert!(lines.next().unwrap().starts_with("users,verdict,binding,short_gib,slots"));
    assert_eq!(lines.count(), 3);
    let markdown = stdout(&[&OLMOE[..], &flags, &["--format", "markdown"]].concat());
    assert!(markdown.contains("| users"), "{markdown}");
}

#[test]
fn preflight_tells_scripts() {
    let check = |machine: &str, more: &[&str]| {
        let base = ["preflight", "--model", "gpt-oss-120b", "--machine", machine];
        hotset(&[&base[..], more].concat())
    };
    assert_eq!(check("h200", &[]).status.code(), Some(0));
    let short = check("rtx-4090", &["--format", "json"]);
    assert_eq!(short.status.code(), Some(1), "{}", stderr(&short));
    let result: serde_json::Value = serde_json::from_slice(&short.stdout).unwrap();
    assert_eq!((&result["passes"], &result["verdict"]), (&false.into(), &"cached".into()));
    assert!(result["rank_margin_bytes"].as_i64() < Some(0));
    assert_eq!(check("rtx-4090", &["--cached"]).status.code(), Some(0));
    assert_eq!(check("rtx-4090", &["--context", "0"]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_is_refused() {
    let plan = |flags: &[&str], parts: &[&str]| {
        refused(&[&["plan"], flags].concat(), parts);
    };
    plan(&["--model", "DeepSeek-V33", "--machine", "h200"], &["did you mean `DeepSeek-V3`?"]);
    plan(&["--model", "OLMoE-1B-7B", "--machine", "h2oo"], &["did you mean `h20`?"]);
    plan(&["--model", "Kimi-K3", "--machine", "8xh200"], &["give a format"]);
    let other = ["--model", "Qwen3-30B-A3B", "--machine", "h200", "--trace", "bundled"];
    plan(&other, &["16 layers x 64 experts", "48 layers x 128 experts", "--stand-in"]);
    let base = ["--model", "OLMoE-1B-7B", "--machine", "h200"];
    for (flags, parts) in [
        (&["--stand-in"][..], &["--trace"][..]),
        (&["--trace", "bundled", "--users", "49"], &["48 sequences"]),
        (&["--usable-share", "50%", "--free", "1GiB"], &["contradict"]),
        (&["--tp", "2"], &["needs 2 accelerators", "2xh200"]),
        (&["--vary", "batch=2"], &["cannot be varied; names: gpu-memory"]),
        (&["--vary", "users=2", "--vary", "users=3"], &["varies what another --vary varies"]),
        (&["--vary", "link=zgx-pci"], &["did you mean `zgx-pcie`?"]),
        (&["--vary", "gpu-memory=-1"], &["is not a number of GiB"]),
        (&["--vary", "context=1..20000", "--vary", "users=1,2"], &["is not a range"]),
        (&["--weights", "5GB:6GB"], &["--weights"]),
        (&["--accept", "80%"], &["--accept is for drafted tokens"]),
        (&["--weights", "lots"], &["24GiB"]),
        (&["--expert-format", "fp3"], &["unknown weight format `fp3`", "a GGUF mix"]),
        (
            &["--quant", "Q4_K_MM"],
            &["--quant", "unknown mix `Q4_K_MM`", "UD-", "did you mean 'Q4_K_M'?"],
        ),
        (&["--quant", "f32:1 q9_k:2"], &["`q9_k` is no type"]),
        (&["--quant", "Q4_K_M", "--rest-format", "q8_0"], &["--rest-format"]),
        (
            &["--expert-format", "Q4_K_M", "--rest-format", "q8_0"],
            &["--rest-format does not go with the mix Q4_K_M"],
        ),
        (&["--trace", "none.hst"], &["none.hst"]),
    ] {
        plan(&[&base[..], flags].concat(), parts);
    }
}

#[test]
fn a_mix_is_named_as_people_name_it() {
    let plan = |flags: &[&str]| {
        let base = ["plan", "--model", "Qwen3-30B-A3B", "--machine", "rtx-3090"];
        json(&[&base[..], flags].concat())
    };
    let named = plan(&["--quant", "Q4_K_M"]);
    assert_eq!(named, plan(&["--expert-format", "Q4_K_M"]), "either flag");
    let text = named.to_string();
    assert!(text.contains("tensor types of Q4_K_M"), "{text}");
    let guessed = plan(&["--quant", "UD-Q4_K_XL"]).to_string();
    assert!(guessed.contains("the rules of `UD-Q4_K_XL` are not public"), "{guessed}");
}

#[test]
fn a_key_that_nothing_understands_is_named_and_may_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.json");
    let config = r#"{"model_type": "brand_new", "hidden_size": 64, "num_hidden_layers": 2, "num_experts": 8,
        "num_attention_heads": 4, "moe_intermediate_size": 128, "vocab_size": 100, "num_experts_per_tok": 2,
        "memory_slots": 4096}"#;
    std::fs::write(&path, config).unwrap();
    let base = ["plan", "--model", path.to_str().unwrap(), "--machine", "h200"];
    refused(&base, &["`memory_slots`", "--allow-unknown"]);
    let output = stdout(&[&base[..], &["--allow-unknown"]].concat());
    assert!(output.contains("memory_slots"), "{output}");
}

#[test]
fn broken_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let dense = r#"{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}"#;
    let unknown = r#"{"model_type": "brand_new", "num_experts": 8}"#;
    for (file, parts) in [
        (write("dense.json", dense.as_bytes()), &["dense"][..]),
        (write("new.json", unknown.as_bytes()), &["brand_new"]),
        (write("cut.gguf", b"GGUF\x03\0\0\0\xff\xff"), &["cut.gguf"]),
        (write("not.json", b"{"), &["not.json"]),
        (folder.path().join("absent.json").display().to_string(), &["cannot read"]),
    ] {
        refused(&["plan", "--model", &file, "--machine", "h200"], parts);
    }
}

#[test]
fn a_machine_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.toml");
    let text = r#"
        name = "box"
        description = "a box"
        memory = { gib = 8.0, basis = "measured", source = "nvidia-smi" }
        usable_share = { value = 0.9, basis = "assumed", source = "assumption: a desktop" }
        host_memory = { gb = 64.0, basis = "measured", source = "free" }
        memory_rate = { gb_s = 288.0, basis = "published", source = "data sheet" }
        host_rate = { gb_s = 40.0, basis = "measured", source = "stream" }
        link = { name = "x4", kind = "pcie", gb_s = 6.4, source = "measured with a loop" }
    "#;
    std::fs::write(&path, text).unwrap();
    let plan = json(&[
        "plan",
        "--model",
        "OLMoE-1B-7B",
        "--machine",
        path.to_str().unwrap(),
        "--trace",
        "bundled",
        "--context",
        "2048",
    ]);
    assert_eq!(plan["machine"]["name"], "box");
    assert_eq!(plan["fit"]["verdict"], "cached");
    assert_eq!(plan["machine"]["link"], "x4");
    let sources = plan["coefficients"].as_array().unwrap();
    assert!(sources.iter().all(|one| !one["source"].as_str().unwrap().is_empty()));
}

#[test]
fn a_fitted_profiles_link() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, toml) = (folder.path().join("links.csv"), folder.path().join("mine.toml"));
    let mut rows = "device,link,mode,bytes,transfers,ms\n".to_owned();
    for mib in [1u64, 2, 4, 16, 64] {
        let (bytes, ms) = (mib << 20, 0.005 + 0.02 * mib as f64);
        rows.push_str(&format!("GPU,pcie-x,pinned-h2d,{bytes},1,{ms}\n"));
        rows.push_str(&format!("GPU,pcie-x,pinned-h2d,{bytes},2,{}\n", 2.0 * ms));
        rows.push_str(&format!("GPU,hbm,kernel-chain,{bytes},1,{}\n", ms / 20.0));
    }
    std::fs::write(&csv, rows).unwrap();
    let (csv, toml) = (csv.to_str().unwrap(), toml.to_str().unwrap());
    stdout(&["link", "fit", csv, "-o", toml, "--name", "mine", "--source", "a test"]);
    let link = |named: &str| {
        let plan = json(&[&OLMOE[..], &["--free", "5GiB", "--link", named]].concat());
        plan["machine"]["link"].clone()
    };
    assert_eq!(link(toml), "mine-pcie");
    assert_eq!(link(&format!("{toml}:mine-pcie")), "mine-pcie");
    let absent = format!("{toml}:fast");
    refused(&[&OLMOE[..], &["--link", &absent]].concat(), &["has the links mine-pcie", ":NAME"]);
    let machine = ["plan", "--model", "OLMoE-1B-7B", "--machine", toml];
    refused(&machine, &["is a profile of links", "--link", "docs/metrics.md"]);
}

/// A plan by counts is what static placement by the same counts does in a replay of the trace that
/// was counted.
#[test]
fn a_plan_by_counts_is_a_replay_of_static_placement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uses.npy");
    let trace = hotset::traces::bundled().unwrap();
    let mut uses = vec![0.0; 16 * 64];
    let decode = || (0..trace.tokens()).filter(|&row| trace.phases()[row] == 1);
    for row in decode() {
        for layer in 0..16 {
            trace.layer_ids(row, layer).iter().for_each(|id| uses[layer * 64 + id as usize] += 1.0);
        }
    }
    counts_file(&path, uses.into_iter());
    let path = path.to_str().unwrap();
    let by_counts = ["plan", "--model", "OLMoE-1B-7B", "--machine", "h200", "--histogram", path];
    let plan = json(&[&by_counts[..], &["--free", "5GiB"]].concat());
    let slots = plan["fit"]["slots"].as_u64().unwrap();
    let capacity = slots.to_string();
    let replay = ["compare", "--policy", "static", "--phase", "decode", "--warmup", "0"];
    let replay = [&replay[..], &["--histogram", path, "--capacity", &capacity]].concat();
    let misses = json(&replay)["rows"][0]["misses"].as_u64().unwrap();
    let planned = plan["speed"]["need"]["misses"].as_f64().unwrap();
    let planned = planned * 16.0 * decode().count() as f64;
    assert!((planned - misses as f64).abs() < 0.01, "{planned} against {misses}");
    assert_eq!(plan["routing"]["kind"], "histogram");
    assert_eq!(plan["routing"]["format"], "moe-infinity");
    assert!(stdout(&by_counts).contains("counts uses.npy"));

    let both = [&by_counts[..], &["--trace", "bundled"]].concat();
    refused(&both, &["--histogram", "--trace", "cannot be used with"]);
    let other = ["plan", "--model", "gpt-oss-20b", "--machine", "h200", "--histogram", path];
    refused(&other, &["counts 64 experts in layer 0, the model has 32"]);
    refused(&[&by_counts[..6], &["Cargo.toml"]].concat(), &["is no histogram"]);
    refused(&[&by_counts[..6], &["/nowhere"]].concat(), &["cannot read /nowhere"]);
}

/// Each further layer of experts on the accelerator saves what was reported of that machine: 51.0 tokens a
/// second with all 40 layers of Q4_K_M on the host and 69.6 with 24 are 0.33 ms a layer.
#[test]
fn a_marginal_layer_saves_what_was_reported() {
    let step = |layers: &str, engine: &str| {
        let plan = json(&[
            "plan",
            "--model",
            "Qwen3.5-35B-A3B",
            "--quant",
            "Q4_K_M",
            "--machine",
            "rtx-5080",
            "--host",
            "ddr5-4800x2:128GB",
            "--context",
            "4096",
            "--engine",
            engine,
            "--cpu-moe",
            layers,
        ]);
        1000.0 / plan["speed"]["tokens_per_s"].as_f64().unwrap()
    };
    let reported = (1000.0 / 51.0 - 1000.0 / 69.6) / 16.0;
    for engine in ["llama.cpp", "ktransformers"] {
        let sweep: Vec<f64> = ["40", "36", "32", "28", "24"].map(|n| step(n, engine)).to_vec();
        for pair in sweep.windows(2) {
            let saved = (pair[0] - pair[1]) / 4.0;
            assert!((saved / reported - 1.0).abs() < 0.25, "{engine}: {saved} of {reported}");
        }
        let whole = (sweep[0] - sweep[4]) / 16.0;
        assert!((whole / reported - 1.0).abs() < 0.25, "{engine}: {whole} of {reported}");
    }
}
