//! How often guesses at each rank were right: a confidence for guessers that rank but do not score.

/// Guesses made and guesses right, by place.
#[derive(Debug, Clone)]
pub struct RankRecord {
    places: Vec<(u64, u64)>,
}

impl RankRecord {
    /// No guess yet at any of `places`.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: vec![(0, 0); places] }
    }

    /// A guess at a place turned out `right` or wrong.
    #[inline(always)]
    pub fn record(&mut self, place: usize, right: bool) {
        let (made, were_right) = &mut self.places[place];
        *made += 1;
        *were_right += u64::from(right);
    }

    /// The share of the guesses at a place that were right, 0 before the first.
    #[must_use]
    #[inline(always)]
    pub fn share(&self, place: usize) -> f32 {
        let (made, right) = self.places[place];
        (right as f64 / made.max(1) as f64) as f32
    }
}
