//! Ridge regression on inputs of zeros and ones, from the counts of what came together.
//!
//! Memory: 4 bytes for each pair of inputs of a layer, 12 for each pair of an input and an output.
//! A fit takes inputs^2 (inputs / 6 + outputs) multiplications, about; a token adds top-k^2 counts.

use crate::predict::vectors::add;
use crate::structures::memory::{array, sum};

/// New tokens, at least, and share of the last fit's tokens beyond which a model is fitted again.
const NEW_TOKENS: u64 = 64;
const NEW_SHARE: u64 = 4;

/// The models of one layer, one for each distance.
#[derive(Debug, Clone)]
pub(super) struct Ridge {
    /// Inputs; the last is the bias.
    inputs: usize,
    /// X'X, its lower triangle: tokens in which two inputs were 1.
    together: Vec<u32>,
    models: Vec<Model>,
}

/// One distance's.
#[derive(Debug, Clone)]
struct Model {
    outputs: usize,
    /// X'Y, `[input][output]`.
    followed: Vec<u32>,
    /// `[input][output]`; empty before the first fit.
    weights: Vec<f64>,
    tokens: u64,
    /// Tokens of the last fit.
    fitted: u64,
}

impl Ridge {
    /// Models of these many inputs, and of these many outputs at each distance.
    pub(super) fn new(inputs: usize, outputs: impl Iterator<Item = usize>) -> Self {
        let models = outputs.map(|outputs| Model {
            outputs,
            followed: vec![0; inputs * outputs],
            weights: Vec::new(),
            tokens: 0,
            fitted: 0,
        });
        Self { inputs, together: vec![0; inputs * inputs], models: models.collect() }
    }

    /// Bytes of such models once they are fitted.
    pub(super) fn memory(inputs: u64, outputs: u64) -> u64 {
        let followed = inputs.saturating_mul(outputs);
        sum([
            array::<u32>(inputs.saturating_mul(inputs)),
            array::<u32>(followed),
            array::<f64>(followed),
        ])
    }

    /// A token with these inputs used these outputs at a distance.
    #[inline]
    pub(super) fn learn(&mut self, distance: usize, inputs: &[usize], used: &[u32]) {
        // Counted once a token, as it reaches the nearest target: a model that is asked before has
        // seen neither side of the token.
        if distance == 0 {
            for &row in inputs {
                for &column in inputs.iter().filter(|&&column| column <= row) {
                    self.together[row * self.inputs + column] += 1;
                }
            }
        }
        let model = &mut self.models[distance];
        model.tokens += 1;
        for &input in inputs {
            let row = &mut model.followed[input * model.outputs..(input + 1) * model.outputs];
            used.iter().for_each(|&output| row[output as usize] += 1);
        }
    }

    /// Whether enough is new for another fit.
    #[inline]
    pub(super) fn is_stale(&self, distance: usize) -> bool {
        let model = &self.models[distance];
        let new = model.tokens - model.fitted;
        new > NEW_TOKENS && new > model.fitted / NEW_SHARE
    }

    /// Fits a distance's model to all that it has seen.
    #[cold]
    pub(super) fn fit(&mut self, distance: usize, solver: &mut Solver) {
        let model = &mut self.models[distance];
        model.fitted = model.tokens;
        let normal = NormalEquations {
            inputs: self.inputs,
            outputs: model.outputs,
            together: &self.together,
            followed: &model.followed,
        };
        solver.solve(&normal);
        model.weights.clone_from(&solver.solution);
    }

    /// Fits every model that has seen something new.
    pub(super) fn fit_all(&mut self, solver: &mut Solver) {
        for distance in 0..self.models.len() {
            if self.models[distance].tokens > self.models[distance].fitted {
                self.fit(distance, solver);
            }
        }
    }

    /// A score for each output; none before the first fit.
    #[inline]
    pub(super) fn scores(&self, distance: usize, inputs: &[usize], scores: &mut Vec<f64>) {
        let model = &self.models[distance];
        scores.clear();
        if model.weights.is_empty() {
            return;
        }
        scores.resize(model.outputs, 0.0);
        for &input in inputs {
            add(scores, &model.weights[input * model.outputs..(input + 1) * model.outputs], 1.0);
        }
    }
}

/// What X'X and X'Y are made of, for X with `inputs` columns (the bias last) and Y with `outputs`.
struct NormalEquations<'a> {
    inputs: usize,
    outputs: usize,
    /// How often two inputs were there together, `[inputs][inputs]`.
    together: &'a [u32],
    /// How often an output followed an input, `[inputs][outputs]`.
    followed: &'a [u32],
}

/// Solves the normal equations, with buffers that are used again.
#[derive(Debug, Clone)]
pub(super) struct Solver {
    lambda: f64,
    /// The upper triangle U with U'U = X'X + lambda, by rows.
    factor: Vec<f64>,
    solution: Vec<f64>,
}

impl Solver {
    pub(super) fn new(lambda: f64) -> Self {
        Self { lambda, factor: Vec::new(), solution: Vec::new() }
    }

