//! Worked by hand.

use super::*;
use crate::{Anyone, PolicySpec};

fn run(policy: &mut TdPairs, stream: impl Iterator<Item = Key>) -> u32 {
    let mut misses = 0;
    for key in stream {
        policy.begin_event(&Event { layer: 0, keys: &[key], weights: &[] });
        if policy.contains(key) {
            policy.hit(key);
        } else {
            assert!(policy.admit(key, &mut Anyone));
            misses += 1;
        }
        assert_eq!(policy.validate(), Ok(()));
    }
    misses
}

/// Eight keys in turn over six slots: LRU misses every time, while who keeps five of them misses
/// three of eight times.
#[test]
fn a_loop_is_held_in_part() {
    let mut policy = TdPairs::new(&PoolShape::flat(6, 8), &TdPairsConfig::default());
    run(&mut policy, (0..4000).map(|step| step % 8));
    let misses = run(&mut policy, (0..800).map(|step| step % 8));
    assert!(misses <= 400, "{misses} of 800");
}

#[test]
fn ranges_are_checked() {
    for wrong in ["gamma=0", "gamma=0.9,widen=0.2", "widen=-1"] {
        assert!(format!("td-pairs:{wrong}").parse::<PolicySpec>().is_err(), "{wrong}");
    }
}
