//! The formats that a checkpoint is published in.
//!
//! `quantization_config` names a method, and sometimes what it did. Where it does not, there is no answer here and the
//! plan asks for one.

use super::fields::Fields;
use crate::format::WeightFormat;
use crate::model::{ModelError, RestFormat};

type Native = Option<(WeightFormat, RestFormat)>;

/// Formats of experts and of the rest, where the configuration gives them.
pub fn formats(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<Native, ModelError> {
    let bf16 = RestFormat::Everything(WeightFormat::Bf16);
    let Some(quantization) = fields.inside("quantization_config") else {
        if fields.text("torch_dtype").or(fields.text("dtype")) == Some("float32") {
            notes
                .push("the configuration says float32; counted as bf16, as engines load it".into());
        }
        return Ok(Some((WeightFormat::Bf16, bf16)));
    };
    let method = quantization.text("quant_method").unwrap_or("");
    let native = match method {
        "mxfp4" => Some((WeightFormat::Mxfp4, bf16)),
        "fp8" => {
            let blocks = quantization.has("weight_block_size");
            let dense = if blocks { WeightFormat::Fp8Block128 } else { WeightFormat::Fp8Tensor };
            let four_bits = fields.text("expert_dtype") == Some("fp4");
            let experts = if four_bits { WeightFormat::Mxfp4 } else { dense };
            Some((experts, RestFormat::Matrices(dense)))
        }
        "modelopt" | "modelopt_fp4" => match quantization.text("quant_algo") {
            Some("NVFP4") => Some((WeightFormat::Nvfp4, bf16)),
            Some("FP8") => {
                Some((WeightFormat::Fp8Tensor, RestFormat::Matrices(WeightFormat::Fp8Tensor)))
            }
            _ => None,
        },
        "compressed-tensors" => compressed_tensors(&quantization)?.map(|experts| (experts, bf16)),
        _ => None,
    };
    if native.is_none() {
        notes.push(format!(
            "quantization_config names `{method}` but not how experts are stored: give a format, or the safetensors \
             headers"
        ));
    }
    Ok(native)
}

/// The first group of a compressed-tensors configuration: it targets the experts where only they are quantised.
fn compressed_tensors(quantization: &Fields<'_>) -> Result<Option<WeightFormat>, ModelError> {
    let Some(groups) = quantization.inside("config_groups") else { return Ok(None) };
    let Some(weights) = groups.inside("group_0").and_then(|group| group.inside("weights")) else {
        return Ok(None);
    };
    let bits = weights.count(&["num_bits"])?;
    let group = weights.count(&["group_size"])?;
    Ok(match (bits, group, weights.text("type")) {
        (Some(4), Some(32), Some("int")) => Some(WeightFormat::Int4Group32),
        (Some(4), Some(128), Some("int")) => Some(WeightFormat::Int4Group128),
        (Some(4), Some(32), Some("float")) => Some(WeightFormat::Mxfp4),
        (Some(4), Some(16), Some("float")) => Some(WeightFormat::Nvfp4),
        (Some(8), None, Some("float")) => Some(WeightFormat::Fp8Tensor),
        _ => None,
    })
}
