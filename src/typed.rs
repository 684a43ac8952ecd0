//! What was typed: the arguments of a command that came from the command line, as they stood there.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Its field.
    pub id: String,
    /// Its flag; none for what has a place.
    pub flag: Option<String>,
    /// Its values; none for a switch.
    pub values: Vec<String>,
}

/// The typed arguments of the command that runs, in the order of its help.
pub fn typed(command: &Command, matches: &ArgMatches) -> Vec<Typed> {
    if let Some((name, below)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return typed(command, below);
    }
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let arguments = command.get_arguments().filter(|of| given(of.get_id().as_str()));
    arguments
        .map(|argument| {
            let id = argument.get_id().as_str();
            let raw = matches.get_raw(id).into_iter().flatten();
            let takes = argument.get_action().takes_values();
            let values = raw.map(|value| value.to_string_lossy().into_owned());
            Typed {
                id: id.to_owned(),
                flag: argument.get_long().map(|long| format!("--{long}")),
                values: if takes { values.collect() } else { Vec::new() },
            }
        })
        .collect()
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_break_them() {
        assert_eq!(quoted("balanced:fetch=0.5,order=lowest"), "balanced:fetch=0.5,order=lowest");
        assert_eq!(quoted("my trace.hst"), "'my trace.hst'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
