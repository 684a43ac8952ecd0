//! A scene as SVG: paths alone, so that no viewer's font matters.

use std::fmt::Write as _;

use super::scene::{Ink, Scene, Step};
use crate::html::escape;

/// The file. Writing into a text does not fail.
pub(super) fn write(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(&scene.title)
    );
    for path in &scene.paths {
        svg.push_str("<path d=\"");
        for step in &path.steps {
            let _ = match step {
                Step::Move(to) => write!(svg, "M{}", point(to)),
                Step::Line(to) => write!(svg, "L{}", point(to)),
                Step::Curve(one, other, to) => {
                    write!(svg, "C{} {} {}", point(one), point(other), point(to))
                }
                Step::Close => write!(svg, "Z"),
            };
        }
        let [red, green, blue] = path.colour;
        let colour = format!("#{red:02x}{green:02x}{blue:02x}");
        let _ = match path.ink {
            Ink::Fill => writeln!(svg, "\" fill=\"{colour}\"/>"),
            Ink::Stroke(width, []) => {
                writeln!(svg, "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>")
            }
            Ink::Stroke(width, dash) => {
                let dash: Vec<String> = dash.iter().map(f64::to_string).collect();
                let dash = dash.join(" ");
                writeln!(
                    svg,
                    "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"/>"
                )
            }
        };
    }
    svg.push_str("</svg>\n");
    svg
}

fn point([x, y]: &[f64; 2]) -> String {
    format!("{} {}", hundredths(*x), hundredths(*y))
}

/// Rounded, without zeros behind.
fn hundredths(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}
