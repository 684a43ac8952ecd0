//! Two jobs that slow each other while both run.

/// A job that runs beside another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// What it takes alone.
    pub alone: u64,
    /// What it takes while the other runs, in per mille of that.
    pub permille: u32,
}

/// When two jobs that begin now end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub first: u64,
    pub second: u64,
}

/// Times from now until each of two jobs ends, which slow each other while both run. Neither ends
/// before its time alone.
pub(super) fn beside(first: Job, second: Job) -> Ends {
    let slow_first = slowed(first.alone, first.permille);
    let slow_second = slowed(second.alone, second.permille);
    if slow_first <= slow_second {
        // Until then the other did what it could, slowed; the rest runs alone.
        let left = second.alone.saturating_sub(done_in(slow_first, second.permille));
        Ends { first: slow_first, second: slow_first.saturating_add(left) }
    } else {
        let left = first.alone.saturating_sub(done_in(slow_second, first.permille));
        Ends { first: slow_second.saturating_add(left), second: slow_second }
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

    fn ends(first: u64, first_permille: u32, second: u64, second_permille: u32) -> (u64, u64) {
        let job = |alone, permille| Job { alone, permille };
        let ends = beside(job(first, first_permille), job(second, second_permille));
        (ends.first, ends.second)
    }

    #[test]
    fn jobs_that_do_not_disturb_each_other_take_their_time() {
        assert_eq!(ends(70, 1000, 30, 1000), (70, 30));
    }

    #[test]
    fn the_longer_job_is_slowed_only_while_the_shorter_runs() {
        // The first ends at 20 (2 x 10). Until then the second did 20 / 1.25 = 16 of 100.
        assert_eq!(ends(10, 2000, 100, 1250), (20, 104));
        assert_eq!(ends(100, 1250, 10, 2000), (104, 20));
        // Slowing by a third of a picosecond rounds up, never below the time alone.
        assert_eq!(slowed(1, 1001), 2);
        assert_eq!(ends(1, 1001, 1, 1000), (2, 1));
    }

    #[test]
    fn the_longest_times_saturate() {
        assert_eq!(slowed(u64::MAX, 1001), u64::MAX);
        assert_eq!(ends(u64::MAX, 2000, 5, 1000).1, 5);
    }
}
