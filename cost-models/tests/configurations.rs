//! Configurations that people published, with the counts that were worked out for them.

use std::collections::BTreeMap;

use hotset_cost_models::Model;
use hotset_cost_models::model::KvFormat;

use crate::shared::shared;

/// A row of `expected.csv` by its columns.
type Expected = BTreeMap<String, String>;

fn expected() -> Option<Vec<Expected>> {
    let path = shared("reported/configs/expected.csv")?;
    let mut reader = csv::Reader::from_path(path).expect("a readable table");
    Some(reader.deserialize().map(|row| row.expect("a row")).collect())
}

#[test]
fn every_published_configuration() {
    let Some(rows) = expected() else { return };
    let mut wrong = Vec::new();
    for row in &rows {
        let name = &row["name"];
        let path = shared(&format!("reported/configs/{name}/config.json")).expect("its file");
        let model = match Model::from_config_path(&path) {
            Ok(model) => model,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let number = |column: &str| row[column].parse::<f64>().expect("a number");
        let near = |what: &str, found: u64, within: f64| {
            let share = found as f64 / number(what) - 1.0;
            (share.abs() > within && found as f64 != number(what)).then(|| {
                format!("{name}: {what} {found}, not {} ({:+.3}%)", row[what], share * 100.0)
            })
        };
        let kv = |context| model.kv(context, KvFormat::Bf16, 1).tokens;
        let far = 1 << 24;
        let growth = kv(far + 1024) - kv(far);
        let window = kv(far) - growth / 1024 * far;
        wrong.extend(near("total_params", model.parameters().total(), 0.0005));
        wrong.extend(near("active_params", model.active_parameters(), 0.01));
        wrong.extend(near("routed_params", model.parameters().routed, 1e-6));
        wrong.extend(near("kv_bytes_token_bf16", growth / 1024, 0.0));
        wrong.extend(near("window_bytes_bf16", window, 0.0));
        wrong.extend(near("state_bytes", model.kv(0, KvFormat::Bf16, 1).state, 0.0));
        if !model.notes.is_empty() {
            println!("{name}: {:?}", model.notes);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
