//! Machines as TOML files.
//!
//! Each figure is a table with its value in a unit of its own choosing, its basis and its source, or a short text; the
//! link is a built-in one by name, a bandwidth, or a slot of PCI Express. `base` takes everything that is not said from
//! a built-in machine, so that a file of one's own may be three lines. All that is wrong is told at once.

use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::figures::{self, Compute, Rate, Readable, Share, Size, bytes_a_second, sourced};
use super::host::HostSpec;
use super::pcie::Slot;
use super::{Basis, Figure, Hardware, tables};
use crate::builtin::find_link;
use crate::error::ProfileError;
use crate::link::{Link, LinkKind, ps_per_mib};

const MAX_ACCELERATORS: u32 = 1024;

/// Every key that a file may have.
const FIELDS: [&str; 23] = [
    "base",
    "name",
    "description",
    "accelerators",
    "accelerators_per_host",
    "unified",
    "memory",
    "usable_share",
    "host_memory",
    "host_reserved",
    "context",
    "memory_rate",
    "host_rate",
    "disk_rate",
    "peer_rate",
    "host_kernel_rate",
    "compute",
    "architecture",
    "link",
    "profile",
    "host",
    "disk",
    "pcie",
];

/// A built-in link, a bandwidth, or a slot.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkChoice {
    name: Option<String>,
    kind: Option<LinkKind>,
    gib_s: Option<f64>,
    gb_s: Option<f64>,
    source: Option<String>,
}

impl Hardware {
    /// From the text of a TOML file.
    ///
    /// ```
    /// use hotset_cost_models::Hardware;
    ///
    /// let own = Hardware::from_toml_str("base = \"rtx-4090\"\nhost = \"ddr5-6000x2:96GB\"\ndisk = \"14GB/s\"")?;
    /// assert_eq!((own.host_memory.value, own.host_rate.value), (96_000_000_000, 96_000_000_000));
    /// assert_eq!(own.name, "rtx-4090");
    /// # Ok::<(), hotset_cost_models::ProfileError>(())
    /// ```
    ///
    /// # Errors
    /// [`ProfileError`] when the text is not TOML or some values are impossible: all of them are told.
    pub fn from_toml_str(text: &str) -> Result<Self, ProfileError> {
        parse(text, "(text)")
    }

    /// From a TOML file.
    ///
    /// # Errors
    /// [`ProfileError`], as [`Hardware::from_toml_str`], or when the file cannot be read.
    pub fn from_toml_path(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = crate::read_profile(path)?;
        parse(&text, &path.display().to_string())
    }
}

fn parse(text: &str, origin: &str) -> Result<Hardware, ProfileError> {
    let table: Table = toml::from_str(text)
        .map_err(|source| ProfileError::Toml { origin: origin.into(), source: Box::new(source) })?;
    from_table(table, origin)
}

/// A machine from a table of these fields.
pub(super) fn from_table(table: Table, origin: &str) -> Result<Hardware, ProfileError> {
    let named = table.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
    let origin = named.map_or_else(|| origin.to_owned(), str::to_owned);
    let mut fields = Fields { table, origin, faults: Vec::new(), incomplete: false };
    fields.unknown();
    fields.expand();
    fields.base();
    let hardware = fields.hardware();
    match (hardware, fields.faults.is_empty()) {
        (Some(hardware), true) => Ok(hardware),
        _ => Err(ProfileError::faults(&fields.origin, fields.faults)),
    }
}

/// A table that is read field by field, and what was wrong with them.
struct Fields {
    table: Table,
    origin: String,
    faults: Vec<String>,
    /// What stands for several figures could not be read: those are not missing too.
    incomplete: bool,
}

