//! The native half of the Python package `hotset`: traces, the cache, and the command line in this
//! process. What people see of it is in `hotset/*.py`.

mod arrays;
mod cache;
mod errors;
mod flags;
mod foreign;
mod ids;
mod plan;
mod run;
mod trace;

use pyo3::prelude::*;

/// hotset's native half; import `hotset`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HotsetError", module.py().get_type::<errors::HotsetError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<trace::Trace>()?;
    module.add_class::<cache::ExpertCache>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<foreign::Pool>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::make_trace, module)?)?;
    module.add_function(wrap_pyfunction!(flags::flags, module)?)?;
    module.add_function(wrap_pyfunction!(scenarios, module)?)?;
    Ok(())
}

/// scenarios(): the scenario files, (name, text) each.
#[pyfunction]
fn scenarios() -> PyResult<Vec<(String, String)>> {
    let files = hotset::scenario::reference_files().map_err(errors::refused)?;
    Ok(files.into_iter().map(|(name, file)| (name, file.text())).collect())
}
