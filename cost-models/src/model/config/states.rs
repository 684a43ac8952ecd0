//! Layers that keep a fixed state in place of keys and values.

use super::fields::Fields;
use super::kinds::Kind;
use super::names::{HEAD_WIDTH, HEADS, HIDDEN};
use crate::model::ModelError;
use crate::model::layer::{GatedDelta, KimiDelta, Lightning, Mamba1, Mamba2, Mixer, ShortConv};

const STATE: &[&str] = &["ssm_state_size", "mamba_d_state", "state_size", "d_state"];
const KERNEL: &[&str] = &["conv_kernel", "mamba_d_conv", "d_conv"];
const MAMBA_HEADS: &[&str] = &["mamba_num_heads", "mamba_n_heads", "n_mamba_heads"];
const MAMBA_WIDTH: &[&str] = &["mamba_head_dim", "mamba_d_head"];

/// The mixer of a layer of such a kind.
pub fn state(fields: &Fields<'_>, kind: Kind) -> Result<Mixer, ModelError> {
    match kind {
        Kind::Mamba if fields.value(MAMBA_HEADS).is_some() => mamba2(fields).map(Mixer::Mamba2),
        Kind::Mamba => mamba1(fields).map(Mixer::Mamba1),
        Kind::Conv => Ok(Mixer::ShortConv(ShortConv {
            width: fields.width(&["conv_dim"])?.unwrap_or(fields.need_width(HIDDEN)?),
            kernel: fields.need_count(&["conv_L_cache"])?,
        })),
        _ => linear(fields),
    }
}

/// Which linear recurrence: told by its fields.
fn linear(fields: &Fields<'_>) -> Result<Mixer, ModelError> {
    if fields.has("linear_num_value_heads") {
        return gated_delta(fields).map(Mixer::GatedDelta);
    }
    if let Some(kernel) = fields.count(&["short_conv_kernel_size", "kda_conv_kernel_size"])? {
        let own = ["kda_num_heads", "linear_num_heads"].as_slice();
        let heads = fields.need_count(&[own, HEADS].concat())?;
        let own = ["kda_head_dim", "linear_head_dim"].as_slice();
        let width = fields.need_width(&[own, HEAD_WIDTH].concat())?;
        let whole_gates = fields.architecture == "bailing_hybrid";
        return Ok(Mixer::KimiDelta(KimiDelta { heads, width, kernel, whole_gates }));
    }
    let lightning =
        ["bailing_moe_linear", "bailing_hybrid", "minimax", "minimax_text_01", "minimax_m1"];
    if lightning.contains(&fields.architecture) || fields.has("attn_type_list") {
        let heads = fields.need_count(HEADS)?;
        let width = match fields.width(HEAD_WIDTH)? {
            Some(width) => width,
            None => fields.need_width(HIDDEN)? / heads,
        };
        return Ok(Mixer::Lightning(Lightning { heads, width }));
    }
    Err(fields.unknown("it has linear attention of no kind that its fields tell".into()))
}

/// A recurrence that none of the known forms reads must not be billed as attention.
pub fn refuse_other(fields: &Fields<'_>, kinds: &[Kind]) -> Result<(), ModelError> {
    let signs =
        ["ssm_state_size", "mamba_num_heads", "mamba_d_state", "time_mix_extra_dim", "rwkv"];
    let known = kinds.iter().any(|kind| matches!(kind, Kind::Mamba | Kind::Linear | Kind::Conv));
    match signs.iter().find(|sign| fields.has(sign)) {
        Some(sign) if !known => {
            Err(fields.unknown(format!("its `{sign}` means a recurrent state")))
        }
        _ => Ok(()),
    }
}

/// Kimi Linear's recurrence, from its own object.
pub fn kimi_delta(linear: &Fields<'_>) -> Result<KimiDelta, ModelError> {
    Ok(KimiDelta {
        heads: linear.need_count(&["num_heads"])?,
        width: linear.need_width(&["head_dim"])?,
        kernel: linear.need_count(&["short_conv_kernel_size"])?,
        whole_gates: false,
    })
}

fn gated_delta(fields: &Fields<'_>) -> Result<GatedDelta, ModelError> {
    Ok(GatedDelta {
        key_heads: fields.need_count(&["linear_num_key_heads"])?,
        value_heads: fields.need_count(&["linear_num_value_heads"])?,
        key_width: fields.need_width(&["linear_key_head_dim"])?,
        value_width: fields.need_width(&["linear_value_head_dim"])?,
        kernel: fields.need_count(&["linear_conv_kernel_dim"])?,
    })
}

/// The width inside: a multiple of the hidden one.
fn inner(fields: &Fields<'_>) -> Result<u64, ModelError> {
    let expand = fields.count(&["mamba_expand", "expand"])?.unwrap_or(2);
    let inner = fields.need_width(HIDDEN)? * expand;
    Ok(fields.width(&["mamba_d_ssm"])?.unwrap_or(inner))
}

fn mamba1(fields: &Fields<'_>) -> Result<Mamba1, ModelError> {
    // Without a rank, or with the word `auto`: a sixteenth of the hidden width.
    let rank = match fields.text("mamba_dt_rank") {
        Some(_) => None,
        None => fields.width(&["mamba_dt_rank"])?,
    };
    Ok(Mamba1 {
        inner: inner(fields)?,
        state: fields.need_width(STATE)?,
        kernel: fields.need_count(KERNEL)?,
        rank: rank.unwrap_or(fields.need_width(HIDDEN)?.div_ceil(16)),
        conv_bias: fields.flag("mamba_conv_bias")?,
    })
}

fn mamba2(fields: &Fields<'_>) -> Result<Mamba2, ModelError> {
    let heads = fields.need_count(MAMBA_HEADS)?;
    let width = match fields.text("mamba_d_head") {
        Some(_) => inner(fields)? / heads,
        None => fields.need_width(MAMBA_WIDTH)?,
    };
    Ok(Mamba2 {
        heads,
        width,
        groups: fields.need_count(&["n_groups", "mamba_n_groups"])?,
        state: fields.need_width(STATE)?,
        kernel: fields.need_count(KERNEL)?,
        conv_bias: fields.flag("use_conv_bias")? || fields.flag("mamba_conv_bias")?,
    })
}
