use super::*;
use crate::{Lru, Slots};

fn lru(experts: &[u32], slots: u32) -> ExpertCache<Lru> {
    let top_k = vec![2; experts.len()];
    ExpertCache::new(experts, &top_k, &Slots::Global(slots), |_, pool| Lru::new(pool))
        .unwrap()
        .with_ordered_copies()
}

/// What an event of one token comes to: demanded, the host's, deferred, dropped, substituted.
type Split = (Vec<u16>, u32, u32, u32, u32);

struct Engine {
    dispatcher: MissDispatcher<u16>,
    cache: ExpertCache<Lru>,
}

impl Engine {
    fn new(handler: &str, experts: &[u32], slots: u32) -> Self {
        let dispatcher = MissDispatcher::new(handler.parse().unwrap(), experts);
        Self { dispatcher, cache: lru(experts, slots) }
    }

    fn run(&mut self, asked: &Asked<'_, u16>) -> Split {
        let event = self.dispatcher.choose(&self.cache, asked);
        let told = (event.host, event.deferred, event.dropped, event.substituted);
        let demanded = event.demanded.to_vec();
        self.cache.demand(asked.layer, &demanded);
        self.cache.release(asked.layer);
        (demanded, told.0, told.1, told.2, told.3)
    }

    fn token(&mut self, layer: usize, experts: &[u16], weights: &[f32]) -> Split {
        self.run(&Asked::by_one_token(layer, experts, weights))
    }
}

/// Three of four experts fit. Experts 0 and 1 are used, then 2 and 3, then all four: of three
/// events' misses half are copied, and the most recent are those.
#[test]
fn the_most_recent_misses_are_copied_and_the_host_serves_the_rest() {
    let mut engine = Engine::new("balanced:fetch=0.5", &[4], 3);
    let mut run = |experts: &[u16]| {
        let (demanded, host, ..) = engine.token(0, experts, &[]);
        (demanded, host)
    };
    // 1 of 2 misses: 0, the lower id. Then 2. Then 0 and 2 are there, and of 1 and 3 the one
    // that was used later is copied: 3.
    assert_eq!(run(&[1, 0]), (vec![0], 1));
    assert_eq!(run(&[3, 2]), (vec![2], 1));
    assert_eq!(run(&[1, 2, 3, 0]), (vec![2, 0, 3], 1));
    assert_eq!(run(&[0, 2, 3]), (vec![0, 2, 3], 0));
}

#[test]
fn the_lowest_ids_are_copied_where_that_is_asked_for() {
    let mut engine = Engine::new("balanced:fetch=0.5,order=lowest", &[6], 6);
    assert_eq!(engine.token(0, &[5, 4], &[]).0, [4]);
    // 5 was asked for last, but 1 has the lower id.
    assert_eq!(engine.token(0, &[5, 1], &[]).0, [1]);
}

#[test]
fn a_cap_on_uploads_leaves_the_rest_to_the_host() {
    let mut engine = Engine::new("upload-cap:n=2", &[8], 8);
    assert_eq!(engine.token(0, &[7, 3, 5, 1], &[]), (vec![1, 3], 2, 0, 0, 0));
    assert_eq!(engine.token(0, &[7, 3, 5, 1], &[]), (vec![3, 1, 5, 7], 0, 0, 0, 0));
}

#[test]
fn fiddler_asks_for_each_expert_how_many_tokens_want_it() {
    let mut engine = Engine::new("fiddler", &[4], 4);
    // 7 x 9 = 63 < 70: the host; 7 x 10 is not.
    let asked = Asked {
        layer: 0,
        experts: &[0u16, 1, 2],
        weights: &[],
        tokens: &[9, 10, 30],
        step_tokens: 30,
    };
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    // Of 49 tokens three are the first of theirs, and the host serves an expert of nine.
    assert_eq!((event.demanded, event.host_further, event.miss_further), (&[1, 2][..], 8, 46));
    engine.cache.demand(0, &[1u16, 2]);
    engine.cache.release(0);
    assert_eq!(engine.token(0, &[0, 1], &[]), (vec![1], 1, 0, 0, 0));
}

#[test]
fn hybrimoes_link_takes_the_largest_loads() {
    let mut engine = Engine::new("hybrimoe:copy=10,host=4", &[4], 4);
    let asked = Asked {
        layer: 0,
        experts: &[0u16, 1, 2],
        weights: &[],
        tokens: &[1, 5, 2],
        step_tokens: 5,
    };
    assert_eq!(engine.run(&asked), (vec![1], 2, 0, 0, 0));
}

#[test]
fn whole_layers_are_the_hosts() {
    let mut engine = Engine::new("cpu-layers:n=1", &[4, 4], 4);
    assert_eq!(engine.token(0, &[2, 0], &[]), (vec![], 2, 0, 0, 0));
    assert_eq!(engine.token(1, &[2, 0], &[]), (vec![2, 0], 0, 0, 0, 0));
}

#[test]
fn outputs_are_deferred_but_in_the_last_layer() {
    let mut engine = Engine::new("defer:n=1", &[4, 4], 4);
    assert_eq!(engine.token(0, &[2, 0], &[]), (vec![], 2, 1, 0, 0));
    assert_eq!(engine.token(1, &[2, 0], &[]), (vec![], 2, 0, 0, 0));
}

