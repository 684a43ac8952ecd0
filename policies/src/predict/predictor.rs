//! What every predictor is told and asked.

use super::layers::Token;

/// An expert of a layer that is expected to be needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// The expert, by its number within the layer.
    pub expert: u32,
    /// How sure the predictor is, 0 to 1; what it means is the predictor's own definition.
    pub confidence: f32,
}

/// What is known of a sequence before its first generated token.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening<'a> {
    /// The prompt's mean input embedding; empty where none was recorded.
    pub embedding: &'a [f32],
    /// The prompt's mean final hidden state; empty where none was recorded.
    pub embedding_out: &'a [f32],
    /// Uses of each dense expert key by the prompt's tokens; empty where they were not recorded.
    pub prompt_uses: &'a [u32],
    /// Tokens that those uses are of.
    pub prompt_tokens: u32,
    /// For a ceiling that no engine can reach: uses of each key by the tokens to come; empty
    /// otherwise.
    pub own_uses: &'a [u32],
    /// Tokens that those uses are of.
    pub own_tokens: u32,
}

/// Says which experts a layer further on will need.
///
/// Sequences that run at the same time have a *lane* each, a small number that is theirs from
/// [`begin_sequence`](Self::begin_sequence) to [`end_sequence`](Self::end_sequence). Of each token
/// the engine tells every layer in order: [`observe`](Self::observe), then
/// [`predict`](Self::predict) for as many layers further on as it wants.
///
/// ```
/// use hotset_policies::NoConfig;
/// use hotset_policies::predict::{Horizon, Layers, Popularity, Predictor as _, Token, TokenPlace};
///
/// // Two layers of four experts, one of them a token; layer 1 is predicted from layer 0.
/// let layers = Layers::new(&[4, 4], &[1, 1]);
/// let mut popularity = Popularity::new(&layers, Horizon::at(1), &NoConfig {});
/// for layer in 0..2 {
///     popularity.observe(&Token::new(TokenPlace { lane: 0, row: 0, layer }, &layers, &[2, 3], &[]));
/// }
/// let mut guesses = Vec::new();
/// popularity.predict(&Token::new(TokenPlace { lane: 0, row: 1, layer: 0 }, &layers, &[1], &[]), 1, 2, &mut guesses);
/// assert_eq!((guesses[0].expert, guesses[0].confidence), (3, 1.0));
/// ```
pub trait Predictor {
    /// A sequence takes a lane.
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        let _ = (lane, opening);
    }

    /// The sequence of a lane is over.
    fn end_sequence(&mut self, lane: u32) {
        let _ = lane;
    }

    /// The router chose the experts of `token.layer`.
    fn observe(&mut self, token: &Token<'_>);

    /// Appends at most `width` guesses for layer `target`, which is behind `token.layer`, best
    /// first; none where it has nothing to go by.
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>);

    /// Stops learning from what is observed (`false`), or goes on (`true`); training a predictor
    /// and then testing it on something else is `observe` over one part and `set_learning(false)`.
    fn set_learning(&mut self, learning: bool);
}
