//! Curves in panels, a column a link and a row a phase and scope, with one legend below.

use super::axis::Axis;
use super::columns_of;
use super::font::{Anchor, Font, Style};
use super::scene::{Colour, Scene};
use crate::{Cell, Page, Shape, Sheet, one_line};

/// Told apart by colour-blind readers too (Okabe and Ito), and by dashes and marks.
const COLOURS: [Colour; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [80, 80, 80],
];
const DASHES: [&[f64]; 4] = [&[], &[6.0, 3.0], &[2.0, 2.0], &[8.0, 3.0, 2.0, 3.0]];
const INK: Colour = [30, 30, 30];
const GRID: Colour = [222, 222, 222];

/// A panel's inner size, and what stands around it.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 18.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 46.0;
const SIZE: f64 = 11.0;

/// What is drawn.
pub(super) struct Curves {
    title: String,
    /// Names of the axes.
    along: String,
    up: String,
    series: Vec<String>,
    panels: Vec<Panel>,
    /// Panels beside each other.
    columns: usize,
}

struct Panel {
    title: String,
    /// By series.
    lines: Vec<Vec<[f64; 2]>>,
}

/// The curves of a page's first picture of lines, and their rows.
pub(super) fn curves(page: &Page) -> Option<(Curves, Sheet)> {
    let (figure, x, y, series) = page.figures.iter().find_map(|figure| match &figure.shape {
        Shape::Lines { x, y, series, .. } => Some((figure, *x.first()?, *y.first()?, *series)),
        _ => None,
    })?;
    let data = page.data.iter().find(|data| data.name == figure.data)?;
    let rows = columns_of(&data.sheet, &[&data.switches[..], &[series, x, y]].concat())?;
    let switches = data.switches.len();
    let heading = |at: usize| one_line(&rows.columns[switches + at].heading);
    let mut curves = Curves {
        title: one_line(&page.title),
        along: heading(1),
        up: heading(2),
        series: Vec::new(),
        panels: Vec::new(),
        columns: 1,
    };
    let mut links: Vec<String> = Vec::new();
    for row in &rows.rows {
        let (Some(x), Some(y)) = (number(&row[switches + 1]), number(&row[switches + 2])) else {
            continue;
        };
        let of: Vec<String> = row[..switches]
            .iter()
            .filter(|cell| **cell != Cell::Empty)
            .map(|cell| one_line(&cell.for_people()))
            .collect();
        if let Some(last) = of.last()
            && !links.contains(last)
        {
            links.push(last.clone());
        }
        let at = place_of(&mut curves.series, one_line(&row[switches].for_people()));
        let title = of.join(", ");
        let panel = match curves.panels.iter().position(|panel| panel.title == title) {
            Some(known) => known,
            None => {
                curves.panels.push(Panel { title, lines: Vec::new() });
                curves.panels.len() - 1
            }
        };
        let lines = &mut curves.panels[panel].lines;
        lines.resize(lines.len().max(at + 1), Vec::new());
        lines[at].push([x, y]);
    }
    for line in curves.panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        line.sort_by(|one, other| one[0].total_cmp(&other[0]));
    }
    curves.columns = links.len().clamp(1, 3);
    (!curves.panels.is_empty()).then_some((curves, rows))
}

