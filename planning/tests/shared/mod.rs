//! What the tests share: requests by name, and the published figures.

use hotset_cost_models::{Model, find_hardware};
use hotset_planning::Request;

/// A model on a machine, everything else left open.
pub fn request(model: &str, machine: &str) -> Request {
    Request::new(Model::builtin(model).unwrap(), find_hardware(machine).unwrap())
}

pub fn gib(gib: f64) -> u64 {
    (gib * f64::from(1 << 30)) as u64
}

pub fn in_gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// Asserts that a calculated figure is the published one to within `tolerance` of it.
#[track_caller]
pub fn near(calculated: f64, published: f64, tolerance: f64) {
    let error = (calculated - published).abs() / published.abs();
    assert!(error <= tolerance, "calculated {calculated}, published {published}: {error}");
}

/// Asserts that `published` is what the seeds say of receipt `id` at `path` (keys and places,
/// dot between them), where the shared folder is there.
#[track_caller]
pub fn published(id: &str, path: &str, published: f64) -> f64 {
    let Some(seeds) = hotset_traces::testing::shared("receipts/seeds.toml") else {
        return published;
    };
    let text = std::fs::read_to_string(seeds).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let all = table["receipt"].as_array().unwrap();
    let entry = all.iter().find(|entry| entry["id"].as_str() == Some(id)).expect(id);
    let value = path.split('.').fold(&entry["value"], |value, key| match key.parse::<usize>() {
        Ok(place) => &value[place],
        Err(_) => &value[key],
    });
    let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
    assert_eq!(number, Some(published), "{id}: {path} is copied wrongly");
    published
}
