//! Blocks and fallbacks, by hand.

use super::*;

#[test]
fn the_table_is_in_the_order_of_the_variants() {
    for (index, row) in TABLE.iter().enumerate() {
        assert_eq!(row.0 as usize, index, "{}", row.2);
        assert_eq!(T::from_id(row.1), Some(row.0));
        assert_eq!(T::from_name(&row.2.to_uppercase()), Some(row.0));
    }
    assert_eq!(T::from_id(4), None, "Q4_2 was removed");
}

#[test]
fn widths_that_256_does_not_divide() {
    for columns in [1408, 1856, 2880] {
        assert_eq!(T::Q4K.for_columns(columns), T::Q5_0);
        assert_eq!(T::Q5K.for_columns(columns), T::Q5_1);
        assert_eq!(T::Q6K.for_columns(columns), T::Q8_0);
        assert_eq!(T::Q2K.for_columns(columns), T::Q4_0);
        assert_eq!(T::Q3K.for_columns(columns), T::Q4_0);
        assert_eq!(T::Iq1S.for_columns(columns), T::Iq4Nl);
        assert_eq!(T::Iq4Xs.for_columns(columns), T::Iq4Nl);
        assert_eq!(T::Q8_0.for_columns(columns), T::Q8_0);
    }
    assert_eq!(T::Q4K.for_columns(2048), T::Q4K);
    assert_eq!(T::Q4K.for_columns(100), T::F16, "not even 32 divides it");
    assert_eq!(T::Q8_0.for_columns(100), T::F16);
}

#[test]
fn bytes_by_hand() {
    assert_eq!(T::Q4K.tensor_bytes(2, 512), 2 * 2 * 144);
    // 44 blocks of 32 in Q5_0, not 5.5 blocks of 256.
    assert_eq!(T::Q4K.tensor_bytes(3, 1408), 3 * 44 * 22);
    assert_eq!(T::Iq1S.tensor_bytes(u64::MAX, 256), u64::MAX);
}
