//! A scene as PNG, two pixels a unit.

use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use super::PlotError;
use super::scene::{Ink, Scene, Step};

const SCALE: f64 = 2.0;
/// No side is longer, in pixels.
const LONGEST: f64 = 16_384.0;

/// The file.
pub(super) fn write(scene: &Scene) -> Result<Vec<u8>, PlotError> {
    let (width, height) = ((scene.width * SCALE).ceil(), (scene.height * SCALE).ceil());
    let too_large = || PlotError::TooLarge { width, height };
    if width > LONGEST || height > LONGEST {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    pixels.fill(tiny_skia::Color::WHITE);
    let transform = Transform::from_scale(SCALE as f32, SCALE as f32);
    for path in &scene.paths {
        let mut builder = PathBuilder::new();
        for step in &path.steps {
            match step {
                Step::Move([x, y]) => builder.move_to(*x as f32, *y as f32),
                Step::Line([x, y]) => builder.line_to(*x as f32, *y as f32),
                Step::Curve([a, b], [c, d], [x, y]) => {
                    builder
                        .cubic_to(*a as f32, *b as f32, *c as f32, *d as f32, *x as f32, *y as f32);
                }
                Step::Close => builder.close(),
            }
        }
        // A path without a length draws nothing.
        let Some(drawn) = builder.finish() else { continue };
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        let [red, green, blue] = path.colour;
        paint.set_color_rgba8(red, green, blue, 255);
        match path.ink {
            Ink::Fill => pixels.fill_path(&drawn, &paint, FillRule::Winding, transform, None),
            Ink::Stroke(width, dash) => {
                let dash: Vec<f32> = dash.iter().map(|&length| length as f32).collect();
                let stroke = Stroke {
                    width: width as f32,
                    line_cap: LineCap::Butt,
                    line_join: LineJoin::Miter,
                    dash: StrokeDash::new(dash, 0.0),
                    ..Stroke::default()
                };
                pixels.stroke_path(&drawn, &paint, &stroke, transform, None);
            }
        }
    }
    pixels.encode_png().map_err(|_| too_large())
}
