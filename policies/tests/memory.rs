//! What policies and predictors say that they will allocate, against what they allocate.

use allocation_counter::measure;
use hotset_policies::predict::{Horizon, Layers, PREDICTORS, PredictorSpec};
use hotset_policies::{POLICIES, PolicyError, PolicySpec, PoolShape, Static};

/// One layer of many experts, many layers of some, and few slots of few.
fn pools() -> [PoolShape; 3] {
    let layer_bases = (0..24).map(|layer| 64 * layer).collect();
    let layers = PoolShape { capacity: 384, keys: 24 * 64, layer_bases, keys_per_token: 8 };
    [PoolShape::flat(100, 1000), layers, PoolShape::flat(3, 7)]
}

/// Bytes that `build` leaves allocated.
fn kept<T>(build: impl FnOnce() -> T) -> u64 {
    let mut built = None;
    let measured = measure(|| built = Some(build()));
    assert!(built.is_some());
    u64::try_from(measured.bytes_current).unwrap()
}

fn agree(name: &str, stated: u64, taken: u64) {
    // A box around the policy and its scalars are not arrays: half a KiB and a bit.
    assert!(taken <= stated + 1024, "{name} states {stated} bytes and takes {taken}");
    assert!(stated <= taken + taken / 8 + 64, "{name} states {stated} bytes and takes {taken}");
}

#[test]
fn policies_take_the_memory_that_they_state() {
    for pool in pools() {
        for info in POLICIES {
            let spec: PolicySpec = info.name.parse().unwrap();
            if spec.is_online() {
                agree(info.name, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
            }
        }
        for text in ["lru-k:k=5", "dali:each_layer=true", "w-tinylfu:counts=exact"] {
            let spec: PolicySpec = text.parse().unwrap();
            agree(text, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
        }
        for text in ["lru+tinylfu", "lru+upload-cap"] {
            let spec: PolicySpec = text.parse().unwrap();
            agree(text, spec.memory(&pool), kept(|| spec.build(&pool).unwrap()));
        }
        let counts = vec![0; pool.keys as usize];
        agree("static", PolicySpec::Static.memory(&pool), kept(|| Static::new(&pool, &counts)));
    }
}

/// One stray id, 65535, makes one layer of 65,536 experts: 16 GiB of transitions.
#[test]
fn what_does_not_fit_is_refused_before_anything_is_allocated() {
    let pool = PoolShape::flat(1000, 1 << 16);
    for name in ["td-table", "td-logistic"] {
        let spec: PolicySpec = name.parse().unwrap();
        let mut refused = Ok(());
        let measured = measure(|| refused = spec.check_memory(&pool, 1 << 30));
        assert_eq!(measured.bytes_total, 0, "{name} allocated before it refused");
        match refused {
            Err(PolicyError::TooLarge { policy, bytes, limit }) => {
                assert_eq!((policy, limit), (name, 1 << 30));
                assert!((17_179_869_184..17_200_000_000).contains(&bytes), "{bytes}");
            }
            other => panic!("{other:?}"),
        }
    }
    // All others take less than 1 KiB a key, and nothing overflows at the largest shape.
    let largest = PoolShape::flat(u32::MAX, u32::MAX);
    for info in POLICIES {
        let spec: PolicySpec = info.name.parse().unwrap();
        assert!(spec.memory(&largest) > u64::from(u32::MAX));
        if !info.name.starts_with("td-") {
            assert_eq!(spec.check_memory(&pool, 1 << 26), Ok(()), "{}", info.name);
        }
    }
}

/// The largest shape that engines serve: 60 layers of 512 experts.
#[test]
fn td_pairs_fits_a_processors_cache() {
    let layer_bases = (0..60).map(|layer| 512 * layer).collect();
    let pool = PoolShape { capacity: 7680, keys: 60 * 512, layer_bases, keys_per_token: 10 };
    let spec: PolicySpec = "td-pairs".parse().unwrap();
    let bytes = spec.memory(&pool);
    assert!(bytes < 16 << 20, "{bytes} bytes");
    agree("td-pairs", bytes, kept(|| spec.build(&pool).unwrap()));
}

#[test]
fn predictors_take_the_memory_that_they_state() {
    let layers = Layers::new(&[64; 12], &[4; 12]);
    let horizon = Horizon { nearest: 1, farthest: 3 };
    for (name, parameters) in [
        ("cross-layer", ""),
        ("cross-layer", "order=2"),
        ("popularity", ""),
        ("linear", "kind=logistic"),
        ("linear", "kind=logistic,order=2"),
    ] {
        let spec = PredictorSpec::read(name, parameters).unwrap().unwrap();
        let taken = kept(|| spec.build(&layers, horizon));
        let stated = spec.memory(&layers, horizon);
        let text = format!("{name}:{parameters} states {stated} bytes and takes {taken}");
        assert!(stated <= taken + taken / 8 + 64 && taken <= stated + stated / 8 + 4096, "{text}");
    }
    // Ridge regression has its weights only once they are fitted: two thirds of these pairs.
    let ridge = PredictorSpec::read("linear", "").unwrap().unwrap();
    let (stated, taken) = (ridge.memory(&layers, horizon), kept(|| ridge.build(&layers, horizon)));
    assert!(taken <= stated && stated <= 3 * taken, "{taken} of {stated}");
    for info in PREDICTORS {
        let spec = PredictorSpec::read(info.name, "").unwrap().unwrap();
        let built = kept(|| spec.build(&layers, horizon));
        let stated = spec.memory(&layers, horizon);
        assert!(built <= stated + 8192, "{}: {built} of {stated}", info.name);
        assert_eq!(spec.check_memory(&layers, horizon, stated), Ok(()));
    }
    let wide = Layers::new(&[1 << 16; 2], &[4; 2]);
    let cross_layer = PredictorSpec::read("cross-layer", "").unwrap().unwrap();
    let refused = cross_layer.check_memory(&wide, Horizon::at(1), 1 << 30).unwrap_err();
    assert!(refused.bytes > 8 << 32 && refused.to_string().starts_with("predictor 'cross-layer'"));
}