fn place_of(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn number(cell: &Cell) -> Option<f64> {
    let value = match cell {
        Cell::Count(count) => *count as f64,
        Cell::Number(value, _) => *value,
        Cell::Text(_) | Cell::Empty => return None,
    };
    value.is_finite().then_some(value)
}

const fn style(anchor: Anchor) -> Style {
    Style { size: SIZE, colour: INK, anchor, up: false }
}

/// Panels from the left and from above, then the legend.
pub(super) fn draw(curves: &Curves) -> Scene {
    let font = Font::new();
    let (across, down) = (LEFT + WIDTH + RIGHT, ABOVE + HEIGHT + BELOW);
    let columns = curves.columns.min(curves.panels.len());
    let rows = curves.panels.len().div_ceil(columns);
    let width = across * columns as f64;
    let (lines, places) = legend(&font, &curves.series, width);
    let top = down * rows as f64;
    let height = top + 8.0 + 18.0 * lines as f64;
    let mut scene = Scene { width, height, title: curves.title.clone(), paths: Vec::new() };
    for (index, panel) in curves.panels.iter().enumerate() {
        let at = [across * (index % columns) as f64, down * (index / columns) as f64];
        self::panel(&mut scene, &font, curves, panel, at);
    }
    for (index, (name, [x, y])) in curves.series.iter().zip(places).enumerate() {
        let y = top + 10.0 + y;
        let (colour, dash) = look(index);
        scene.line(&[[x, y - 4.0], [x + 26.0, y - 4.0]], colour, 1.8, dash);
        scene.mark(index, [x + 13.0, y - 4.0], colour);
        font.write(&mut scene, name, [x + 32.0, y], &style(Anchor::Start));
    }
    scene
}

fn look(index: usize) -> (Colour, &'static [f64]) {
    let round = index / COLOURS.len();
    (COLOURS[index % COLOURS.len()], DASHES[(index + round) % DASHES.len()])
}

/// How many lines the names take, and where each begins.
fn legend(font: &Font, names: &[String], width: f64) -> (usize, Vec<[f64; 2]>) {
    let (mut x, mut line) = (LEFT, 0);
    let mut places = Vec::new();
    for name in names {
        let wide = 32.0 + font.width(name, SIZE) + 16.0;
        if x + wide > width && x > LEFT {
            (x, line) = (LEFT, line + 1);
        }
        places.push([x, 18.0 * line as f64]);
        x += wide;
    }
    (line + 1, places)
}

fn panel(scene: &mut Scene, font: &Font, curves: &Curves, panel: &Panel, [left, top]: [f64; 2]) {
    let points = || panel.lines.iter().flatten();
    let along = Axis::over(points().map(|point| point[0]), true, 6);
    let up = Axis::over(points().map(|point| point[1]), true, 5);
    let (left, top) = (left + LEFT, top + ABOVE);
    let place =
        |[x, y]: [f64; 2]| [left + along.place(x) * WIDTH, top + (1.0 - up.place(y)) * HEIGHT];
    let [first_x, first_y] = [along.ticks[0], up.ticks[0]];
    for &tick in &up.ticks {
        let [x, y] = place([first_x, tick]);
        scene.line(&[[x, y], [x + WIDTH, y]], GRID, 0.6, &[]);
        font.write(scene, &up.text(tick), [x - 6.0, y + 4.0], &style(Anchor::End));
    }
    for &tick in &along.ticks {
        let [x, y] = place([tick, first_y]);
        scene.line(&[[x, y], [x, y + 4.0]], INK, 0.8, &[]);
        font.write(scene, &along.text(tick), [x, y + 16.0], &style(Anchor::Middle));
    }
    let corner = [left, top + HEIGHT];
    scene.line(&[[left, top], corner, [left + WIDTH, top + HEIGHT]], INK, 0.8, &[]);
    for (index, line) in panel.lines.iter().enumerate() {
        let (colour, dash) = look(index);
        let line: Vec<[f64; 2]> = line.iter().map(|&point| place(point)).collect();
        scene.line(&line, colour, 1.6, dash);
        line.iter().for_each(|&point| scene.mark(index, point, colour));
    }
    let middle = left + WIDTH / 2.0;
    font.write(scene, &panel.title, [middle, top - 10.0], &style(Anchor::Middle));
    font.write(scene, &curves.along, [middle, top + HEIGHT + 33.0], &style(Anchor::Middle));
    let beside = Style { up: true, ..style(Anchor::Middle) };
    font.write(scene, &curves.up, [left - 44.0, top + HEIGHT / 2.0], &beside);
}
