//! Sizes as people write them, `1GB`, `0.0017GiB`, `4096`, in whole bytes.
//!
//! Decimal digits are multiplied by the unit in integers, so no size depends on binary fractions; what
//! is left below a byte is rounded to the nearest one, halves up.

use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A number of bytes: 0 to [`ByteSize::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ByteSize(u64);

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ByteSizeError {
    /// Not a number of zero or more with a known unit.
    #[error(
        "'{text}' is not a size: give bytes, 4096, or a number with a unit, as in 24GiB, 512MiB or \
         433GB (KiB to TiB count by 1024, kB to TB by 1000)"
    )]
    NotASize {
        /// What was given.
        text: String,
    },
    /// More than [`ByteSize::MAX`].
    #[error("'{text}' is not a size that can be held: give at most 8192TiB, as in 24GiB")]
    TooLarge {
        /// What was given.
        text: String,
    },
}

/// Units, those that end in others first.
const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// More digits than any size needs; with them every product fits into 128 bits.
const MOST_DIGITS: usize = 24;

impl ByteSize {
    /// The largest size, 8192 TiB: floating point holds every whole number up to it.
    pub const MAX: Self = Self(1 << 53);

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let wrong = || ByteSizeError::NotASize { text: text.to_owned() };
        let trimmed = text.trim();
        let with_unit = UNITS.iter().find_map(|&(unit, bytes)| {
            trimmed.strip_suffix(unit).map(|number| (number.trim_end(), bytes))
        });
        let (number, unit) = with_unit.unwrap_or((trimmed, 1));
        let number = Decimal::read(number).ok_or_else(wrong)?;
        // A byte has no parts: a fraction without a unit is a mistake.
        if with_unit.is_none_or(|(_, unit)| unit == 1) && number.power < 0 {
            return Err(wrong());
        }
        match number.times(unit) {
            Some(bytes) if bytes <= Self::MAX.0 => Ok(Self(bytes)),
            _ => Err(ByteSizeError::TooLarge { text: text.to_owned() }),
        }
    }
}

/// `digits` times ten to the power of `power`.
struct Decimal {
    digits: u128,
    power: i64,
}

impl Decimal {
    /// Reads `12`, `12.61`, `.5` or `1e3`.
    fn read(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(part.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut power = i64::from(exponent) - i64::try_from(part.len()).ok()?;
        // Zeros at the end say nothing: 1.50 is 1.5.
        while power < 0 && digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
            power += 1;
        }
        let significant = digits.iter().skip_while(|digit| **digit == b'0');
        if significant.clone().count() > MOST_DIGITS {
            return None;
        }
        let digits = significant.fold(0, |value, digit| value * 10 + u128::from(digit - b'0'));
        Some(Self { digits, power: if digits == 0 { 0 } else { power } })
    }

    /// The product, rounded to a whole number, halves up; nothing where 64 bits do not hold it.
    fn times(&self, unit: u64) -> Option<u64> {
        // 24 digits are below 2^80, a unit is at most 2^40.
        let product = self.digits * u128::from(unit);
        let shift = u32::try_from(self.power.unsigned_abs()).ok();
        let scale = shift.and_then(|shift| 10_u128.checked_pow(shift));
        let value = match (self.power < 0, scale) {
            (true, Some(scale)) => {
                product / scale + u128::from(product % scale >= scale.div_ceil(2))
            }
            // The product is below 2^120, so such a part of it is far below half a byte.
            (true, None) => 0,
            (false, Some(scale)) => product.checked_mul(scale)?,
            (false, None) => return None,
        };
        u64::try_from(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> u64 {
        text.parse::<ByteSize>().unwrap().bytes()
    }

    #[test]
    fn every_spelling_of_a_size() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("1GB", 1_000_000_000),
            ("1 GiB", 1 << 30),
            (" 24GiB ", 24 << 30),
            ("1.5 MiB", 3 << 19),
            ("1kB", 1000),
            ("1KB", 1000),
            ("1KiB", 1024),
            ("2TB", 2_000_000_000_000),
            ("8192TiB", 1 << 53),
            (".5KiB", 512),
            ("1e3MiB", 1000 << 20),
            ("1.50e1kB", 15_000),
            ("0e99999GiB", 0),
            ("1e-99999GiB", 0),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_below_a_byte_is_rounded_halves_up() {
        // 0.0017 x 1,073,741,824 = 1,825,361.1008; 12.61 x 1,048,576 = 13,222,543.36.
        assert_eq!(bytes("0.0017GiB"), 1_825_361);
        assert_eq!(bytes("12.61MiB"), 13_222_543);
        // 0.7 x 1,073,741,824 = 751,619,276.8.
        assert_eq!(bytes("0.7GiB"), 751_619_277);
        assert_eq!(bytes("0.0005kB"), 1);
        assert_eq!(bytes("0.0004999kB"), 0);
        // In binary, 0.29 x 100 is 28.999999999999996: in decimal 29.
        assert_eq!(bytes("0.00029MB"), 290);
        assert_eq!(bytes("9007199254740991B"), (1 << 53) - 1);
    }

    #[test]
    fn what_is_no_size_is_refused_and_told() {
        for text in [
            "",
            " ",
            "x",
            "-1",
            "-1GiB",
            "+1",
            "nan",
            "NaNGiB",
            "inf",
            "infGB",
            "24 gigs",
            "1Gb",
            "1.5",
            "1.5B",
            "GiB",
            ".",
            ".GiB",
            "1..5GiB",
            "1e",
            "1eGiB",
            "0x10",
            "1,5GiB",
            "٣GiB",
            "1234567890123456789012345",
            "1e99999999999GiB",
        ] {
            let error = text.parse::<ByteSize>().unwrap_err();
            assert_eq!(error, ByteSizeError::NotASize { text: text.to_owned() });
            assert!(error.to_string().contains("as in 24GiB"), "{text}");
        }
        for text in ["1e30GiB", "8193TiB", "9007199254740993", "99999999999999999999", "1e999GiB"] {
            let error = text.parse::<ByteSize>().unwrap_err();
            assert_eq!(error, ByteSizeError::TooLarge { text: text.to_owned() });
        }
    }
}
