//! Rules by role, by hand.

use super::*;

const QWEN: Shape = Shape {
    layers: 48,
    values: 48,
    experts: 128,
    group: 8,
    tied: false,
    imatrix: true,
    before_2026: false,
};

fn place(role: Role, layer: u32) -> Place {
    Place { role, layer, value: layer, routed: role == Role::Down, columns: 2048 }
}

#[test]
fn half_of_the_layers_get_more_bits() {
    let of = |layers| (0..layers).filter(|layer| more_bits(*layer, layers)).count();
    assert_eq!((of(48), of(94), of(32)), (24, 46, 16));
    assert!(!more_bits(0, 3) && more_bits(2, 3), "no eighth of three layers, but the last");
}

#[test]
fn rules_by_role() {
    let kind = |recipe: Recipe, role, layer| recipe.type_of(place(role, layer), &QWEN);
    assert_eq!(kind(R::Q4KM, Role::Down, 0), T::Q6K);
    assert_eq!(kind(R::Q4KM, Role::Down, 6), T::Q4K);
    assert_eq!(kind(R::Q4KM, Role::Into, 0), T::Q4K);
    assert_eq!(kind(R::Q4KM, Role::Head, 0), T::Q6K);
    assert_eq!(kind(R::Q3KM, Role::Down, 2), T::Q5K);
    assert_eq!(kind(R::Q3KM, Role::Down, 3), T::Q4K);
    assert_eq!(kind(R::Q2K, Role::Value, 9), T::Q4K, "eight heads share a key");
    assert_eq!(kind(R::Iq3Xxs, Role::Query, 9), T::Iq2S);
    assert_eq!(kind(R::Iq1S, Role::Embedding, 0), T::Q2K);
    assert_eq!(kind(R::Q8_0, Role::Head, 0), T::Q8_0);
    assert_eq!(kind(R::Bf16, Role::Small, 0), T::F32);
    assert_eq!(kind(R::Mxfp4, Role::Down, 0), T::Mxfp4);
    assert_eq!(kind(R::Mxfp4, Role::Output, 0), T::Q8_0);
    let eight = Shape { experts: 8, ..QWEN };
    assert_eq!(R::Q4KM.type_of(place(Role::Key, 9), &eight), T::Q8_0);
    assert_eq!(R::Q4KM.type_of(place(Role::Output, 9), &eight), T::Q5K);
    // Rows of 1,408 are no blocks of 256.
    let odd = Place { columns: 1408, ..place(Role::Down, 0) };
    assert_eq!(R::Q4KM.type_of(odd, &QWEN), T::Q8_0);
    let plain = Place { columns: 1408, ..place(Role::Down, 6) };
    assert_eq!(R::Q4KM.type_of(plain, &QWEN), T::Q5_0);
}
