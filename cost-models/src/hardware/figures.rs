//! Figures as a machine's TOML file writes them: a table with unit, basis and source, or a text as `"96GB"`.

use serde::Deserialize;

use super::{Basis, Figure};
use crate::byte_size::ByteSize;
use crate::picos::MIB;

/// No memory of one machine is larger, and floats hold every size below it.
pub(super) const MAX_BYTES: f64 = (1u64 << 53) as f64;
/// No memory or wire is faster.
pub(super) const MAX_RATE: f64 = 1e15;
/// No accelerator computes faster, operations a second.
const MAX_OPERATIONS: f64 = 1e18;

/// A kind of figure: how its table reads, and its short form.
pub(super) trait Readable: Sized + for<'de> Deserialize<'de> {
    type Value;
    /// The value of a table.
    fn figure(self, field: &str) -> Result<Figure<Self::Value>, String>;
    /// The value of a text or number.
    fn short(text: &str, field: &str) -> Result<Self::Value, String>;
    /// What a short form looks like.
    const EXAMPLE: &'static str;
}

/// Reads a figure; `origin` is named as the source of a short one.
pub(super) fn read<T: Readable>(
    value: toml::Value,
    field: &str,
    origin: &str,
) -> Result<Figure<T::Value>, String> {
    let text = match value {
        toml::Value::Table(table) => {
            let full: T = table
                .try_into()
                .map_err(|error: toml::de::Error| format!("{field}: {}", error.message()))?;
            return full.figure(field);
        }
        toml::Value::String(text) => text,
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Integer(number) => number.to_string(),
        other => {
            return Err(format!(
                "{field} is {other}: give a table with unit, basis and source, or a text, {}",
                T::EXAMPLE
            ));
        }
    };
    let source = format!("assumption: as given in {origin}, without a source");
    Ok(Figure { value: T::short(&text, field)?, basis: Basis::Assumed, source })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    gib: Option<f64>,
    gb: Option<f64>,
    mib: Option<f64>,
    bytes: Option<u64>,
    basis: Basis,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Share {
    value: f64,
    basis: Basis,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    gib_s: Option<f64>,
    gb_s: Option<f64>,
    basis: Basis,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compute {
    tflops: f64,
    basis: Basis,
    source: String,
}

pub(super) fn sourced(field: &str, source: String) -> Result<String, String> {
    match source.trim().is_empty() {
        true => Err(format!("{field}.source is empty")),
        false => Ok(source),
    }
}

pub(super) fn bounded(field: &str, value: f64, most: f64) -> Result<u64, String> {
    if value.is_finite() && value >= 1.0 && value <= most {
        Ok(value.round() as u64)
    } else {
        Err(format!("{field} is {value}, must be 1 to {most}"))
    }
}

/// Bytes a second from one of two units.
pub(super) fn bytes_a_second(
    field: &str,
    gib_s: Option<f64>,
    gb_s: Option<f64>,
) -> Result<u64, String> {
    match (gib_s, gb_s) {
        (Some(gib), None) => bounded(field, gib * (MIB * 1024) as f64, MAX_RATE),
        (None, Some(gb)) => bounded(field, gb * 1e9, MAX_RATE),
        _ => Err(format!("{field} needs exactly one of gib_s and gb_s")),
    }
}

/// Bytes a second of a text as `80GB/s`.
pub(super) fn rate_of(text: &str, field: &str) -> Result<u64, String> {
    let wrong =
        || format!("{field} is '{text}': give a rate with its unit, as 80GB/s, 25GiB/s or 900MB/s");
    let size = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
    let unit = size.trim_end().ends_with('B');
    let bytes = size.parse::<ByteSize>().ok().filter(|size| unit && size.bytes() > 0);
    Ok(bytes.ok_or_else(wrong)?.bytes())
}

impl Readable for Size {
    type Value = u64;
    const EXAMPLE: &'static str = "\"96GB\"";

    fn figure(self, field: &str) -> Result<Figure<u64>, String> {
        let given = [
            self.gib.map(|gib| gib * (MIB * 1024) as f64),
            self.gb.map(|gb| gb * 1e9),
            self.mib.map(|mib| mib * MIB as f64),
            self.bytes.map(|bytes| bytes as f64),
        ];
        let mut given = given.into_iter().flatten();
        let (Some(bytes), None) = (given.next(), given.next()) else {
            return Err(format!("{field} needs exactly one of gib, gb, mib and bytes"));
        };
        let value = bounded(field, bytes, MAX_BYTES)?;
        Ok(Figure { value, basis: self.basis, source: sourced(field, self.source)? })
    }

    fn short(text: &str, field: &str) -> Result<u64, String> {
        let size = text.parse::<ByteSize>().map_err(|error| format!("{field}: {error}"))?;
        bounded(field, size.bytes() as f64, MAX_BYTES)
    }
}

impl Readable for Share {
    type Value = f64;
    const EXAMPLE: &'static str = "0.9 or \"90%\"";

    fn figure(self, field: &str) -> Result<Figure<f64>, String> {
        let value = share(self.value, field)?;
        Ok(Figure { value, basis: self.basis, source: sourced(field, self.source)? })
    }

    fn short(text: &str, field: &str) -> Result<f64, String> {
        let number = match text.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.trim().parse(),
        };
        let told = format!("{field} is '{text}', must be a share as 0.9 or 90%");
        share(number.map_err(|_| told)?, field)
    }
}

fn share(value: f64, field: &str) -> Result<f64, String> {
    match value > 0.0 && value <= 1.0 {
        true => Ok(value),
        false => Err(format!("{field} is {value}, must be over 0 and at most 1")),
    }
}

impl Readable for Rate {
    type Value = u64;
    const EXAMPLE: &'static str = "\"80GB/s\"";

    fn figure(self, field: &str) -> Result<Figure<u64>, String> {
        let value = bytes_a_second(field, self.gib_s, self.gb_s)?;
        Ok(Figure { value, basis: self.basis, source: sourced(field, self.source)? })
    }

    fn short(text: &str, field: &str) -> Result<u64, String> {
        bounded(field, rate_of(text, field)? as f64, MAX_RATE)
    }
}

impl Readable for Compute {
    type Value = u64;
    const EXAMPLE: &'static str = "165 (10^12 operations a second)";

    fn figure(self, field: &str) -> Result<Figure<u64>, String> {
        let value = bounded(field, self.tflops * 1e12, MAX_OPERATIONS)?;
        Ok(Figure { value, basis: self.basis, source: sourced(field, self.source)? })
    }

    fn short(text: &str, field: &str) -> Result<u64, String> {
        let tflops: f64 = text.trim().parse().map_err(|_| {
            format!("{field} is '{text}', must be 10^12 operations a second, as 165")
        })?;
        bounded(field, tflops * 1e12, MAX_OPERATIONS)
    }
}
