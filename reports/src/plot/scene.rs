//! What is drawn, before it has a format: paths with a colour.

/// A colour, red, green and blue.
pub(super) type Colour = [u8; 3];

/// A step along a path, in units from the left and from above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Move([f64; 2]),
    Line([f64; 2]),
    Curve([f64; 2], [f64; 2], [f64; 2]),
    Close,
}

/// How a path is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ink {
    Fill,
    /// So wide, broken into dashes and gaps if there are any.
    Stroke(f64, &'static [f64]),
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub steps: Vec<Step>,
    pub colour: Colour,
    pub ink: Ink,
}

/// A picture; its ground is white.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    pub width: f64,
    pub height: f64,
    /// What it shows, for those who do not see it.
    pub title: String,
    pub paths: Vec<Path>,
}

impl Scene {
    /// A line through these points.
    pub fn line(&mut self, points: &[[f64; 2]], colour: Colour, width: f64, dash: &'static [f64]) {
        let steps = points.iter().enumerate().map(|(index, &point)| match index {
            0 => Step::Move(point),
            _ => Step::Line(point),
        });
        self.paths.push(Path { steps: steps.collect(), colour, ink: Ink::Stroke(width, dash) });
    }

    /// A mark of the kind of this number around a point.
    pub fn mark(&mut self, kind: usize, [x, y]: [f64; 2], colour: Colour) {
        let r = 3.0;
        let corners: Vec<[f64; 2]> = match kind % 5 {
            0 => return self.circle([x, y], r, colour),
            1 => vec![[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]],
            2 => vec![[x, y - r * 1.3], [x + r * 1.2, y + r], [x - r * 1.2, y + r]],
            3 => vec![[x, y - r * 1.4], [x + r * 1.4, y], [x, y + r * 1.4], [x - r * 1.4, y]],
            _ => vec![[x, y + r * 1.3], [x + r * 1.2, y - r], [x - r * 1.2, y - r]],
        };
        let mut steps = vec![Step::Move(corners[0])];
        steps.extend(corners[1..].iter().map(|&corner| Step::Line(corner)));
        steps.push(Step::Close);
        self.paths.push(Path { steps, colour, ink: Ink::Fill });
    }

    fn circle(&mut self, [x, y]: [f64; 2], r: f64, colour: Colour) {
        // Four curves, each a quarter to a thousandth of the radius.
        let k = r * 0.552_284_75;
        let steps = vec![
            Step::Move([x + r, y]),
            Step::Curve([x + r, y + k], [x + k, y + r], [x, y + r]),
            Step::Curve([x - k, y + r], [x - r, y + k], [x - r, y]),
            Step::Curve([x - r, y - k], [x - k, y - r], [x, y - r]),
            Step::Curve([x + k, y - r], [x + r, y - k], [x + r, y]),
            Step::Close,
        ];
        self.paths.push(Path { steps, colour, ink: Ink::Fill });
    }
}
