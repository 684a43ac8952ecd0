//! Expert bytes of every model in the golden planning figures, exact.
//!
//! Dimensions come from `configs/models.csv`, expected bytes from `golden/planning.json`; both are in the shared
//! folder, so this test needs it. Cases worked by hand stand beside the formulas themselves.

mod shared;

use std::collections::BTreeMap;

use hotset_cost_models::{ExpertShape, WeightFormat};

const GOLDEN_NAMES: [(WeightFormat, &str); 7] = [
    (WeightFormat::Bf16, "bf16"),
    (WeightFormat::Fp8Tensor, "fp8_tensor"),
    (WeightFormat::Fp8Block128, "fp8_block128"),
    (WeightFormat::Nvfp4, "nvfp4"),
    (WeightFormat::Mxfp4, "mxfp4"),
    (WeightFormat::Int4Group32, "int4_g32_bf16scale"),
    (WeightFormat::Int4Group128, "int4_g128_bf16scale"),
];

#[test]
fn every_model_in_every_format() {
    let (Some(models), Some(golden)) =
        (shared::shared("configs/models.csv"), shared::shared("golden/planning.json"))
    else {
        return;
    };
    let golden: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
    let mut checked = 0;
    let mut reader = csv::Reader::from_path(models).unwrap();
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let row = row.unwrap();
        let model = &row["model"];
        let Some(expected) = golden.get(model).map(|entry| &entry["expert_bytes"]) else {
            continue;
        };
        let number = |column: &str| row[column].parse().unwrap();
        let shape = ExpertShape {
            matrices: number("expert_matrices"),
            io_width: number("expert_io_dim"),
            inner_width: number("moe_intermediate_size"),
            biases: model.starts_with("gpt-oss"),
        };
        for (format, name) in GOLDEN_NAMES {
            assert_eq!(Some(shape.bytes(format)), expected[name].as_u64(), "{model} in {name}");
            checked += 1;
        }
    }
    assert_eq!(checked, golden.as_object().unwrap().len() * GOLDEN_NAMES.len());
}
