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
        names,
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
    for machine in builtin_hardware() {
        for line in machine.figures() {
            assert!(line.source.len() > 10, "{}: {line:?}", machine.name);
            let assumed = line.source.contains("assum");
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
    let error = find_hardware("rtx-3080").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("rtx-3090"));
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
