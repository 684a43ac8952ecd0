//! Letters as outlines, of a font that is built in.

use ttf_parser::{Face, OutlineBuilder};

use super::scene::{Colour, Ink, Path, Scene, Step};

const BYTES: &[u8] = include_bytes!("../../assets/font/DejaVuSans-latin.ttf");

/// Where a text stands beside its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The font; without it (it is built in, and a test reads it) nothing is written.
pub(super) struct Font(Option<Face<'static>>);

impl Font {
    pub fn new() -> Self {
        Self(Face::parse(BYTES, 0).ok())
    }

    /// How wide a text is in this size.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        let Some(face) = &self.0 else { return 0.0 };
        let units: u64 = text.chars().map(|c| advance(face, c)).sum();
        units as f64 * size / f64::from(face.units_per_em())
    }

    /// Draws a text on the line through `at`; `up`: from below to above.
    pub fn write(&self, scene: &mut Scene, text: &str, at: [f64; 2], style: &Style) {
        let Some(face) = &self.0 else { return };
        let scale = style.size / f64::from(face.units_per_em());
        let width = self.width(text, style.size);
        let before = match style.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let mut pen = Pen { steps: Vec::new(), at, along: -before, scale, up: style.up };
        for c in text.chars() {
            face.outline_glyph(glyph(face, c), &mut pen);
            pen.along += advance(face, c) as f64 * scale;
        }
        if !pen.steps.is_empty() {
            scene.paths.push(Path { steps: pen.steps, colour: style.colour, ink: Ink::Fill });
        }
    }
}

/// How a text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub size: f64,
    pub colour: Colour,
    pub anchor: Anchor,
    pub up: bool,
}

/// What the font lacks is shown as a box with a question mark, or as nothing.
fn glyph(face: &Face<'_>, c: char) -> ttf_parser::GlyphId {
    let known = face.glyph_index(c).or_else(|| face.glyph_index('\u{fffd}'));
    known.unwrap_or(ttf_parser::GlyphId(0))
}

fn advance(face: &Face<'_>, c: char) -> u64 {
    face.glyph_hor_advance(glyph(face, c)).unwrap_or(0).into()
}

struct Pen {
    steps: Vec<Step>,
    at: [f64; 2],
    /// Along the line, from `at`.
    along: f64,
    scale: f64,
    up: bool,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> [f64; 2] {
        let along = self.along + f64::from(x) * self.scale;
        let above = f64::from(y) * self.scale;
        match self.up {
            false => [self.at[0] + along, self.at[1] - above],
            true => [self.at[0] - above, self.at[1] - along],
        }
    }

    fn last(&self) -> [f64; 2] {
        match self.steps.last() {
            Some(Step::Move(point) | Step::Line(point) | Step::Curve(_, _, point)) => *point,
            _ => self.at,
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.steps.push(Step::Move(self.place(x, y)));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.steps.push(Step::Line(self.place(x, y)));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (from, middle, to) = (self.last(), self.place(x1, y1), self.place(x, y));
        // The same curve with two handles: each two thirds of the way to the one.
        let handle = |end: [f64; 2]| [0, 1].map(|i| end[i] + (middle[i] - end[i]) * 2.0 / 3.0);
        self.steps.push(Step::Curve(handle(from), handle(to), to));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.steps.push(Step::Curve(self.place(x1, y1), self.place(x2, y2), self.place(x, y)));
    }

    fn close(&mut self) {
        self.steps.push(Step::Close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_is_there() {
        let font = Font::new();
        // DejaVu Sans: a digit is 1303 of 2048 units wide, as all digits are.
        assert_eq!(font.width("0", 2048.0), 1303.0);
        assert_eq!(font.width("2026", 2048.0), 4.0 * 1303.0);
        assert!(font.width("\u{6a21}", 10.0) > 0.0);
    }
}
