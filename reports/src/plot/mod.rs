//! A page's curves as a file for papers: a panel a phase and link, in SVG or PNG.
//!
//! Letters are drawn as outlines of a font that is built in, and coordinates are rounded to
//! hundredths: a picture is the same bytes on every machine, and looks the same in every viewer.

mod axis;
mod font;
mod panels;
mod png;
mod scene;
mod svg;

use thiserror::Error;

use crate::{Page, Sheet, csv_export};

/// A format of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotFormat {
    /// Lines and outlines, of any size.
    Svg,
    /// Pixels, two of them a unit of the SVG.
    Png,
}

/// A picture and what it is drawn of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// The file.
    pub picture: Vec<u8>,
    /// Its rows as CSV.
    pub data: String,
}

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum PlotError {
    /// The page has no curves.
    #[error("nothing is there to plot: no policy has a cost at any size")]
    Nothing,
    /// More panels or series than a picture can hold.
    #[error("a picture of {width} x {height} is too large: ask for fewer links or policies")]
    TooLarge {
        /// Its width in pixels.
        width: f64,
        /// Its height in pixels.
        height: f64,
    },
    /// The rows cannot be written.
    #[error(transparent)]
    Data(#[from] crate::RenderError),
}

/// The page's first picture of lines, with its first axes.
///
/// # Errors
/// [`PlotError`].
pub fn plot(page: &Page, format: PlotFormat) -> Result<Plot, PlotError> {
    let (curves, sheet) = panels::curves(page).ok_or(PlotError::Nothing)?;
    let scene = panels::draw(&curves);
    let picture = match format {
        PlotFormat::Svg => svg::write(&scene).into_bytes(),
        PlotFormat::Png => png::write(&scene)?,
    };
    Ok(Plot { picture, data: csv_export::render(&sheet)? })
}

/// Those columns of a sheet, in this order.
fn columns_of(sheet: &Sheet, names: &[&str]) -> Option<Sheet> {
    let place = |name: &&str| sheet.columns.iter().position(|column| column.name == **name);
    let places: Vec<usize> = names.iter().map(place).collect::<Option<_>>()?;
    let mut kept = Sheet::new("", places.iter().map(|&at| sheet.columns[at].clone()).collect());
    kept.rows =
        sheet.rows.iter().map(|row| places.iter().map(|&at| row[at].clone()).collect()).collect();
    Some(kept)
}
