//! Built-in machines and files of one's own, good and broken.

use super::*;

const OWN: &str = r#"
    name = "box"
    description = "d"
    memory = { gib = 8.0, basis = "measured", source = "s" }
    usable_share = { value = 0.5, basis = "assumed", source = "s" }
    host_memory = { gb = 64.0, basis = "measured", source = "s" }
    memory_rate = { gb_s = 288.0, basis = "published", source = "s" }
    host_rate = { gb_s = 40.0, basis = "measured", source = "s" }
    link = { name = "x4", kind = "pcie", gb_s = 6.4, source = "s" }
"#;

fn broken(from: &str, to: &str) -> String {
    assert!(OWN.contains(from), "the text to break is there");
    Hardware::from_toml_str(&OWN.replace(from, to)).unwrap_err().to_string()
}

#[test]
fn a_file_of_ones_own() {
    let own = Hardware::from_toml_str(OWN).unwrap();
    assert_eq!(own.memory.value, 8 << 30);
    assert_eq!(own.usable_memory(), 4 << 30);
    assert_eq!(own.usable_host_memory(), 56_000_000_000);
    assert_eq!(own.host_reserved.basis, Basis::Assumed);
    assert!(own.host_reserved.source.starts_with("assumption"));
    // 1 MiB at 6.4 GB/s.
    assert_eq!(own.link.transfer_ps(1 << 20), 163_840_000);
    assert_eq!((own.accelerators, own.hosts(), own.disk_rate), (1, 1, None));
}

#[test]
fn impossible_machines_are_refused() {
    let cases = [
        ("gib = 8.0", "gib = 8.0, gb = 8.0", "memory needs exactly one of gib, gb, mib and bytes"),
        ("gib = 8.0", "gib = -8.0", "memory is -8589934592, must be 1 to 9007199254740992"),
        ("gib = 8.0", "gib = nan", "memory is NaN, must be"),
        ("gib = 8.0", "bytes = 9007199254740994", "memory is 9007199254740994, must be"),
        ("value = 0.5", "value = 1.5", "usable_share is 1.5, must be over 0 and at most 1"),
        ("gb_s = 288.0", "gib_s = 1.0, gb_s = 1.0", "memory_rate needs exactly one of"),
        ("gb_s = 40.0", "gb_s = 0.0", "host_rate is 0, must be 1 to"),
        ("basis = \"published\"", "basis = \"rumoured\"", "unknown variant `rumoured`"),
        ("description", "desc", "unknown field `desc`"),
        ("\"d\"", "\"d\"\nunified = true", "there is one memory"),
        ("\"d\"", "\"d\"\naccelerators = 0", "accelerators is 0, must be 1 to 1024"),
        ("gb_s = 6.4, ", "", "link.name is an unknown link `x4`"),
        ("\"box\"", "\" \"", "name is empty"),
        (
            "gb_s = 288.0, basis = \"published\", source = \"s\"",
            "gb_s = 288.0, basis = \"published\", source = \"\"",
            "memory_rate.source is empty",
        ),
    ];
    for (from, to, expected) in cases {
        let said = broken(from, to);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn every_builtin_loads_with_a_source_for_each_figure() {
    let names: Vec<String> = builtin_hardware().into_iter().map(|machine| machine.name).collect();
    assert_eq!(
        names[..8],
        [
            "zgx-fury",
            "rtx-pro-6000",
            "a100-40gb",
            "dgx-spark",
            "h200",
            "rtx-3090",
            "rtx-4090",
            "rtx-5090"
        ]
    );
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "no name comes twice");
    for machine in builtin_hardware() {
        for line in machine.figures() {
            assert!(line.source.len() > 10, "{}: {line:?}", machine.name);
            let assumed = line.source.contains("assum");
            assert!(machine.architecture.is_some(), "{}", machine.name);
            assert_eq!(assumed, line.basis == Basis::Assumed, "{}: {line:?}", machine.name);
        }
        assert!(!machine.link.source.is_empty(), "{}", machine.name);
        assert!(machine.usable_memory() < machine.memory.value, "{}", machine.name);
        if let Some(profile) = &machine.profile {
            assert!(crate::find_machine(profile).is_ok(), "{profile}");
        }
    }
}

#[test]
fn multiples_fill_a_host_before_the_next() {
    let eight = find_hardware("8xh200").unwrap();
    assert_eq!((eight.accelerators, eight.hosts(), eight.name.as_str()), (8, 1, "8xh200"));
    assert_eq!(find_hardware("9xh200").unwrap().hosts(), 2);
    let sparks = find_hardware("4xgb10").unwrap();
    assert_eq!((sparks.hosts(), sparks.unified), (4, true));
    assert_eq!(find_hardware("1xh200").unwrap(), find_hardware("h200").unwrap());
    let error = find_hardware("2xrtx-3095").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("rtx-3090"));
    assert_eq!(error.name, "2xrtx-3095");
    assert!(find_hardware("0xh200").is_err());
}

#[test]
fn rates_that_a_profile_measured_are_the_profiles() {
    let h200 = find_hardware("h200").unwrap();
    let profile = crate::find_machine(h200.profile.as_ref().unwrap()).unwrap();
    let measured = profile.hbm.unwrap().saturated_gb_s();
    assert!((h200.memory_rate.value as f64 / 1e9 / measured - 1.0).abs() < 1e-3, "{measured}");
}

