//! The parameters of what is chosen by name: how they are read and checked.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::params::parse;

/// The parameters of a policy that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

/// A policy's parameters.
pub trait Config: Default + for<'de> Deserialize<'de> {
    /// Checks the ranges that the types do not.
    ///
    /// # Errors
    /// Names the parameter, its value and its range.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Config for NoConfig {}

/// Reads `key=value,key=value` and checks the ranges; an empty text gives the defaults.
///
/// # Errors
/// An unknown or repeated key, a value of the wrong type or out of its range, or text that is not
/// `key=value`.
pub fn read_config<C: Config>(parameters: &str) -> Result<C, String> {
    let config: C = parse(parameters)?;
    config.check()?;
    Ok(config)
}

/// Checks that a parameter lies in its range.
pub(crate) fn share(name: &str, value: f64, range: RangeInclusive<f64>) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{name} = {value} is not within {} to {}", range.start(), range.end()))
}

/// Checks the range of a discount.
pub(crate) fn check_discount(gamma: f64) -> Result<(), String> {
    if gamma > 0.0 && gamma < 1.0 {
        return Ok(());
    }
    Err(format!("gamma is {gamma}, but must be above 0 and below 1"))
}