#[test]
fn missing_experts_of_little_weight_are_dropped_and_the_weight_is_counted() {
    let mut engine = Engine::new("drop:below=0.2", &[4], 4);
    let (experts, weights) = ([3u16, 1, 0], [0.75f32, 0.25, 0.125]);
    // 0.125 of 1.125 is a ninth.
    let asked = Asked::by_one_token(0, &experts, &weights);
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    assert_eq!((event.demanded, event.dropped, event.host), (&[3, 1][..], 1, 0));
    assert_eq!((event.weights, event.lost_ppb), (&[0.75, 0.25][..], 111_111_111));
    // Two tokens: 2 is wanted by one of them with 0.3 of its 1.0, 1 by both with 0.35 and 0.2.
    let mut engine = Engine::new("drop:below=0.29", &[4], 4);
    let asked = Asked {
        layer: 0,
        experts: &[0u16, 1, 2],
        weights: &[1.15, 0.55, 0.3],
        tokens: &[2, 2, 1],
        step_tokens: 2,
    };
    // Shares 0.575, 0.275 and 0.3 of a token's weight.
    assert_eq!(engine.run(&asked), (vec![0, 2], 0, 0, 1, 0));
    // A resident expert is never dropped.
    assert_eq!(engine.token(0, &[0, 2], &[0.99, 0.01]), (vec![0, 2], 0, 0, 0, 0));
}

#[test]
fn a_resident_expert_that_is_chosen_together_stands_in() {
    let mut engine = Engine::new("substitute", &[6], 2);
    // Nobody is known yet: 0 and 1 are fetched, then 2 and 3, which push them out.
    assert_eq!(engine.token(0, &[0, 1], &[0.5, 0.5]), (vec![0, 1], 0, 0, 0, 0));
    assert_eq!(engine.token(0, &[0, 2], &[0.5, 0.5]), (vec![0, 2], 0, 0, 0, 0));
    // 1 is gone; it was chosen with 0, which is resident and in no other role.
    let asked = Asked::by_one_token(0, &[1u16], &[0.25]);
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    assert_eq!((event.demanded, event.substituted), (&[0][..], 1));
    assert_eq!((event.weights, event.lost_ppb), (&[0.25][..], 1_000_000_000));
    // Where that one is asked for itself, nobody is left: 1 is fetched.
    assert_eq!(engine.token(0, &[0, 1], &[0.5, 0.5]), (vec![0, 1], 0, 0, 0, 0));
}

#[test]
fn missing_experts_come_whole_smaller_or_not_by_the_weight_before_them() {
    // Weights 0.5, 0.25, 0.15, 0.1: before them lie 0, 0.5, 0.75 and 0.9.
    let mut engine = Engine::new("low-precision:whole=0.5,low=0.8,size=0.25", &[4], 4);
    let asked = Asked::by_one_token(0, &[3u16, 1, 0, 2], &[0.5, 0.25, 0.15, 0.1]);
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    assert_eq!((event.demanded, event.low, event.dropped), (&[3, 1][..], 1, 1));
    // Only what is not computed is lost: 0.1 of 1.0.
    assert_eq!(event.lost_ppb, 100_000_001, "f32's tenth");
    // The order is that of the weights, whatever the ranks; residents come first among equals.
    assert_eq!(engine.token(0, &[2, 0, 1, 3], &[0.1, 0.15, 0.25, 0.5]).0, [1, 3]);
    let asked = Asked::by_one_token(0, &[3u16, 0], &[0.7, 0.3]);
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    assert_eq!((event.demanded, event.low, event.dropped), (&[3][..], 1, 0));
}

#[test]
fn a_biased_router_takes_residents_for_missing_experts_of_little_weight() {
    let mut engine = Engine::new("bias:lambda=1,keep=1", &[6], 3);
    // No range is known yet: all three come in. Theirs is ln 8.
    assert_eq!(engine.token(0, &[0, 1, 2], &[0.8, 0.4, 0.1]), (vec![0, 1, 2], 0, 0, 0, 0));
    // 3 is the best and stays; 4 is ln 6 over the last, which is less than ln 8: a resident outside the
    // event takes its place, and the last's. Nobody was chosen with them: the lowest ids, the last first.
    let asked = Asked::by_one_token(0, &[3u16, 4, 5], &[0.8, 0.6, 0.1]);
    let event = engine.dispatcher.choose(&engine.cache, &asked);
    assert_eq!((event.demanded, event.substituted, event.dropped), (&[0, 1, 3][..], 2, 0));
    assert_eq!(event.lost_ppb, 466_666_672, "0.7 of 1.5, in f32");
    // With a bias of half the mean range (ln 8 + ln 8) / 2 only the last is replaced.
    let mut engine = Engine::new("bias:lambda=0.5,keep=1", &[6], 3);
    engine.token(0, &[0, 1, 2], &[0.8, 0.4, 0.1]);
    assert_eq!(engine.token(0, &[3, 4, 5], &[0.8, 0.6, 0.1]), (vec![0, 3, 4], 0, 0, 0, 1));
    // Without a bias nothing is.
    let mut engine = Engine::new("bias:lambda=0", &[6], 3);
    engine.token(0, &[0, 1, 2], &[0.8, 0.4, 0.1]);
    assert_eq!(engine.token(0, &[3, 4, 5], &[0.8, 0.6, 0.1]).4, 0);
}

#[test]
fn weights_follow_their_experts() {
    let mut dispatcher = MissDispatcher::new(MissHandler::Fetch, &[2, 4]);
    let cache = lru(&[2, 4], 2);
    let event = dispatcher.choose(&cache, &Asked::by_one_token(1, &[3u8, 1], &[0.75, 0.25]));
    assert_eq!(event.demanded, [3, 1]);
    assert_eq!((event.weights, event.host), (&[0.75, 0.25][..], 0));
}
