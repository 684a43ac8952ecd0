//! `hotset machines`, and machines as `plan` takes them: composed, out of files of a few lines, named wrongly.

use crate::common::{json, refused, stdout};

/// A file in a folder of its own.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

const GPT: [&str; 3] = ["plan", "--model", "gpt-oss-120b"];

/// gpt-oss-120b on a machine.
fn gpt(flags: &[&str]) -> serde_json::Value {
    json(&[&GPT[..], flags].concat())
}

#[test]
fn the_list_has_what_people_ask_for() {
    let list = json(&["machines"]);
    let names: Vec<&str> = list["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|machine| machine["name"].as_str().unwrap())
        .collect();
    for name in [
        "rtx-3060",
        "rtx-5090",
        "h100",
        "h200",
        "b200",
        "gh200",
        "gb200",
        "mi300x",
        "strix-halo",
        "dgx-spark",
        "m3-ultra-512gb",
        "jetson-agx-orin",
        "cpu",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let hosts = list["hosts"].to_string();
    assert!(hosts.contains("epyc-genoa") && hosts.contains("threadripper"), "{hosts}");
    let table = stdout(&["machines"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(stdout(&["machines", "--format", "csv"]).lines().count() > 100);
}

#[test]
fn one_machine_has_a_source_for_every_figure() {
    let one = json(&["machines", "rtx-5070-ti"]);
    let figures = one["figures"].as_array().unwrap();
    assert!(figures.len() >= 8, "{one}");
    for figure in figures {
        assert!(figure["source"].as_str().unwrap().len() > 10, "{figure}");
        assert!(!figure["basis"].is_null() && !figure["value"].is_null(), "{figure}");
    }
    assert_eq!(json(&["machines", "8xh200"])["accelerators"], 8);
    refused(&["machines", "rtx-507"], &["`rtx-507`", "did you mean `rtx-5070`?", "more"]);
    refused(&["machines", "0xh200"], &["`0xh200`"]);
    refused(&["machines", "nothing-like-it"], &["unknown machine", "hotset machines"]);
}

/// Whatever is or is not found here, a file comes out that a plan takes.
#[test]
fn this_machine_is_found() {
    let text = stdout(&["machines", "detect"]);
    assert!(text.contains("base = \"") && text.contains("name = \"this-machine\""), "{text}");
    let (folder, path) = file("");
    stdout(&["machines", "detect", "--output", &path]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let small = ["plan", "--model", "OLMoE-1B-7B", "--machine", &path, "--context", "512"];
    assert_eq!(json(&small)["machine"]["name"], "this-machine");
    refused(&["machines", "detect", "--scratch", "."], &["--measure"]);
    drop(folder);
}

#[test]
fn hosts_and_disks_are_composed() {
    let machine = |flags: &[&str]| gpt(&[&["--machine", "rtx-4090"], flags].concat());
    let placed = machine(&["--host", "ddr5-6000x2:96GB", "--cpu-moe", "all"]);
    let rests = placed["coefficients"].to_string();
    assert!(rests.contains("96 GB/s") && rests.contains("ddr5-6000x2"), "{rests}");
    let small = machine(&["--host", "ddr4-3200x2:32GB"]);
    let large = machine(&["--host", "epyc-genoa:768GB"]);
    assert_ne!(small["fit"]["verdict"], large["fit"]["verdict"], "61 GB in 24 and 32");
    let fast = machine(&["--host", "ddr4-3200x2:32GB", "--disk", "14GB/s"]);
    let rate = |plan: &serde_json::Value| plan["speed"]["timeline"]["tokens_per_s"].as_f64();
    let slow = machine(&["--host", "ddr4-3200x2:32GB", "--disk", "3GB/s"]);
    assert!(rate(&fast) > rate(&slow), "a slow disk is the bottleneck");
    assert!(rate(&fast) >= rate(&small), "a disk of twice the rate");
    let plan = |flags: &[&str], parts: &[&str]| {
        refused(&[&GPT[..], &["--machine", "rtx-4090"], flags].concat(), parts);
    };
    plan(&["--host", "ddr5"], &["--host", "'ddr5'", "ddr5-6000x2:96GB", "epyc-genoa:768GB"]);
    plan(&["--host", "epyc-genao:1TB"], &["did you mean 'epyc-genoa'?"]);
    plan(&["--host", "ddr5-6000x2:96"], &["ddr5-6000x2:96", "unit"]);
    plan(&["--host", "ddr5-6000x99999999999:96GB"], &["--host", "ddr5-6000x2:96GB"]);
    plan(&["--disk", "7"], &["--disk", "'7'", "GB/s"]);
    plan(&["--disk", "7GB"], &["--disk", "'7GB'", "GB/s"]);
    let unified = ["--machine", "m3-ultra", "--host", "ddr5-6000x2:96GB"];
    refused(&[&GPT[..], &unified].concat(), &["--host", "m3-ultra", "one memory"]);
}

#[test]
fn three_lines_are_a_machine() {
    let (_folder, path) = file(
        "base = \"rtx-4090\"\nhost = \"ddr5-6000x2:96GB\"\ndisk = \"14GB/s\"\nhost_kernel_rate = \"50GB/s\"",
    );
    let own = gpt(&["--machine", &path, "--miss", "balanced"]);
    let flags = ["--host", "ddr5-6000x2:96GB", "--disk", "14GB/s"];
    let composed = gpt(&[&["--machine", "rtx-4090"], &flags[..]].concat());
    assert_eq!(own["fit"]["slots"], composed["fit"]["slots"]);
    assert_eq!(own["machine"]["name"], "rtx-4090");
}

#[test]
fn every_fault_of_a_file_is_told_at_once() {
    let (_folder, path) = file(
        "base = \"rtx-409\"\nhost = \"ddr5-60000x2:96GB\"\ndisk = \"14GBs\"\nmemroy = 3\nusable_share = 3",
    );
    let flags = ["--machine", &path];
    refused(
        &[&GPT[..], &flags].concat(),
        &[
            "box.toml: 5 faults",
            "unknown field `memroy`; did you mean 'memory'?",
            "'ddr5-60000x2:96GB'",
            "`rtx-409`, did you mean `rtx-4090`?",
            "usable_share is 3, must be over 0 and at most 1",
            "disk_rate is '14GBs'",
        ],
    );
}

#[test]
fn misses_served_by_the_host() {
    let base = ["--machine", "rtx-4090", "--host", "ddr5-6000x2:96GB"];
    let with = |miss: &'static str| [&base[..], &["--miss", miss]].concat();
    let rate = |plan: serde_json::Value| plan["speed"]["timeline"]["tokens_per_s"].as_f64();
    assert_ne!(rate(gpt(&with("host"))), rate(gpt(&base)));
    refused(
        &[&GPT[..], &with("balanced")].concat(),
        &["--miss balanced", "rtx-4090", "pcie4-x16", "host_kernel_rate = \"60GB/s\""],
    );
}

#[test]
fn experts_on_the_host() {
    let base = ["--machine", "rtx-4090", "--host", "ddr5-6000x2:96GB"];
    let on = |layers: &'static str| gpt(&[&base[..], &["--cpu-moe", layers]].concat());
    let auto = on("auto");
    let least = auto["host_layers"].as_u64().unwrap();
    assert!(auto["fits"] == true && (15..36).contains(&least), "{auto}");
    let settings = auto["settings"][0].as_str().unwrap();
    assert!(settings.contains(&format!("-ncmoe {least} ")), "{settings}");
    let all = on("all");
    assert_eq!((&all["host_layers"], &all["fits"]), (&36.into(), &true.into()));
    assert!(all["settings"][0].as_str().unwrap().contains(" -cmoe "));
    let rate = |plan: &serde_json::Value| plan["speed"]["tokens_per_s"].as_f64().unwrap();
    assert!(rate(&auto) > rate(&all), "fewer layers on the host are faster");
    let short = on("3");
    assert_eq!((&short["fits"], &short["speed"]), (&false.into(), &().into()));
    assert!(short["notes"].to_string().contains(&format!("{least} layers on the host would fit")));
    let told = |flags: &[&str], parts: &[&str]| {
        refused(&[&GPT[..], &base, flags].concat(), parts);
    };
    told(&["--cpu-moe", "lots"], &["--cpu-moe", "'lots'", "give 26, all, or auto"]);
    told(&["--cpu-moe", "-1"], &["--cpu-moe", "'-1'"]);
    told(&["--cpu-moe", "37"], &["--cpu-moe is 37", "36 layers with experts"]);
    told(&["--cpu-moe", "auto", "--trace", "bundled"], &["--trace is for experts that are copied"]);
    told(&["--cpu-moe", "auto", "--vary", "users=1,2"], &["--vary is for"]);
    told(&["--cpu-moe", "auto", "--miss", "host"], &["--miss is for"]);
    told(&["--cpu-moe", "auto", "--speculate", "2", "--accept", "0.5"], &["--speculate"]);
    told(&["--cpu-moe", "auto", "--efficiency", "0.9"], &["--efficiency"]);
    told(&["--cpu-moe", "auto", "--accept", "0.5"], &["--accept is for drafted tokens"]);
    let unified = ["--machine", "m3-ultra", "--cpu-moe", "auto"];
    refused(&[&GPT[..], &unified].concat(), &["--cpu-moe", "one memory"]);
}

/// One measured run is what a plan of the same placement says then, and others follow it.
#[test]
fn one_measured_run_corrects_a_placement() {
    let base = ["--machine", "rtx-4090", "--host", "ddr5-6000x2:96GB", "--cpu-moe", "26"];
    let plain = gpt(&base);
    let measured = gpt(&[&base[..], &["--measured-step", "50:10"]].concat());
    let speed = &measured["speed"];
    let close = |value: &serde_json::Value, wanted: f64| {
        assert!((value.as_f64().unwrap() / wanted - 1.0).abs() < 1e-9, "{value}, not {wanted}");
    };
    for name in ["tokens_per_s", "low", "high"] {
        close(&speed[name], 20.0);
    }
    let over = plain["speed"]["tokens_per_s"].as_f64().unwrap() / 20.0;
    close(&speed["measured_over_calculated"], over);
    for (with, without) in
        std::iter::zip(measured["worth"].as_array().unwrap(), plain["worth"].as_array().unwrap())
    {
        close(&with["tokens_per_s"], without["tokens_per_s"].as_f64().unwrap() / over);
    }
    let three = gpt(&[&base[..], &["--measured-step", "50:10", "--users", "3"]].concat());
    close(&three["speed"]["tokens_per_s"], 3.0 / 0.070);
    let fixed = gpt(&[&base[..], &["--fixed-ms", "10"]].concat());
    let step = 1.0 / plain["speed"]["tokens_per_s"].as_f64().unwrap() + 0.010;
    close(&fixed["speed"]["tokens_per_s"], 1.0 / step);
}

#[test]
fn layers_in_turn_over_unequal_cards() {
    let plan = |flags: &[&str]| gpt(&[&["--engine", "llama.cpp"], flags].concat());
    let two = plan(&["--machine", "rtx-5090+rtx-3090", "--cpu-moe", "auto"]);
    let layers = |plan: &serde_json::Value| -> Vec<u64> {
        let stages = plan["stages"].as_array().unwrap();
        stages.iter().map(|stage| stage["layers"].as_u64().unwrap()).collect()
    };
    assert_eq!(layers(&two).iter().sum::<u64>(), 36);
    // Light layers stand first: the larger card takes more of them than its share of memory.
    assert!(layers(&two)[0] > 21, "{two}");
    let split = two["settings"][0].as_str().unwrap();
    assert!(split.contains(&format!("-ts {},{}", layers(&two)[0], layers(&two)[1])), "{split}");
    assert_eq!(two["machine"], "rtx-5090+rtx-3090");
    let four = plan(&["--machine", "4xrtx-3090", "--pp", "4"]);
    assert_eq!((layers(&four), &four["fits"]), (vec![9; 4], &true.into()));
    assert_eq!(four["host_layers"], 0);
    let three = plan(&["--machine", "4xrtx-3090", "--pp", "3"]);
    assert_eq!((layers(&three).len(), &three["machine"]), (3, &"3xrtx-3090".into()));
    let mixed = plan(&["--machine", "2xrtx-5090 + rtx-3090", "--pp", "3"]);
    assert_eq!(layers(&mixed).len(), 3);
    let told = |flags: &[&str], parts: &[&str]| refused(&[&GPT[..], flags].concat(), parts);
    told(&["--machine", "rtx-5090+rtx-3090"], &["--machine", "--pp 2", "--cpu-moe auto"]);
    told(&["--machine", "rtx-5090+rtx-309", "--pp", "2"], &["did you mean `rtx-3090`?"]);
    told(&["--machine", "rtx-5090", "--pp", "2"], &["--pp 2", "has 1", "2xrtx-5090"]);
    told(&["--machine", "rtx-5090", "--pp", "0"], &["--pp", "1..=1024"]);
    told(&["--machine", "2xrtx-5090", "--pp", "2", "--tp", "2"], &["--pp", "--tp"]);
    let tensor = ["--machine", "2xrtx-5090", "--cpu-moe", "auto", "--tp", "2"];
    told(&tensor, &["--tp", "whole layers"]);
}

/// What is all resident has the engine's own speed beside the calculated one.
#[test]
fn an_engines_speed_of_resident_models() {
    let plan = |flags: &[&str]| {
        let base = ["plan", "--model", "Qwen3-30B-A3B", "--quant", "Q4_K_M", "--machine"];
        json(&[&base[..], flags].concat())
    };
    let resident = plan(&["rtx-5090", "--engine", "llama.cpp"]);
    let speed = &resident["engine_speed"];
    let number = |name: &str| speed[name].as_f64().unwrap();
    assert!(number("low") < number("tokens_per_s") && number("tokens_per_s") < number("high"));
    let ideal = resident["speed"]["perfect"]["tokens_per_s"].as_f64().unwrap();
    assert!(number("tokens_per_s") < ideal, "{speed}, bytes alone {ideal}");
    assert!(number("first_token_s") > 8191.0 / number("prefill_tokens_per_s"), "{speed}");
    assert!(plan(&["rtx-5090"])["engine_speed"].is_null(), "no engine");
    assert!(plan(&["rtx-3060", "--engine", "llama.cpp"])["engine_speed"].is_null(), "no room");
    let mac = plan(&["m4-max", "--engine", "llama.cpp"]);
    assert!(mac["engine_speed"]["tokens_per_s"].as_f64() > Some(1.0), "one memory");
    let text = ["plan", "--model", "Qwen3-30B-A3B", "--quant", "Q4_K_M", "--engine", "llama.cpp"];
    let text = stdout(&[&text[..], &["--machine", "rtx-5090"]].concat());
    assert!(text.contains("with llama.cpp, as reports of resident models have it"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn an_engine_of_ones_own() {
    let text = std::fs::read_to_string("planning/engines/llama-cpp.toml").unwrap();
    let (_folder, path) = file(&text);
    let base = ["--machine", "h200", "--ubatch", "1024", "--engine"];
    let lines = |engine| gpt(&[&base[..], &[engine]].concat())["fit"]["accelerator"].clone();
    assert_eq!(lines(path.as_str()), lines("llama.cpp"));
    let (_other, broken) = file("name = 3\nnonsense = 1\n");
    refused(&[&GPT[..], &base, &[&broken]].concat(), &["box.toml"]);
    refused(&[&GPT[..], &base, &["./none.toml"]].concat(), &["none.toml"]);
    let ubatch = ["--machine", "h200", "--engine", "llama.cpp", "--ubatch"];
    refused(&[&GPT[..], &ubatch, &["0"]].concat(), &["--ubatch", "0 is not in 1..="]);
    refused(&[&GPT[..], &ubatch, &["many"]].concat(), &["--ubatch", "many"]);
}

#[test]
fn without_a_trace_routing_is_recorded_or_uniform() {
    let base = ["--machine", "rtx-3060", "--host", "ddr5-6000x2:96GB"];
    let recorded = gpt(&base);
    let uniform = gpt(&[&base[..], &["--uniform"]].concat());
    let misses = |plan: &serde_json::Value| plan["speed"]["need"]["misses"].as_f64().unwrap();
    assert!(misses(&recorded) < misses(&uniform), "uniform routing misses most");
    assert_eq!(uniform["routing"]["kind"], "uniform");
    let both = ["--machine", "h200", "--uniform", "--trace", "bundled"];
    refused(&[&GPT[..], &both].concat(), &["--uniform", "--trace"]);
}

#[test]
fn shares_in_percent_and_as_fractions() {
    let share = |share| gpt(&["--machine", "h200", "--usable-share", share])["fit"].clone();
    assert_eq!(share("0.95"), share("95%"));
    let told = ["--machine", "h200", "--usable-share", "95"];
    refused(&[&GPT[..], &told].concat(), &["--usable-share", "'95'", "95% or 0.95"]);
}
