//! Expert ids as Python gives them: arrays of any integer type, or sequences of numbers.

use numpy::{PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::refused;

/// The ids of one layer, each checked to be of the `experts` that it has.
///
/// # Errors
/// Something that is no integer; an id that the layer does not have, with its place.
pub fn read(ids: &Bound<'_, PyAny>, layer: usize, experts: u32) -> PyResult<Vec<u32>> {
    fn checked<T: Copy + Into<i64>>(ids: &[T], layer: usize, experts: u32) -> PyResult<Vec<u32>> {
        let check = |(place, &id): (usize, &T)| {
            let id: i64 = id.into();
            u32::try_from(id).ok().filter(|&id| id < experts).ok_or_else(|| {
                let last = experts - 1;
                refused(format!("experts[{place}] is {id}: layer {layer} has experts 0 to {last}"))
            })
        };
        ids.iter().enumerate().map(check).collect()
    }
    macro_rules! of_type {
        ($($number:ty)*) => {$(
            if let Ok(array) = ids.cast::<PyArrayDyn<$number>>() {
                let array = array.try_readonly().map_err(refused)?;
                return match array.as_slice() {
                    Ok(ids) => checked(ids, layer, experts),
                    Err(_) => {
                        let ids: Vec<$number> = array.as_array().iter().copied().collect();
                        checked(&ids, layer, experts)
                    }
                };
            }
        )*};
    }
    of_type!(u8 u16 u32 i64 i32 i16 i8);
    let numbers = ids.extract::<Vec<i64>>().map_err(|_| {
        let kind = ids.get_type().name().map_or_else(|_| "it".to_owned(), |name| name.to_string());
        let dtype = ids.getattr("dtype").map(|dtype| format!(" of {dtype}")).unwrap_or_default();
        PyTypeError::new_err(format!(
            "experts: {kind}{dtype}, but expert ids are whole numbers: an array of an integer type or \
             a list of int"
        ))
    })?;
    checked(&numbers, layer, experts)
}

/// Router weights, one for each id; none where nothing is given.
///
/// # Errors
/// Another number of them, or one that is not finite.
pub fn weights(given: Option<&Bound<'_, PyAny>>, ids: usize) -> PyResult<Vec<f32>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let weights: Vec<f32> = match given.cast::<PyArrayDyn<f32>>() {
        Ok(array) => array.try_readonly().map_err(refused)?.as_array().iter().copied().collect(),
        Err(_) => given.extract().map_err(|_| {
            PyTypeError::new_err("weights: give an array of float32 or a list of float")
        })?,
    };
    if weights.len() != ids {
        let text = format!("weights has {} entries for {ids} experts", weights.len());
        return Err(refused(text));
    }
    if let Some(place) = weights.iter().position(|weight| !weight.is_finite()) {
        return Err(refused(format!("weights[{place}] is {}: not a number", weights[place])));
    }
    Ok(weights)
}