    /// Solves (X'X + lambda) W = X'Y, the bias (the last input) without lambda, for at least one
    /// token: then the matrix is positive definite.
    fn solve(&mut self, equations: &NormalEquations<'_>) {
        let NormalEquations { inputs, outputs, together, followed } = *equations;
        self.factor.clear();
        for row in 0..inputs {
            // (The other triangle is the same.)
            self.factor.extend(
                (0..inputs)
                    .map(|column| f64::from(together[column.max(row) * inputs + column.min(row)])),
            );
            if row + 1 < inputs {
                self.factor[row * inputs + row] += self.lambda;
            }
        }
        cholesky(&mut self.factor, inputs);
        self.solution.clear();
        self.solution.extend(followed.iter().map(|&count| f64::from(count)));
        substitute(&self.factor, inputs, &mut self.solution, outputs);
    }
}

/// Overwrites the upper triangle of a positive definite matrix A by U with U'U = A.
fn cholesky(matrix: &mut [f64], size: usize) {
    for pivot in 0..size {
        let (done, below) = matrix.split_at_mut((pivot + 1) * size);
        let row = &mut done[pivot * size..];
        let scale = 1.0 / row[pivot].sqrt();
        row[pivot..].iter_mut().for_each(|value| *value *= scale);
        for (place, other) in (pivot + 1..size).zip(below.chunks_exact_mut(size)) {
            if row[place] != 0.0 {
                add(&mut other[place..], &row[place..], -row[place]);
            }
        }
    }
}

/// Solves U'U W = B, `[size][width]`, in place.
fn substitute(upper: &[f64], size: usize, solution: &mut [f64], width: usize) {
    for pivot in 0..size {
        let (done, below) = solution.split_at_mut((pivot + 1) * width);
        let row = &mut done[pivot * width..];
        let factors = &upper[pivot * size..(pivot + 1) * size];
        row.iter_mut().for_each(|value| *value /= factors[pivot]);
        for (place, other) in (pivot + 1..size).zip(below.chunks_exact_mut(width)) {
            if factors[place] != 0.0 {
                add(other, row, -factors[place]);
            }
        }
    }
    for pivot in (0..size).rev() {
        let (before, below) = solution.split_at_mut((pivot + 1) * width);
        let row = &mut before[pivot * width..];
        let factors = &upper[pivot * size..(pivot + 1) * size];
        for (place, other) in (pivot + 1..size).zip(below.chunks_exact(width)) {
            if factors[place] != 0.0 {
                add(row, other, -factors[place]);
            }
        }
        row.iter_mut().for_each(|value| *value /= factors[pivot]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's 4 12 -16 | 12 37 -43 | -16 -43 98 is U'U with U = 2 6 -8 | 1 5 | 3.
    #[test]
    fn cholesky_by_hand() {
        let mut matrix = [4.0, 12.0, -16.0, 12.0, 37.0, -43.0, -16.0, -43.0, 98.0];
        cholesky(&mut matrix, 3);
        let upper = [0, 1, 2, 4, 5, 8].map(|place| matrix[place]);
        assert_eq!(upper, [2.0, 6.0, -8.0, 1.0, 5.0, 3.0]);
        // W = (1, 2, 3) and (0, 1, 0): AW = (4 + 24 - 48, 12 + 74 - 129, -16 - 86 + 294).
        let mut solution = [-20.0, 12.0, -43.0, 37.0, 192.0, -43.0];
        substitute(&matrix, 3, &mut solution, 2);
        assert_eq!(solution, [1.0, 0.0, 2.0, 1.0, 3.0, 0.0]);
    }

    /// Three tokens with input 0 and output 0, three with input 1 and output 1, lambda 1. By
    /// symmetry the bias is 1/2 and the weights are w and -w with 3 (1/2 - w) = w: w = 3/8.
    #[test]
    fn a_fit_by_hand() {
        let mut ridge = Ridge::new(3, [2].into_iter());
        let mut solver = Solver::new(1.0);
        let mut scores = vec![9.0];
        ridge.scores(0, &[0, 2], &mut scores);
        assert_eq!(scores, []);
        for side in [0, 1, 0, 1, 0, 1] {
            ridge.learn(0, &[side as usize, 2], &[side]);
        }
        ridge.fit_all(&mut solver);
        ridge.scores(0, &[0, 2], &mut scores);
        assert!((scores[0] - 0.875).abs() < 1e-12 && (scores[1] - 0.125).abs() < 1e-12);
        // The bias alone, and an input that never was 1.
        ridge.scores(0, &[2], &mut scores);
        assert!((scores[0] - 0.5).abs() < 1e-12, "{scores:?}");
    }

    /// Fits at 65 tokens, at 130 (65 new, more than a quarter of 65), ..., at 65 * 5 = 325 (260/4 =
    /// 65 is not more than 65 new: one later, 326), then at 326 + 82 = 408 (81.5 < 82).
    #[test]
    fn fits_become_rarer() {
        let mut ridge = Ridge::new(2, [1].into_iter());
        let mut solver = Solver::new(1.0);
        let mut fits = Vec::new();
        for token in 1..=500 {
            ridge.learn(0, &[0, 1], &[0]);
            if ridge.is_stale(0) {
                ridge.fit(0, &mut solver);
                fits.push(token);
            }
        }
        assert_eq!(fits, [65, 130, 195, 260, 326, 408]);
    }
}
