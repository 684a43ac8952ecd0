//! The block formats of GGUF files: ids, blocks, and what a quantiser falls back to.
//!
//! A row of a tensor is cut into blocks of a fixed number of weights; a width that the block does not divide cannot be
//! stored in the type, and the quantiser takes another one. That makes "4-bit" experts of 1,408 or 2,880 columns much
//! larger than their name says. Some of ik_llama.cpp's types begin every row with a scale of its own, and its repacked
//! types (`iq3_k_r4`) are the plain ones with rows interleaved: the same size.

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
    /// ik_llama.cpp: 6.5 bits, blocks of 32.
    Q6_0,
    /// ik_llama.cpp: 2.375 bits.
    Iq2K,
    /// ik_llama.cpp: 3.4375 bits.
    Iq3K,
    /// ik_llama.cpp: 4.5 bits.
    Iq4K,
    /// ik_llama.cpp: 5.5 bits.
    Iq5K,
    /// ik_llama.cpp: 6.625 bits.
    Iq6K,
    /// ik_llama.cpp: 4.25 bits and a scale a row.
    Iq4Ks,
    /// ik_llama.cpp: 2.1875 bits and a scale a row.
    Iq2Ks,
    /// ik_llama.cpp: 4 bits and a scale a row.
    Iq4Kss,
    /// ik_llama.cpp: 5.25 bits and a scale a row.
    Iq5Ks,
    /// ik_llama.cpp's trellis: 2.125 bits and a scale a row.
    Iq2Kt,
    /// ik_llama.cpp's trellis: 3.125 bits and a scale a row.
    Iq3Kt,
    /// ik_llama.cpp's trellis: 4 bits and a scale a row.
    Iq4Kt,
    /// ik_llama.cpp: 3.1875 bits and a scale a row.
    Iq3Ks,
    /// ik_llama.cpp: 2.6875 bits and a scale a row.
    Iq2Kl,
    /// ik_llama.cpp's trellis: 1.75 bits and a scale a row.
    Iq1Kt,
    /// ik_llama.cpp, interleaved: 1.5 bits and a scale a row.
    Iq1SR4,
    /// ik_llama.cpp, interleaved: 1.75 bits and a scale a row.
    Iq1MR4,
}

use GgmlType as T;

/// Type, id in a file, name, weights a block, bytes a block.
const TABLE: [(GgmlType, u32, &str, u64, u64); 51] = [
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
    (T::Q6_0, 133, "q6_0", 32, 26),
    (T::Iq2K, 137, "iq2_k", 256, 76),
    (T::Iq3K, 138, "iq3_k", 256, 110),
    (T::Iq4K, 139, "iq4_k", 256, 144),
    (T::Iq5K, 140, "iq5_k", 256, 176),
    (T::Iq6K, 141, "iq6_k", 256, 212),
    (T::Iq4Ks, 144, "iq4_ks", 256, 136),
    (T::Iq2Ks, 145, "iq2_ks", 256, 70),
    (T::Iq4Kss, 146, "iq4_kss", 256, 128),
    (T::Iq5Ks, 152, "iq5_ks", 256, 168),
    (T::Iq2Kt, 153, "iq2_kt", 256, 68),
    (T::Iq3Kt, 154, "iq3_kt", 256, 100),
    (T::Iq4Kt, 155, "iq4_kt", 256, 128),
    (T::Iq3Ks, 156, "iq3_ks", 256, 102),
    (T::Iq2Kl, 157, "iq2_kl", 256, 86),
    (T::Iq1Kt, 158, "iq1_kt", 256, 56),
    (T::Iq1SR4, 219, "iq1_s_r4", 32, 6),
    (T::Iq1MR4, 229, "iq1_m_r4", 32, 7),
];

/// Repacked types of ik_llama.cpp: id, and the type whose size they have.
const REPACKED: [(u32, GgmlType); 30] = [
    (202, T::Q4_0),
    (206, T::Q5_0),
    (208, T::Q8_0),
    (210, T::Q2K),
    (211, T::Q3K),
    (212, T::Q4K),
    (213, T::Q5K),
    (214, T::Q6K),
    (216, T::Iq2Xxs),
    (217, T::Iq2Xs),
    (218, T::Iq3Xxs),
    (220, T::Iq4Nl),
    (221, T::Iq3S),
    (222, T::Iq2S),
    (223, T::Iq4Xs),
    (230, T::Bf16),
    (233, T::Q6_0),
    (337, T::Iq2K),
    (338, T::Iq3K),
    (339, T::Iq4K),
    (340, T::Iq5K),
    (341, T::Iq6K),
    (344, T::Iq4Ks),
    (345, T::Iq2Ks),
    (352, T::Iq5Ks),
    (353, T::Iq2Kt),
    (354, T::Iq3Kt),
    (355, T::Iq4Kt),
    (356, T::Iq3Ks),
    (357, T::Iq2Kl),
];

impl GgmlType {
    /// Every type, by id.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The type that a file's id stands for in llama.cpp. Forks reuse ids from 42 on: check such a size against the
    /// next tensor's offset.
    pub fn from_id(id: u32) -> Option<Self> {
        let plain = TABLE.iter().find(|row| row.1 == id).map(|row| row.0);
        plain.or_else(|| REPACKED.iter().find(|row| row.0 == id).map(|row| row.1))
    }

    /// The type of this name, in either case (`Q4_K`, `q4_k`); repacked ones (`iq3_k_r4`) are the type that they pack.
    pub fn from_name(name: &str) -> Option<Self> {
        let named =
            |name: &str| TABLE.iter().find(|row| row.2.eq_ignore_ascii_case(name)).map(|row| row.0);
        named(name).or_else(|| {
            let (plain, rows) = name.rsplit_once('_')?;
            ["r4", "r8", "r16"].iter().find(|known| known.eq_ignore_ascii_case(rows))?;
            named(plain)
        })
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

    /// Bytes of the scale that begins every row, beside its blocks.
    pub fn row_scale(self) -> u64 {
        match self {
            T::Iq4Ks | T::Iq4Kss | T::Iq5Ks => 4,
            T::Iq1Kt | T::Iq2Kt | T::Iq3Kt | T::Iq4Kt => 4,
            T::Iq2Ks | T::Iq3Ks | T::Iq2Kl | T::Iq1SR4 | T::Iq1MR4 => 2,
            _ => 0,
        }
    }

    /// Bits a weight, scales of rows left out.
    pub fn bits(self) -> f64 {
        (8 * self.block_bytes()) as f64 / self.block() as f64
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
            T::Iq5K | T::Iq5Ks => T::Q6_0,
            T::Iq6K => T::Q8_0,
            _ if self.block() == 256 => T::Iq4Nl,
            _ => T::F16,
        };
        if columns.is_multiple_of(fallback.block()) { fallback } else { T::F16 }
    }

    /// Bytes of `rows` rows of `columns` weights, in this type or the one it falls back to.
    pub fn tensor_bytes(self, rows: u64, columns: u64) -> u64 {
        let stored = self.for_columns(columns);
        let row = (columns / stored.block()).saturating_mul(stored.block_bytes());
        row.saturating_add(stored.row_scale()).saturating_mul(rows)
    }
}

#[cfg(test)]
mod tests;