#[test]
fn a_unified_machine_has_one_pool() {
    let spark = find_hardware("dgx-spark").unwrap();
    assert_eq!(spark.memory, spark.host_memory);
    assert_eq!(spark.memory_rate, spark.host_rate);
}

#[test]
fn cards_that_people_ask_for_are_there() {
    for name in [
        "rtx-3060",
        "rtx-3070",
        "rtx-3080",
        "rtx-3090-ti",
        "rtx-4060",
        "rtx-4060-ti",
        "rtx-4070-ti-super",
        "rtx-4080",
        "rtx-5060-ti",
        "rtx-5070-ti",
        "rtx-5080",
        "rtx-a6000",
        "l40s",
        "a100-80gb",
        "h100",
        "b200",
        "gh200",
        "gb200",
        "mi300x",
        "mi50",
        "strix-halo",
        "m1-max-64gb",
        "m3-ultra-512gb",
        "m5-max",
        "jetson-agx-orin",
        "cpu",
        "tesla-p40",
        "RTX-4090",
    ] {
        assert!(find_hardware(name).is_ok(), "{name}");
    }
    let ultra = find_hardware("m3-ultra").unwrap();
    assert_eq!((ultra.memory.value, ultra.unified), (512_000_000_000, true));
    let card = find_hardware("rtx-5060-ti").unwrap();
    // Eight lanes of PCIe 5.0 at nine tenths.
    assert!((card.link.rate_gib_s(1 << 30) * 1.0737 - 28.4).abs() < 0.2);
}

#[test]
fn devices_are_recognised_as_drivers_name_them() {
    let name = |device: &str, gib: u64| hardware_of_device(device, Some(gib << 30)).map(|m| m.name);
    assert_eq!(name("NVIDIA GeForce RTX 4090", 24).as_deref(), Some("rtx-4090"));
    assert_eq!(name("RTX 3090 Ti", 24).as_deref(), Some("rtx-3090-ti"));
    assert_eq!(name("RTX 4090 48GB", 48).as_deref(), Some("rtx-4090-48gb"));
    assert_eq!(name("NVIDIA GeForce RTX 5060 Ti", 8).as_deref(), Some("rtx-5060-ti-8gb"));
    assert_eq!(name("RTX 5080 Laptop", 16).as_deref(), Some("rtx-5080-laptop"));
    assert_eq!(name("Apple M3 Ultra", 256).as_deref(), Some("m3-ultra-256gb"));
    assert_eq!(name("Apple M4 Max", 128).as_deref(), Some("m4-max"));
    assert_eq!(name("NVIDIA GB10 (DGX Spark)", 128).as_deref(), Some("dgx-spark"));
    assert_eq!(name("Radeon 8060S (Ryzen AI Max+ 395)", 128).as_deref(), Some("strix-halo"));
    assert_eq!(
        name("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96).as_deref(),
        Some("rtx-pro-6000")
    );
    assert_eq!(name("NVIDIA H100 80GB HBM3", 80).as_deref(), Some("h100"));
    assert_eq!(name("A100 80GB", 80).as_deref(), Some("a100-80gb-pcie"));
    assert_eq!(name("some card", 8), None);
}

#[test]
fn three_lines_make_a_machine_of_ones_own() {
    let own = "base = \"rtx-4090\"\nhost = \"epyc-genoa:768GB\"\npcie = \"3.0x8\"";
    let own = Hardware::from_toml_str(own).unwrap();
    assert_eq!((own.memory.value, own.host_memory.value), (24564 << 20, 768_000_000_000));
    assert_eq!((own.host_rate.value, own.host_rate.basis), (460_800_000_000, Basis::Calculated));
    assert_eq!(own.link.name, "pcie3-x8");
    let figures = "base = \"m4-max\"\nname = \"mine\"\nmemory = \"64GB\"\nusable_share = \"80%\"\nmemory_rate = \"500GB/s\"";
    let figures = Hardware::from_toml_str(figures).unwrap();
    assert_eq!((figures.memory.value, figures.usable_share.value), (64_000_000_000, 0.8));
    assert_eq!(figures.memory_rate.basis, Basis::Assumed);
    assert_eq!(figures.host_memory, figures.memory);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "base = \"rtx-4091\"\nmemry = \"24GB\"\nhost = \"ddr9\"\ndisk = \"7GB\"\nusable_share = 1.5";
    let told = Hardware::from_toml_str(text).unwrap_err().to_string();
    for part in [
        "did you mean `rtx-4090`?",
        "unknown field `memry`; did you mean 'memory'?",
        "host is 'ddr9': give type, speed and channels",
        "disk_rate is '7GB': give a rate with its unit, as 80GB/s",
        "usable_share is 1.5, must be over 0 and at most 1",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_host_and_a_disk_are_put_beside_a_card() {
    let host: HostSpec = "ddr5-6000x2:96GB".parse().unwrap();
    let machine =
        find_hardware("rtx-4090").unwrap().with_host(&host).unwrap().with_disk(14_000_000_000);
    assert_eq!(machine.host_memory.value, 96_000_000_000);
    assert_eq!(machine.disk_rate.map(|disk| disk.value), Some(14_000_000_000));
    let cpu = find_hardware("cpu").unwrap().with_host(&host).unwrap();
    assert_eq!((cpu.memory.value, cpu.memory_rate.value), (96_000_000_000, 96_000_000_000));
    let told = find_hardware("m4-max").unwrap().with_host(&host).unwrap_err();
    assert!(told.contains("m4-max has one memory of 128 GB"), "{told}");
}
