//! Training never sees what it is tested on: whoever memorises scores at chance on the rest.

use std::collections::HashMap;

use hotset_experiments::{Folds, Parts};
use hotset_policies::predict::{
    Guess, PREDICTORS, Predictor, PredictorNeed, PrefetchControl, Token,
};
use hotset_sim::{PhaseFilter, Prefetch, Steps, score, score_predictor, train_predictor, trained};
use hotset_traces::synth::generate;
use hotset_traces::{SynthConfig, Trace};

const EXPERTS: u32 = 64;
const TOP_K: u32 = 8;

/// Routes without any structure: every layer of every token is drawn by itself, so that nothing
/// but having seen the very token tells its experts.
fn noise() -> Trace {
    let config = SynthConfig {
        layers: 4,
        experts: EXPERTS,
        top_k: TOP_K,
        tokens: 8000,
        sequence_tokens: 400,
        popularity: 0.0,
        topic: 0.0,
        correlated: 0.0,
        white: 1.0,
        seed: 5,
        ..SynthConfig::default()
    };
    generate(&config).unwrap()
}

/// Remembers every token by its experts so far, and of an unknown one guesses the lowest experts.
#[derive(Default)]
struct Memory {
    known: HashMap<Vec<u32>, Vec<u32>>,
    frozen: bool,
}

fn so_far(token: &Token<'_>, layer: usize) -> Vec<u32> {
    (0..=layer).flat_map(|layer| token.experts(layer).to_vec()).collect()
}

impl Predictor for Memory {
    fn observe(&mut self, token: &Token<'_>) {
        let layer = token.layer as usize;
        if layer > 0 && !self.frozen {
            self.known.insert(so_far(token, layer - 1), token.experts(layer).to_vec());
        }
    }

    fn predict(&mut self, token: &Token<'_>, _: u32, width: usize, guesses: &mut Vec<Guess>) {
        let lowest: Vec<u32> = (0..TOP_K).collect();
        let known = self.known.get(&so_far(token, token.layer as usize)).unwrap_or(&lowest);
        guesses.extend(known.iter().take(width).map(|&expert| Guess { expert, confidence: 1.0 }));
    }

    fn set_learning(&mut self, learning: bool) {
        self.frozen = !learning;
    }
}

fn recall(training: &Trace, tested: &Trace) -> f64 {
    let phase = PhaseFilter::Decode;
    let mut memory = Memory::default();
    train_predictor(&mut memory, training, &Steps::of(training, 1), phase);
    memory.set_learning(false);
    let steps = Steps::of(tested, 1);
    let scored =
        score_predictor(tested, &steps, phase, &PrefetchControl::default(), Box::new(memory));
    scored[0].recall().unwrap()
}

/// 24,000 layers of 8 experts are tested: chance is 1/8, its standard deviation below 0.001.
const CHANCE: f64 = TOP_K as f64 / EXPERTS as f64;

#[test]
fn a_memory_scores_at_chance_on_what_it_was_not_trained_on() {
    let folds = Folds::of(&noise(), Parts::Folds(4), None).unwrap();
    for fold in &folds.folds {
        let found = recall(&fold.training, &fold.tested);
        assert!((found - CHANCE).abs() < 0.01, "{found}: it has seen what it is tested on");
        // The test can fail: trained on what it is tested on, the memory knows everything.
        assert_eq!(recall(&fold.tested, &fold.tested), 1.0);
    }
}

#[test]
fn every_predictor_scores_at_chance_on_noise() {
    let trace = noise();
    let folds = Folds::of(&trace, Parts::Train(50.0), None).unwrap();
    let fold = &folds.folds[0];
    let phase = PhaseFilter::Decode;
    for info in PREDICTORS.iter().filter(|info| info.needs != PredictorNeed::Weights) {
        let routes = if info.name == "semantic" { ":by=routes," } else { ":" };
        for learn in ["both", "trained", "online"] {
            let text = format!("{}{routes}learn={learn}", info.name);
            let Prefetch::By(forecast) = text.parse().unwrap() else { panic!("{text}") };
            let steps = Steps::of(&fold.training, 1);
            let trained = trained(&forecast, &fold.training, &steps, phase).unwrap();
            let steps = Steps::of(&fold.tested, 1);
            let scored = score(&fold.tested, &steps, phase, &forecast, trained.as_ref()).unwrap();
            let precision = scored[0].precision().unwrap();
            assert!((precision - CHANCE).abs() < 0.01, "{text}: {precision}");
        }
    }
}
