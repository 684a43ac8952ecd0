//! The command line's own description, from which the package makes its functions and their help.

use clap::{Arg, ArgAction};
use hotset::host::command;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::refused;

/// flags(command): the arguments of a command such as ['link', 'fit'], a dict each.
#[pyfunction]
pub fn flags<'py>(py: Python<'py>, command: Vec<String>) -> PyResult<Bound<'py, PyList>> {
    let mut at = self::command();
    at.build();
    for word in &command {
        let below = at.find_subcommand(word).cloned();
        at = below.ok_or_else(|| refused(format!("there is no command '{word}'")))?;
    }
    let listed = PyList::empty(py);
    for arg in at.get_arguments() {
        if arg.get_id() != "help" && arg.get_id() != "version" {
            listed.append(described(py, arg)?)?;
        }
    }
    Ok(listed)
}

fn described<'py>(py: Python<'py>, arg: &Arg) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("id", arg.get_id().as_str())?;
    described.set_item("long", arg.get_long())?;
    described.set_item("help", arg.get_help().map(ToString::to_string))?;
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    described.set_item("default", defaults.collect::<Vec<_>>().join(","))?;
    described.set_item("required", arg.is_required_set())?;
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    described.set_item("takes_value", takes)?;
    described.set_item("delimited", arg.get_value_delimiter().is_some())?;
    described.set_item("repeated", matches!(arg.get_action(), ArgAction::Append))?;
    let values = arg.get_possible_values();
    let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
    described.set_item("values", values)?;
    described.set_item(
        "value_name",
        arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str()),
    )?;
    Ok(described)
}