impl Fields {
    fn unknown(&mut self) {
        for key in self.table.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
            let near = hotset_names::suggestion(hotset_names::nearest(key, FIELDS));
            self.faults.push(format!("unknown field `{key}`{near}"));
        }
    }

    /// Writes out what stands for several figures.
    fn expand(&mut self) {
        if let Some(text) = self.text("host") {
            match text.parse::<HostSpec>() {
                Ok(host) => {
                    self.table.insert("host_rate".into(), host.rate_value());
                    if let Some(memory) = host.memory_value() {
                        self.table.insert("host_memory".into(), memory);
                    }
                }
                Err(error) => self.unread(format!("host {error}")),
            }
        }
        if let Some(disk) = self.table.remove("disk") {
            self.table.insert("disk_rate".into(), disk);
        }
        if let Some(text) = self.text("pcie") {
            match text.parse::<Slot>() {
                Ok(slot) => drop(self.table.insert("link".into(), slot.link_value())),
                Err(error) => self.unread(format!("pcie {error}")),
            }
        }
    }

    /// Takes what is not given from the machine named as base.
    fn base(&mut self) {
        let Some(name) = self.text("base") else { return };
        match tables::find_table(&name) {
            Ok(base) => {
                for (key, value) in base {
                    self.table.entry(key).or_insert(value);
                }
            }
            Err(error) => self.unread(format!("base: {error}")),
        }
    }

    fn unread(&mut self, fault: String) {
        self.faults.push(fault);
        self.incomplete = true;
    }

    fn take<T>(&mut self, field: &str, read: impl FnOnce(Value) -> Result<T, String>) -> Option<T> {
        let value = self.table.remove(field)?;
        read(value).map_err(|fault| self.faults.push(fault)).ok()
    }

    fn text(&mut self, field: &str) -> Option<String> {
        self.take(field, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(format!("{field} is {other}, must be a text")),
        })
    }

    fn figure<T: Readable>(&mut self, field: &str) -> Option<Figure<T::Value>> {
        let origin = self.origin.clone();
        self.take(field, |value| figures::read::<T>(value, field, &origin))
    }

    fn needed<T>(&mut self, field: &str, value: Option<T>, given: bool) -> Option<T> {
        if value.is_none() && !given && !self.incomplete {
            self.faults.push(format!("{field} is missing"));
        }
        value
    }

    fn needed_figure<T: Readable>(&mut self, field: &str) -> Option<Figure<T::Value>> {
        let given = self.table.contains_key(field);
        let figure = self.figure::<T>(field);
        self.needed(field, figure, given)
    }

    fn needed_text(&mut self, field: &str) -> Option<String> {
        let given = self.table.contains_key(field);
        let text = self.text(field);
        let text = self.needed(field, text, given)?;
        if text.trim().is_empty() {
            self.faults.push(format!("{field} is empty"));
            return None;
        }
        Some(text)
    }

    fn count(&mut self, field: &str) -> u32 {
        let count = self.take(field, |value| {
            let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
            number
                .filter(|count| (1..=MAX_ACCELERATORS).contains(count))
                .ok_or_else(|| format!("{field} is {value}, must be 1 to {MAX_ACCELERATORS}"))
        });
        count.unwrap_or(1)
    }

    fn link(&mut self) -> Option<Link> {
        let given = self.table.contains_key("link");
        let link = self.take("link", |value| {
            let choice: LinkChoice = match value {
                Value::Table(table) => table
                    .try_into()
                    .map_err(|error: toml::de::Error| format!("link: {}", error.message()))?,
                other => return Err(format!("link is {other}, must be a table")),
            };
            choice.into_link()
        });
        self.needed("link", link, given)
    }

    /// Host memory and its rate: a unified machine has the accelerator's.
    fn host(
        &mut self,
        unified: bool,
        memory: Option<&Figure<u64>>,
        rate: Option<&Figure<u64>>,
    ) -> Option<(Figure<u64>, Figure<u64>)> {
        let given = ["host_memory", "host_rate"].map(|field| self.table.contains_key(field));
        if unified {
            if given.contains(&true) {
                let fault = "host_memory or host_rate belongs to a machine that is not unified: there is one memory";
                self.faults.push(fault.to_owned());
            }
            return Some((memory?.clone(), rate?.clone()));
        }
        if given != [true, true] && !self.incomplete {
            let fault =
                "host_memory and host_rate are both needed where the machine is not unified";
            self.faults.push(fault.to_owned());
        }
        Some((self.figure::<Size>("host_memory")?, self.figure::<Rate>("host_rate")?))
    }

    fn assumed_size(&mut self, field: &str, otherwise: u64, why: &str) -> Figure<u64> {
        self.figure::<Size>(field).unwrap_or_else(|| Figure {
            value: otherwise,
            basis: Basis::Assumed,
            source: why.to_owned(),
        })
    }

    fn hardware(&mut self) -> Option<Hardware> {
        let unified = self.take("unified", |value| {
            value.as_bool().ok_or_else(|| format!("unified is {value}, must be true or false"))
        });
        let unified = unified.unwrap_or(false);
        let name = self.needed_text("name");
        let description = self.needed_text("description");
        let (accelerators, per_host) =
            (self.count("accelerators"), self.count("accelerators_per_host"));
        let memory = self.needed_figure::<Size>("memory");
        let memory_rate = self.needed_figure::<Rate>("memory_rate");
        let usable_share = self.needed_figure::<Share>("usable_share");
        let host = self.host(unified, memory.as_ref(), memory_rate.as_ref());
        let host_reserved = self.assumed_size(
            "host_reserved",
            8_000_000_000,
            "assumption: 8 GB for the system, as capacity planners leave",
        );
        let context = self.assumed_size(
            "context",
            552_402_944,
            "assumption: as measured on an H200 (CUDA context alone)",
        );
        let [disk_rate, peer_rate, host_kernel_rate] =
            ["disk_rate", "peer_rate", "host_kernel_rate"].map(|field| self.figure::<Rate>(field));
        let compute = self.figure::<Compute>("compute");
        let (architecture, profile) = (self.text("architecture"), self.text("profile"));
        let link = self.link();
        let (host_memory, host_rate) = host?;
        Some(Hardware {
            name: name?,
            description: description?,
            accelerators,
            per_host,
            unified,
            memory: memory?,
            usable_share: usable_share?,
            host_memory,
            host_reserved,
            context,
            memory_rate: memory_rate?,
            host_rate,
            disk_rate,
            peer_rate,
            host_kernel_rate,
            compute,
            architecture,
            link: link?,
            profile,
        })
    }
}

impl LinkChoice {
    fn into_link(self) -> Result<Link, String> {
        let Some(name) = self.name else { return Err("link.name is missing".to_owned()) };
        if self.gib_s.is_none() && self.gb_s.is_none() {
            return find_link(&name).map_err(|error| format!("link.name is an {error}"));
        }
        let rate = bytes_a_second("link", self.gib_s, self.gb_s)?;
        let mut link = Link::affine(name, 0, ps_per_mib(rate as f64).max(1));
        link.kind = self.kind.unwrap_or(LinkKind::Other);
        link.source = sourced("link", self.source.unwrap_or_default())?;
        Ok(link)
    }
}
