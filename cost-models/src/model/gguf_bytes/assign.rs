//! Which type each tensor of a file has, by what its name says.

use super::counts;
use super::{Basis, GgufBytes, sum};
use crate::format::{GgmlType, Mix, Named, Place, Recipe, Role, Shape};
use crate::model::Model;
use crate::model::layer::Mixer;
use crate::model::tensors::{LatentTensors, Part, Tensor, tensors};

/// The bytes of a mix.
pub fn assign(model: &Model, mix: &Mix) -> GgufBytes {
    if let Some(table) = &mix.counts {
        return counts::bytes(model, mix, table);
    }
    let list = tensors(model, LatentTensors::Split, keeps_drafts(model));
    match mix.named {
        Some(Named::Recipe(recipe)) => of_recipe(model, recipe, &list),
        Some(Named::Dynamic(recipe)) => dynamic(model, recipe, &list),
        Some(Named::Pure(kind)) => pure(model, kind, &list),
        Some(Named::Split { experts, rest }) => sum(model, &list, &split(&list, experts, rest)),
        // A mix has a name that is known, or a table.
        None => sum(model, &list, &split(&list, GgmlType::Bf16, GgmlType::Bf16)),
    }
}

/// Whether converters write the draft layers of this architecture.
pub fn keeps_drafts(model: &Model) -> bool {
    ["glm4_moe", "qwen3_5_moe", "qwen3_5_moe_text", "glm_moe_dsa", "glm4_moe_lite"]
        .contains(&model.architecture.as_str())
}

/// What the rules ask of a model.
fn shape(model: &Model, list: &[Tensor]) -> Shape {
    let values = [Role::Value, Role::Fused, Role::FromLatent];
    let group = model.layers.iter().find_map(|layer| match &layer.mixer {
        Mixer::Heads(heads) => Some(heads.query_heads / heads.kv_heads.max(1)),
        // One latent for all heads: converters since 2025-04 write one key-value head.
        Mixer::Latent(latent) => Some(latent.heads),
        Mixer::Compressed(compressed) => Some(compressed.heads),
        _ => None,
    });
    Shape {
        layers: list.iter().map(|tensor| tensor.layer + 1).max().unwrap_or(1),
        values: list.iter().filter(|tensor| values.contains(&tensor.role)).count() as u32,
        experts: model.moe_layers().map(|(_, experts)| experts.count).max().unwrap_or(0),
        group: group.unwrap_or(1),
        tied: model.tied,
        imatrix: true,
        before_2026: false,
    }
}

/// The types that a recipe's rules give.
pub fn by_rules(recipe: Recipe, list: &[Tensor], shape: &Shape) -> Vec<GgmlType> {
    let mut value = 0;
    let of_tensor = |tensor: &Tensor| {
        let place = Place {
            role: tensor.role,
            layer: tensor.layer,
            value,
            routed: tensor.part == Part::Routed,
            columns: tensor.columns,
        };
        value += u32::from(tensor.role.is_value(shape.before_2026));
        recipe.type_of(place, shape)
    };
    list.iter().map(of_tensor).collect()
}

/// The rules' variants: with and without an importance matrix, of before 2026 and after.
pub fn variants(model: &Model, list: &[Tensor]) -> [Shape; 4] {
    let now = shape(model, list);
    let before = Shape { before_2026: true, ..now };
    [now, Shape { imatrix: false, ..now }, before, Shape { imatrix: false, ..before }]
}

fn of_recipe(model: &Model, recipe: Recipe, list: &[Tensor]) -> GgufBytes {
    let all = variants(model, list).map(|shape| sum(model, list, &by_rules(recipe, list, &shape)));
    let mut low = all.iter().map(GgufBytes::total).min().unwrap_or(0);
    if shape(model, list).experts == 8 {
        // Before 2024-04 each expert was a tensor of its own, and none got more bits.
        let plain = sum(model, list, &plain_experts(recipe, list, &shape(model, list)));
        low = low.min(plain.total());
    }
    let high = all.iter().map(GgufBytes::total).max().unwrap_or(0);
    let [now, ..] = all;
    GgufBytes { low, high, ..now }
}

fn plain_experts(recipe: Recipe, list: &[Tensor], shape: &Shape) -> Vec<GgmlType> {
    let types = by_rules(recipe, list, shape);
    let plain = |(tensor, kind): (&Tensor, GgmlType)| {
        if tensor.part == Part::Routed && tensor.role != Role::Small { recipe.base() } else { kind }
    };
    list.iter().zip(types).map(plain).collect()
}

fn split(list: &[Tensor], experts: GgmlType, rest: GgmlType) -> Vec<GgmlType> {
    let kind = |tensor: &Tensor| match (tensor.role, tensor.part) {
        (Role::Small, _) => GgmlType::F32,
        (_, Part::Routed) => experts,
        _ => rest,
    };
    list.iter().map(kind).collect()
}

/// A type of a fork named as a mix: all matrices in it, or attention and what is outside of layers in eight bits.
fn pure(model: &Model, kind: GgmlType, list: &[Tensor]) -> GgufBytes {
    let all = sum(model, list, &split(list, kind, kind));
    let careful = sum(model, list, &split(list, kind, GgmlType::Q8_0));
    let (low, high) = (all.total().min(careful.total()), all.total().max(careful.total()));
    GgufBytes { low, high, basis: Basis::Guess, ..all }
}

/// Unsloth's mixes. Since late 2025: down projections a step higher, all but experts in eight bits; before that, hardly
/// more than the plain recipe. Three-bit names hold gate and up projections of two bits as often as not: the middle is
/// then half of the way.
fn dynamic(model: &Model, recipe: Recipe, list: &[Tensor]) -> GgufBytes {
    let base = recipe.base();
    let least = sum(model, list, &split(list, below(base), base));
    let careful: Vec<GgmlType> = list
        .iter()
        .map(|tensor| match (tensor.role, tensor.part) {
            (Role::Small, _) => GgmlType::F32,
            (Role::Down, Part::Routed) => above(base),
            (_, Part::Routed) => base,
            _ if base == GgmlType::Q8_0 => GgmlType::Bf16,
            _ => GgmlType::Q8_0,
        })
        .collect();
    let most = sum(model, list, &careful);
    // A few tensors of a file are higher still.
    let (low, high) = (least.total(), most.total().saturating_add(most.total() / 50));
    let middle = if below(base) == base { most } else { most.halfway(&least) };
    GgufBytes { low, high, basis: Basis::Guess, ..middle }
}

/// The type one step above in quality.
fn above(kind: GgmlType) -> GgmlType {
    use GgmlType as T;
    match kind {
        T::Iq1S | T::Iq1M => T::Iq2Xxs,
        T::Iq2Xxs | T::Iq2Xs | T::Iq2S => T::Iq3Xxs,
        T::Iq3Xxs => T::Iq3S,
        T::Q2K => T::Q3K,
        T::Q3K | T::Iq3S => T::Q4K,
        T::Q4K | T::Iq4Xs | T::Iq4Nl => T::Q5K,
        T::Q5K => T::Q6K,
        T::Q6K => T::Q8_0,
        other => other,
    }
}

/// The type that gate and up projections have where a name promises more than it holds.
fn below(kind: GgmlType) -> GgmlType {
    use GgmlType as T;
    match kind {
        T::Iq3Xxs => T::Iq2S,
        T::Iq3S => T::Iq3Xxs,
        other => other,
    }
}
