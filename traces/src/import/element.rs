//! The types of numbers that arrays are made of, and how each reads as one `f64`.
//!
//! Every id and every score of half or single precision is exact there.

use half::{bf16, f16};

/// A type of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// Bytes of one.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// NumPy's code for it, without the byte order: `i4`, `f2`, `b1`.
    pub(super) fn of_numpy(code: &str) -> Option<Self> {
        Some(match code {
            "b1" => Self::Bool,
            "u1" => Self::U8,
            "i1" => Self::I8,
            "u2" => Self::U16,
            "i2" => Self::I16,
            "u4" => Self::U32,
            "i4" => Self::I32,
            "u8" => Self::U64,
            "i8" => Self::I64,
            "f2" => Self::F16,
            "f4" => Self::F32,
            "f8" => Self::F64,
            _ => return None,
        })
    }

    /// The name that safetensors has for it.
    pub(super) fn of_safetensors(name: &str) -> Option<Self> {
        Some(match name {
            "BOOL" => Self::Bool,
            "U8" => Self::U8,
            "I8" => Self::I8,
            "U16" => Self::U16,
            "I16" => Self::I16,
            "U32" => Self::U32,
            "I32" => Self::I32,
            "U64" => Self::U64,
            "I64" => Self::I64,
            "F16" => Self::F16,
            "BF16" => Self::Bf16,
            "F32" => Self::F32,
            "F64" => Self::F64,
            _ => return None,
        })
    }

    /// The number in these bytes, of which there are [`Element::size`].
    pub(super) fn value(self, bytes: &[u8], big_endian: bool) -> f64 {
        let mut wide = [0; 8];
        let wide_part = &mut wide[..bytes.len()];
        wide_part.copy_from_slice(bytes);
        if big_endian {
            wide_part.reverse();
        }
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Bool => f64::from(u8::from(bits != 0)),
            Self::U8 => f64::from(bits as u8),
            Self::I8 => f64::from(bits as i8),
            Self::U16 => f64::from(bits as u16),
            Self::I16 => f64::from(bits as i16),
            Self::U32 => f64::from(bits as u32),
            Self::I32 => f64::from(bits as i32),
            Self::U64 => bits as f64,
            Self::I64 => bits as i64 as f64,
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_type() {
        assert_eq!(Element::I16.value(&[0xff, 0xfe], true), -2.0);
        assert_eq!(Element::I16.value(&[0xfe, 0xff], false), -2.0);
        assert_eq!(Element::I8.value(&[255], false), -1.0);
        assert_eq!(Element::U32.value(&[0xff; 4], false), 4_294_967_295.0);
        assert_eq!(Element::I64.value(&[0xff; 8], true), -1.0);
        assert_eq!(Element::Bf16.value(&[0xc0, 0x3f], false), 1.5);
        assert_eq!(Element::F16.value(&[0x3e, 0x00], true), 1.5);
        assert_eq!(Element::F32.value(&1.5f32.to_be_bytes(), true), 1.5);
        assert_eq!(Element::F64.value(&(-0.1f64).to_le_bytes(), false), -0.1);
        assert_eq!(Element::Bool.value(&[2], false), 1.0);
    }
}
