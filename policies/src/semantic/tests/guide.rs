//! Profiles worked out by hand.

use crate::Config as _;
use crate::predict::{Layers, Opening, Token, TokenPlace};
use crate::semantic::{Guide, GuideConfig, Likeness, ProfileFrom};

fn layers() -> Layers {
    Layers::new(&[4], &[1])
}

/// A conversation with this embedding that uses these experts.
fn converse(guide: &mut Guide, embedding: &[f32], experts: &[u32]) -> Vec<f32> {
    guide.begin(0, &Opening { embedding, ..Opening::default() });
    let profile = guide.profile(0).to_vec();
    for expert in experts {
        guide.observe(&Token::new(
            TokenPlace { lane: 0, row: 0, layer: 0 },
            &layers(),
            &[*expert],
            &[],
        ));
    }
    guide.end(0);
    profile
}

fn near(found: &[f32], expected: [f32; 4]) {
    let close = found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-4);
    assert!(close, "{found:?} is not {expected:?}");
}

#[test]
fn the_nearest_by_hand() {
    let mut guide = Guide::new(4, &GuideConfig { k: 1, ..GuideConfig::default() });
    near(&converse(&mut guide, &[1.0, 0.0], &[0, 0, 0, 1]), [0.0; 4]);
    near(&converse(&mut guide, &[0.0, 2.0], &[2, 3]), [0.75, 0.25, 0.0, 0.0].map(|_| 0.0));
    near(&converse(&mut guide, &[3.0, 0.1], &[0]), [0.75, 0.25, 0.0, 0.0]);
    near(&converse(&mut guide, &[0.1, 1.0], &[1]), [0.0, 0.0, 0.5, 0.5]);
    assert_eq!((guide.stored(), guide.profile(0).len(), guide.refused()), (4, 0, None));
    guide.set_learning(false);
    converse(&mut guide, &[1.0, 1.0], &[1]);
    assert_eq!(guide.stored(), 4);
}

#[test]
fn controls_and_ceiling_by_hand() {
    let of = |from| Guide::new(4, &GuideConfig { from, k: 9, after: 2, ..GuideConfig::default() });
    let mut mean = of(ProfileFrom::Mean);
    let mut random = of(ProfileFrom::Shuffled);
    for guide in [&mut mean, &mut random] {
        converse(guide, &[1.0, 0.0], &[0]);
        converse(guide, &[0.0, 1.0], &[2, 3]);
        // Nine drawn of two are both.
        near(&converse(guide, &[0.0, 1.0], &[0]), [0.5, 0.0, 0.25, 0.25]);
    }
    let mut own = of(ProfileFrom::Own);
    own.begin(0, &Opening { own_uses: &[3, 1, 0, 0], own_tokens: 4, ..Opening::default() });
    near(own.profile(0), [0.75, 0.25, 0.0, 0.0]);
    let mut prompt = of(ProfileFrom::Prompt);
    let opening = Opening { prompt_uses: &[0, 1, 0, 1], prompt_tokens: 2, ..Opening::default() };
    prompt.begin(0, &opening);
    near(prompt.profile(0), [0.0, 0.5, 0.0, 0.5]);
    // Without the prompt's routes, the first two tokens tell.
    prompt.begin(0, &Opening::default());
    assert!(prompt.take_changed());
    for (expert, expected) in [(1, [0.0; 4]), (1, [0.0; 4]), (2, [0.0, 1.0, 0.0, 0.0])] {
        prompt.observe(&Token::new(
            TokenPlace { lane: 0, row: 0, layer: 0 },
            &layers(),
            &[expert],
            &[],
        ));
        near(prompt.profile(0), expected);
    }
    assert!(prompt.take_changed() && !prompt.take_changed());
    let mut both = [9.0; 4];
    prompt.begin(1, &opening);
    prompt.mean_profile(&mut both);
    near(&both, [0.0, 0.75, 0.0, 0.25]);
}

#[test]
fn clusters_have_a_profile_each_and_routes_can_stand_for_embeddings() {
    let config = GuideConfig { from: ProfileFrom::Clusters, clusters: 2, ..GuideConfig::default() };
    let mut guide = Guide::new(4, &config);
    for embedding in [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]] {
        converse(&mut guide, &embedding, if embedding[0] > 0.5 { &[0] } else { &[3] });
    }
    near(&converse(&mut guide, &[1.0, 0.2], &[0]), [1.0, 0.0, 0.0, 0.0]);
    near(&converse(&mut guide, &[0.2, 1.0], &[3]), [0.0, 0.0, 0.0, 1.0]);
    let config = GuideConfig { by: Likeness::Routes, k: 1, after: 1, ..GuideConfig::default() };
    let mut guide = Guide::new(4, &config);
    for experts in [[0, 1, 1], [2, 3, 3]] {
        converse(&mut guide, &[], &experts);
    }
    guide.begin(0, &Opening::default());
    for expert in [2, 0] {
        guide.observe(&Token::new(
            TokenPlace { lane: 0, row: 0, layer: 0 },
            &layers(),
            &[expert],
            &[],
        ));
    }
    near(guide.profile(0), [0.0, 0.0, 1.0 / 3.0, 2.0 / 3.0]);
    assert_eq!(guide.refused(), None);
}

#[test]
fn what_cannot_be_used_is_told() {
    let mut guide = Guide::new(4, &GuideConfig::default());
    converse(&mut guide, &[1.0, 0.0], &[0]);
    converse(&mut guide, &[f32::NAN, 0.0], &[0]);
    assert!(guide.refused().is_some_and(|refused| refused.to_string().contains("NaN")));
    for wrong in [
        GuideConfig { k: 0, ..GuideConfig::default() },
        GuideConfig { store: 0, ..GuideConfig::default() },
        GuideConfig { clusters: usize::MAX, ..GuideConfig::default() },
        GuideConfig { after: 0, ..GuideConfig::default() },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
}
