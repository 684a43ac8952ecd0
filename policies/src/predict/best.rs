//! The best of many scores.

use super::Guess;

/// Appends to `guesses` the at most `width` experts with the largest positive scores, best first,
/// ties to the lower expert. A guess's confidence is its score times `scale`.
#[inline]
pub fn best(scores: &[f64], width: usize, scale: f64, guesses: &mut Vec<Guess>) {
    let start = guesses.len();
    let mut least = 0.0;
    let candidates = scores.iter().enumerate().filter(|_| width > 0);
    for (expert, &score) in candidates {
        // (Written so that what is not a number is left out.)
        let better = score > least;
        if !better {
            continue;
        }
        if guesses.len() - start == width {
            guesses.pop();
        }
        // Equal scores keep their order, so the lower expert stays before.
        let confidence = (score * scale) as f32;
        let mut place = guesses.len();
        while place > start && scores[guesses[place - 1].expert as usize] < score {
            place -= 1;
        }
        guesses.insert(place, Guess { expert: expert as u32, confidence });
        if guesses.len() - start == width {
            least = scores[guesses[guesses.len() - 1].expert as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experts(scores: &[f64], width: usize) -> Vec<u32> {
        let mut guesses = vec![Guess { expert: 99, confidence: 1.0 }];
        best(scores, width, 1.0, &mut guesses);
        guesses[1..].iter().map(|guess| guess.expert).collect()
    }

    #[test]
    fn the_largest_come_first_and_ties_go_to_the_lower_expert() {
        assert_eq!(experts(&[0.1, 0.5, 0.3, 0.5, 0.0], 3), [1, 3, 2]);
        assert_eq!(experts(&[0.5, 0.5, 0.5], 2), [0, 1]);
        assert_eq!(experts(&[0.0, -1.0, 0.0, 0.25], 8), [3]);
        assert_eq!(experts(&[1.0], 0), [0; 0]);
        assert_eq!(experts(&[f64::NAN, 1.0], 2), [1]);
    }
}
