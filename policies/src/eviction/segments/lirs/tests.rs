//! Worked by hand.

use super::*;
use crate::Anyone;

#[test]
fn a_short_reuse_distance_makes_a_key_lir() {
    // Three slots: two LIR, one HIR.
    let mut lirs = Lirs::configured(&PoolShape::flat(3, 9), &LirsConfig::default());
    let stack = |lirs: &Lirs| lirs.stack.iter(lirs.order).collect::<Vec<_>>();
    for key in [0, 1, 2] {
        assert!(lirs.admit(key, &mut Anyone)); // 0 and 1 LIR, 2 HIR
    }
    assert!(lirs.admit(3, &mut Anyone)); // 2 leaves, and stays in the stack
    assert_eq!((stack(&lirs), lirs.contains(2)), (vec![3, 2, 1, 0], false));
    assert!(lirs.admit(2, &mut Anyone)); // 3 leaves; 2 becomes LIR, 0 HIR
    assert_eq!((stack(&lirs), lirs.contains(3), lirs.contains(0)), (vec![2, 3, 1], false, true));
    lirs.hit(0); // no longer in the stack: stays HIR, but is on top again
    assert_eq!((stack(&lirs), lirs.state[0]), (vec![0, 2, 3, 1], HIR));
    lirs.hit(0); // now in the stack: LIR; 1 becomes HIR, and 3 is pruned off the bottom
    assert_eq!((stack(&lirs), lirs.state[1], lirs.state[3]), (vec![0, 2], HIR, ABSENT));
    assert_eq!(lirs.validate(), Ok(()));
}
