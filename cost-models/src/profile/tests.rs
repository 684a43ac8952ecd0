//! Profiles that load, and what is refused in those that do not.

use super::*;

const GOOD: &str = r#"
    name = "l"
    kind = "pcie"
    description = "d"
    source = "s"
    date = "2026-11-29"
    [cost.bandwidth]
    gib_s = 2.0
"#;

fn broken(from: &str, to: &str) -> ProfileError {
    assert!(GOOD.contains(from), "the text to break is there");
    Link::from_toml_str(&GOOD.replace(from, to)).unwrap_err()
}

#[test]
fn a_bandwidth_becomes_a_rate() {
    // 2 GiB/s = 2048 MiB/s: 488,281,250 ps a MiB.
    let link = Link::from_toml_str(GOOD).unwrap();
    assert_eq!(link.transfer_ps(MIB), 488_281_250);
    let link = Link::from_toml_str(&GOOD.replace("gib_s = 2.0", "gb_s = 1.048576")).unwrap();
    assert_eq!(link.transfer_ps(MIB), 1_000_000_000);
}

#[test]
fn unknown_fields_and_broken_text_are_refused() {
    let error = broken("source", "sauce");
    assert!(matches!(error, ProfileError::Toml { .. }));
    assert!(error.to_string().contains("unknown field `sauce`"), "{error}");
    assert!(matches!(broken("\"pcie\"", "\"string\""), ProfileError::Toml { .. }));
    assert!(matches!(broken("[cost.bandwidth]", "[cost.magic]"), ProfileError::Toml { .. }));
}

#[test]
fn impossible_values_are_refused_with_field_and_reason() {
    for (value, shown) in [("-1.0", "-1"), ("nan", "NaN"), ("inf", "inf"), ("0.0", "0")] {
        let error = broken("2.0", value);
        assert!(matches!(error, ProfileError::Invalid { .. }));
        assert_eq!(
            error.to_string(),
            format!(
                "profile l: cost.bandwidth.gib_s is {shown}, must be over 0 and at most 1000000"
            )
        );
    }
    let error = broken("gib_s = 2.0", "gib_s = 2.0\ngb_s = 2.0");
    assert!(error.to_string().contains("exactly one of gib_s and gb_s"));
    assert!(broken("\"s\"", "\"\"").to_string().contains("source is empty"));
}

#[test]
fn impossible_shares_and_rates_are_refused() {
    let added =
        "[cost.added_time]\noffloaded_gib = 5.0\ntop_k = 9\nexperts = 8\nms_per_token_added = 1.0";
    let error = broken("[cost.bandwidth]\n    gib_s = 2.0", added);
    assert!(error.to_string().contains("top_k is 9 of 8 experts"), "{error}");
    let none = "gib_s = 2.0\n[host_kernel]";
    assert!(broken("gib_s = 2.0", none).to_string().contains("needs either gb_s"));
    let zero = "[cost.affine]\nfixed_ps = 1\nps_per_mib = 0";
    let error = broken("[cost.bandwidth]\n    gib_s = 2.0", zero);
    assert!(error.to_string().contains("ps_per_mib is zero"));
}

#[test]
fn a_missing_file_names_its_path() {
    let error = Link::from_toml_path("/nowhere/link.toml").unwrap_err();
    assert!(matches!(error, ProfileError::Io { .. }));
    assert!(error.to_string().starts_with("cannot read profile /nowhere/link.toml"));
}
