//! The block formats of GGUF files: ids, blocks, and what a quantiser falls back to.
//!
//! A row of a tensor is cut into blocks of a fixed number of weights; a width that the block does not divide cannot be
//! stored in the type, and the quantiser takes another one. That makes "4-bit" experts of 1,408 or 2,880 columns much
//! larger than their name says.

/// A tensor type of GGUF with a known block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GgmlType {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// 4 bits, one scale for 32.
    Q4_0,
    /// 4 bits, scale and minimum for 32.
    Q4_1,
    /// 5 bits, one scale for 32.
    Q5_0,
    /// 5 bits, scale and minimum for 32.
    Q5_1,
    /// 8 bits, one scale for 32.
    Q8_0,
    /// K-quant of 2 bits.
    Q2K,
    /// K-quant of 3 bits.
    Q3K,
    /// K-quant of 4 bits.
    Q4K,
    /// K-quant of 5 bits.
    Q5K,
    /// K-quant of 6 bits.
    Q6K,
    /// 2.06 bits.
    Iq2Xxs,
    /// 2.31 bits.
    Iq2Xs,
    /// 3.06 bits.
    Iq3Xxs,
    /// 1.56 bits.
    Iq1S,
    /// 4.5 bits, not linear, blocks of 32.
    Iq4Nl,
    /// 3.44 bits.
    Iq3S,
    /// 2.56 bits.
    Iq2S,
    /// 4.25 bits, not linear.
    Iq4Xs,
    /// 8-bit integers.
    I8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Double precision.
    F64,
    /// 1.75 bits.
    Iq1M,
    /// Brain floating point.
    Bf16,
    /// Ternary, 1.69 bits.
    Tq1_0,
    /// Ternary, 2.06 bits.
    Tq2_0,
    /// Microscaling 4 bits.
    Mxfp4,
    /// NVIDIA's 4 bits.
    Nvfp4,
    /// 1 bit, blocks of 128.
    Q1_0,
    /// 2 bits, blocks of 64.
    Q2_0,
}

use GgmlType as T;

/// Type, id in a file, name, weights a block, bytes a block.
const TABLE: [(GgmlType, u32, &str, u64, u64); 33] = [
    (T::F32, 0, "f32", 1, 4),
    (T::F16, 1, "f16", 1, 2),
    (T::Q4_0, 2, "q4_0", 32, 18),
    (T::Q4_1, 3, "q4_1", 32, 20),
    (T::Q5_0, 6, "q5_0", 32, 22),
    (T::Q5_1, 7, "q5_1", 32, 24),
    (T::Q8_0, 8, "q8_0", 32, 34),
    (T::Q2K, 10, "q2_k", 256, 84),
    (T::Q3K, 11, "q3_k", 256, 110),
    (T::Q4K, 12, "q4_k", 256, 144),
    (T::Q5K, 13, "q5_k", 256, 176),
    (T::Q6K, 14, "q6_k", 256, 210),
    (T::Iq2Xxs, 16, "iq2_xxs", 256, 66),
    (T::Iq2Xs, 17, "iq2_xs", 256, 74),
    (T::Iq3Xxs, 18, "iq3_xxs", 256, 98),
    (T::Iq1S, 19, "iq1_s", 256, 50),
    (T::Iq4Nl, 20, "iq4_nl", 32, 18),
    (T::Iq3S, 21, "iq3_s", 256, 110),
    (T::Iq2S, 22, "iq2_s", 256, 82),
    (T::Iq4Xs, 23, "iq4_xs", 256, 136),
    (T::I8, 24, "i8", 1, 1),
    (T::I16, 25, "i16", 1, 2),
    (T::I32, 26, "i32", 1, 4),
    (T::I64, 27, "i64", 1, 8),
    (T::F64, 28, "f64", 1, 8),
    (T::Iq1M, 29, "iq1_m", 256, 56),
    (T::Bf16, 30, "bf16", 1, 2),
    (T::Tq1_0, 34, "tq1_0", 256, 54),
    (T::Tq2_0, 35, "tq2_0", 256, 66),
    (T::Mxfp4, 39, "mxfp4", 32, 17),
    (T::Nvfp4, 40, "nvfp4", 64, 36),
    (T::Q1_0, 41, "q1_0", 128, 18),
    (T::Q2_0, 42, "q2_0", 64, 18),
];

impl GgmlType {
    /// Every type, by id.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The type that a file's id stands for in llama.cpp. Forks reuse ids from 42 on: check such a size against the
    /// next tensor's offset.
    pub fn from_id(id: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == id).map(|row| row.0)
    }

    /// The type of this name, in either case (`Q4_K`, `q4_k`).
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.2.eq_ignore_ascii_case(name)).map(|row| row.0)
    }

    fn row(self) -> &'static (GgmlType, u32, &'static str, u64, u64) {
        // The table is in the order of the variants; a test holds it to that.
        &TABLE[self as usize]
    }

    /// Id in a file.
    pub fn id(self) -> u32 {
        self.row().1
    }

    /// Name in lower case.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Weights in one block.
    pub fn block(self) -> u64 {
        self.row().3
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> u64 {
        self.row().4
    }

    /// The type that a quantiser really uses for rows of `columns` weights.
    ///
    /// Source: llama.cpp's fallbacks (types of 256-blocks go to types of 32-blocks, and to half precision where even
    /// 32 does not divide the row).
    pub fn for_columns(self, columns: u64) -> Self {
        if columns.is_multiple_of(self.block()) {
            return self;
        }
        let fallback = match self {
            T::Q4K => T::Q5_0,
            T::Q5K => T::Q5_1,
            T::Q6K => T::Q8_0,
            T::Q2K | T::Q3K | T::Tq1_0 | T::Tq2_0 => T::Q4_0,
            _ if self.block() == 256 => T::Iq4Nl,
            _ => T::F16,
        };
        if columns.is_multiple_of(fallback.block()) { fallback } else { T::F16 }
    }

    /// Bytes of `rows` rows of `columns` weights, in this type or the one it falls back to.
    pub fn tensor_bytes(self, rows: u64, columns: u64) -> u64 {
        let stored = self.for_columns(columns);
        (columns / stored.block()).saturating_mul(stored.block_bytes()).saturating_mul(rows)
    }
}

#[cfg(test)]
mod tests {
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
}
