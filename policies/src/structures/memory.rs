//! Bytes of the arrays that a policy makes, before it makes them.

/// Bytes of an array of `len` values of type `T`; the largest number where that does not fit.
pub(crate) fn array<T>(len: impl Into<u64>) -> u64 {
    (size_of::<T>() as u64).saturating_mul(len.into())
}

/// The sum of the parts, or the largest number where it does not fit.
pub(crate) fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_saturate() {
        assert_eq!(array::<u32>(3u32), 12);
        assert_eq!(array::<u64>(u64::MAX), u64::MAX);
        assert_eq!(sum([1, 2, u64::MAX]), u64::MAX);
    }
}
