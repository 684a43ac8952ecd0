//! How well a fit fits, for a person to judge.
//!
//! Every part of a fitted profile comes with its residuals: how many points it saw and how far it is from them.

use std::fmt;

/// Relative errors, 0.01 for one percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Half the points are nearer than this.
    pub median: f64,
    /// The farthest point.
    pub max: f64,
}

impl Errors {
    /// Of absolute relative errors; zero when there are none.
    pub(super) fn of(mut errors: Vec<f64>) -> Self {
        errors.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| errors.get(index).copied().unwrap_or(0.0);
        let middle = errors.len() / 2;
        let median = if errors.len() % 2 == 1 {
            at(middle)
        } else {
            (at(middle.saturating_sub(1)) + at(middle)) / 2.0
        };
        Self { median, max: errors.last().copied().unwrap_or(0.0) }
    }
}

/// Half the points this far off, or one that far, are more than what repeats of a measurement differ by.
const DOUBTFUL: Errors = Errors { median: 0.1, max: 0.5 };

impl Errors {
    /// What a person must hear of a fit of `what` that is far from its points.
    pub(super) fn doubt(&self, what: &str) -> Option<String> {
        let doubtful = self.median > DOUBTFUL.median || self.max > DOUBTFUL.max;
        doubtful.then(|| {
            format!(
                "{what} fits badly: half of the points are {:.0}% off or more, the worst {:.0}%; measure again \
                 with nothing else running, or say less than this profile does",
                100.0 * self.median,
                100.0 * self.max
            )
        })
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "median {:.2}%, max {:.2}%", 100.0 * self.median, 100.0 * self.max)
    }
}

/// How far one part of the model is from what it was fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The link.
    pub link: String,
    /// The mode, as in the file.
    pub mode: String,
    /// Points (medians of repeats) that were fitted.
    pub points: usize,
    /// The model at those points.
    pub at_points: Errors,
    /// Each inner size predicted from its neighbours; `None` where there are too few.
    pub left_out: Option<Errors>,
}

impl fmt::Display for Residual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link, mode, points, at_points, .. } = self;
        write!(f, "{link:<16} {mode:<22} {points:>4} points: {at_points}")?;
        match &self.left_out {
            Some(errors) => write!(f, "; left out: {errors}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_maxima() {
        assert_eq!(Errors::of(vec![0.3, 0.1, 0.2]), Errors { median: 0.2, max: 0.3 });
        assert_eq!(Errors::of(vec![0.25, 0.75]), Errors { median: 0.5, max: 0.75 });
        assert_eq!(Errors::of(vec![]), Errors { median: 0.0, max: 0.0 });
    }

    #[test]
    fn a_fit_far_from_its_points_is_doubted() {
        let doubt = |median, max| Errors { median, max }.doubt("the disk");
        assert_eq!((doubt(0.1, 0.5), doubt(0.0, 0.0)), (None, None));
        let told = doubt(0.2, 0.3).unwrap();
        assert!(told.contains("the disk fits badly: half of the points are 20% off"), "{told}");
        assert!(doubt(0.0, 0.51).unwrap().contains("the worst 51%"));
    }

    #[test]
    fn a_line_for_a_person() {
        let residual = Residual {
            link: "pcie".into(),
            mode: "pinned-h2d".into(),
            points: 7,
            at_points: Errors { median: 0.0, max: 0.0125 },
            left_out: None,
        };
        assert_eq!(
            residual.to_string(),
            "pcie             pinned-h2d                7 points: median 0.00%, max 1.25%"
        );
    }
}
