//! `hotset completions` and `hotset man`: what a shell and `man` know of the commands.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::generate;
use clap_mangen::Man;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::fault::{Ending, Fault};
use crate::output::{give_text, write_whole};

/// Gives the script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<Ending, Fault> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "hotset", &mut script);
    give_text(&String::from_utf8_lossy(&script), args.output.as_deref())?;
    Ok(Ending::Passed)
}

/// Writes a page a command.
pub fn man(args: &ManArgs) -> Result<Ending, Fault> {
    let told = |reason| Fault::Write { path: args.folder.display().to_string(), reason };
    std::fs::create_dir_all(&args.folder).map_err(told)?;
    let mut command = Cli::command();
    command.build();
    pages(&command, "hotset", &args.folder)?;
    Ok(Ending::Passed)
}

/// The page of a command, named `hotset-trace-import`, and those of the commands below it.
fn pages(command: &Command, name: &str, folder: &Path) -> Result<(), Fault> {
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    let told = |reason| Fault::Write { path: path.display().to_string(), reason };
    // With the date of the day a page would be other bytes every day.
    let source = concat!("hotset ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone())
        .title(name)
        .date("")
        .source(source)
        .render(&mut page)
        .map_err(told)?;
    write_whole(&path, &page)?;
    let below =
        command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    for one in below {
        pages(one, &format!("{name}-{}", one.get_name()), folder)?;
    }
    Ok(())
}
