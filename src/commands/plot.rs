//! The picture of a comparison or a sweep, and its rows beside it.

use std::path::Path;

use hotset::reports::{Output, PlotFormat, plot};

use crate::fault::Fault;
use crate::interrupt;
use crate::output::{beside, write_whole};

/// Why `replay` and `advise`, whose flags are a comparison's, draw nothing.
pub const NO_CURVE: &str =
    "--plot draws curves over capacities: 'hotset compare' and 'hotset sweep' take it";

/// Draws what `--plot` asks for.
pub fn give(output: &Output, path: Option<&Path>) -> Result<(), Fault> {
    let (Some(path), Some(page)) = (path, &output.page) else { return Ok(()) };
    if interrupt::requested() {
        return Err(Fault::Interrupted);
    }
    let pixels = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png"));
    let drawn = plot(page, if pixels { PlotFormat::Png } else { PlotFormat::Svg })?;
    write_whole(path, &drawn.picture)?;
    write_whole(&beside(path.as_os_str()), drawn.data.as_bytes())
}
