//! Links and machines: built in by name, or out of files.

use hotset::cost_models::{
    Disk, Hardware, Link, MachineProfile, find_hardware, find_link, find_machine,
};

use hotset::planning::engine::{Engine, find_engine};

use std::path::Path;

use crate::fault::Fault;
use crate::input::read_text;
use crate::names::suggestion;
use crate::parse::profiles::{Kind, MOST_PROFILE_BYTES, read_as};

/// Links by name, of `machine` or built in; others as TOML files, a machine's giving all its links
/// or the one that is named behind a colon, `mine.toml:mine-pcie`.
pub fn links(texts: &[String], machine: Option<&MachineProfile>) -> Result<Vec<Link>, Fault> {
    let mut links = Vec::new();
    for text in texts {
        if let Some(link) = machine.and_then(|machine| machine.link(text)) {
            links.push(link.clone());
        } else if !text.ends_with(".toml") {
            links.push(link(text)?);
        } else {
            match profile(text)? {
                Profile::Link(link) => links.push(*link),
                Profile::Machine(machine) => links.extend(machine.links),
            }
        }
    }
    Ok(links)
}

/// What a profile's file holds.
pub enum Profile {
    /// One link.
    Link(Box<Link>),
    /// A machine with its links.
    Machine(Box<MachineProfile>),
}

/// What --link takes.
const LINK_FLAG: (&str, &[Kind]) = ("--link", &[Kind::Link, Kind::Links]);

/// Reads a profile: a machine's has a list of links.
pub fn profile(path: &str) -> Result<Profile, Fault> {
    let text = read_text(Path::new(path), MOST_PROFILE_BYTES)?;
    // Text that is no TOML at all is told of as a link's, with line and column.
    let table = text.parse::<toml::Table>().unwrap_or_default();
    Ok(if table.contains_key("links") {
        let read = MachineProfile::from_toml_path(path);
        Profile::Machine(Box::new(read_as(path, LINK_FLAG, read)?))
    } else {
        Profile::Link(Box::new(read_as(path, LINK_FLAG, Link::from_toml_path(path))?))
    })
}

/// A machine by name, or its profile.
pub fn machine(text: &str) -> Result<MachineProfile, Fault> {
    match text.ends_with(".toml") {
        true => read_as(text, ("--machine", &[Kind::Links]), MachineProfile::from_toml_path(text)),
        false => Ok(find_machine(text)?),
    }
}

/// A machine to plan for: a built-in name, several of one, or a file.
pub fn hardware(text: &str) -> Result<Hardware, Fault> {
    if !text.ends_with(".toml") {
        return find_hardware(text)
            .map_err(|error| Fault::Usage(format!("{error} ('hotset machines' lists all)")));
    }
    let read = Hardware::from_toml_path(text);
    if read.is_err() && profile(text).is_ok() {
        // What 'link fit' writes goes by the same ending.
        return Err(Fault::Usage(format!(
            "{text} is a profile of links, which says nothing of memory: give it as --link \
             {text}, and as --machine a built-in name or a file like the one in \
             docs/metrics.md (A machine of one's own)"
        )));
    }
    read_as(text, ("--machine", &[Kind::Hardware]), read)
}

/// An engine: a built-in name, a file, or `algorithm` for none.
pub fn engine(text: &str) -> Result<Option<Engine>, Fault> {
    match text {
        "algorithm" => Ok(None),
        file if file.ends_with(".toml") => {
            let read = Engine::from_toml_path(file);
            Ok(Some(read_as(file, ("--engine", &[Kind::Engine]), read)?))
        }
        name => Ok(Some(find_engine(name)?)),
    }
}

/// A disk: by name, by its rate, or its profile.
pub fn disk(text: &str) -> Result<Disk, Fault> {
    match text.ends_with(".toml") {
        true => read_as(text, ("--disk", &[Kind::Disk]), Disk::from_toml_path(text)),
        false => Ok(text.parse()?),
    }
}

/// One link: by name, a link's profile, or of a machine's profile the only one or the one named
/// behind a colon, `mine.toml:mine-pcie`.
pub fn link(text: &str) -> Result<Link, Fault> {
    let Some((path, name)) = profile_and_name(text) else { return Ok(find_link(text)?) };
    let machine = match (profile(path)?, name) {
        (Profile::Link(link), None) => return Ok(*link),
        (Profile::Link(link), Some(name)) if link.name == name => return Ok(*link),
        (Profile::Link(link), Some(name)) => {
            let only = &link.name;
            return Err(Fault::Usage(format!("{path} has the link {only} alone, and no '{name}'")));
        }
        (Profile::Machine(machine), _) => machine,
    };
    let found = match (name, &machine.links[..]) {
        (Some(name), _) => machine.link(name).cloned(),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = machine.links.iter().map(|link| link.name.as_str()).collect();
        let near = name.map(|name| suggestion(name, &names)).unwrap_or_default();
        let names = names.join(", ");
        Fault::Usage(format!("{path} has the links {names}: name one, {path}:NAME{near}"))
    })
}

/// `mine.toml:NAME` as the file and the name; nothing for what is no file.
pub fn profile_and_name(text: &str) -> Option<(&str, Option<&str>)> {
    if text.ends_with(".toml") {
        return Some((text, None));
    }
    let end = text.rfind(".toml:")? + ".toml".len();
    Some((&text[..end], Some(&text[end + 1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_profile_stands_behind_a_colon() {
        assert_eq!(profile_and_name("h200-pcie"), None);
        assert_eq!(profile_and_name("a/b.toml"), Some(("a/b.toml", None)));
        assert_eq!(profile_and_name("a.toml:x"), Some(("a.toml", Some("x"))));
        assert_eq!(profile_and_name("a.toml.d/b.toml:x"), Some(("a.toml.d/b.toml", Some("x"))));
    }
}
