//! Worked by hand.

use super::*;
use crate::{Anyone, Policy as _};

/// Three experts, the first event uses key 0. All shares are 0, so every share feature before
/// is 0.25 ln 0.003 + 1 = -0.452286; the age is 0, so f = (1, -0.452286 x 4, -0.5, 1, 0) and
/// p = sigma(-2 - 4 x 0.452286) = sigma(-3.809143) = 0.0216887. Keys 1 and 2 have age 1 after
/// it and tau = -0.452286, with weight 0: y = 0.8 p. So w_0 moves by
/// 0.01 (1 - p + 2 (0.8 p - p)) = 0.00969636.
#[test]
fn the_first_step_of_learning_by_hand() {
    let mut policy = TdLogistic::new(&PoolShape::flat(2, 3), &TdLogisticConfig::default());
    policy.begin_event(&Event { layer: 0, keys: &[0], weights: &[] });
    assert!(
        (policy.ranking.weights[0] - (-2.0 + 0.009_696_36)).abs() < 1e-7,
        "{:?}",
        policy.ranking.weights
    );
    assert!((policy.ranking.weights[6] - 0.009_696_36).abs() < 1e-7);
    // The share with a half-life of 1.5 visits is 1 - 2^(-1/1.5) = 0.370039.
    assert!((policy.ranking.experts[0].shares[0] - 0.370_039).abs() < 1e-6);
    assert!(policy.admit(0, &mut Anyone));
    assert_eq!(policy.validate(), Ok(()));
}

#[test]
fn ranges_are_checked() {
    assert!("td-logistic:gamma=0".parse::<crate::PolicySpec>().is_err());
    assert!("td-logistic:rate=2".parse::<crate::PolicySpec>().is_err());
}
