//! Two jobs that slow each other while both run.

/// Times from now until each of two jobs ends that would take `a` and `b` alone, where running
/// beside the other makes the first take `a_permille` and the second `b_permille` per mille.
/// Neither ends before its time alone.
pub(super) fn beside(a: (u64, u32), b: (u64, u32)) -> (u64, u64) {
    let (slow_a, slow_b) = (slowed(a.0, a.1), slowed(b.0, b.1));
    if slow_a <= slow_b {
        // Until then the other did what it could, slowed; the rest runs alone.
        (slow_a, slow_a.saturating_add(b.0.saturating_sub(done_in(slow_a, b.1))))
    } else {
        (slow_b.saturating_add(a.0.saturating_sub(done_in(slow_b, a.1))), slow_b)
    }
}

/// `alone` at `permille` per mille of its time, rounded up.
pub(super) fn slowed(alone: u64, permille: u32) -> u64 {
    if permille == 1000 {
        return alone;
    }
    match alone.checked_mul(u64::from(permille)) {
        Some(product) => product.div_ceil(1000),
        None => {
            let wide = (u128::from(alone) * u128::from(permille)).div_ceil(1000);
            u64::try_from(wide).unwrap_or(u64::MAX)
        }
    }
}

/// What of a job is done after `time` at `permille` per mille, rounded down.
fn done_in(time: u64, permille: u32) -> u64 {
    if permille == 1000 {
        return time;
    }
    match time.checked_mul(1000) {
        Some(product) => product / u64::from(permille),
        // A quotient by at least 1000 of a product by 1000 fits.
        None => (u128::from(time) * 1000 / u128::from(permille)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_do_not_disturb_each_other_take_their_time() {
        assert_eq!(beside((70, 1000), (30, 1000)), (70, 30));
    }

    #[test]
    fn the_longer_job_is_slowed_only_while_the_shorter_runs() {
        // The first ends at 20 (2 x 10). Until then the second did 20 / 1.25 = 16 of 100.
        assert_eq!(beside((10, 2000), (100, 1250)), (20, 104));
        assert_eq!(beside((100, 1250), (10, 2000)), (104, 20));
        // Slowing by a third of a picosecond rounds up, never below the time alone.
        assert_eq!(slowed(1, 1001), 2);
        assert_eq!(beside((1, 1001), (1, 1000)), (2, 1));
    }

    #[test]
    fn the_longest_times_saturate() {
        assert_eq!(slowed(u64::MAX, 1001), u64::MAX);
        assert_eq!(beside((u64::MAX, 2000), (5, 1000)).1, 5);
    }
}
