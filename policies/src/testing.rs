//! What the policies' tests share.

use crate::{Anyone, Key, Policy};

/// The textbook reference string: FIFO 15, LRU 12, OPT 9 faults with 3 frames.
pub(crate) const TEXTBOOK: [Key; 20] = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];

/// Misses of a sequential run, with the invariants checked after every access.
pub(crate) fn run_sequential<P: Policy>(policy: &mut P, accesses: &[Key]) -> u32 {
    let mut misses = 0;
    for &key in accesses {
        if policy.contains(key) {
            policy.hit(key);
        } else {
            misses += 1;
            assert!(policy.admit(key, &mut Anyone));
        }
        assert_eq!(policy.validate(), Ok(()));
        assert!(policy.contains(key));
    }
    misses
}
