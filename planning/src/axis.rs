//! Axes of a what-if: a setting, the values that it takes, and a request with one of them.

use hotset_cost_models::model::KvFormat;
use hotset_cost_models::{ByteSize, Hardware, Mix, Model, WeightFormat, find_hardware, find_link};
use serde::Serialize;

use crate::{PlanError, Request};

/// A setting and the values that it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The setting.
    pub knob: Knob,
    /// Its values as given, in order.
    pub values: Vec<String>,
}

/// What can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knob {
    /// Memory of an accelerator, in GiB.
    GpuMemory,
    /// Memory of a host, in GiB.
    HostMemory,
    /// The link, by name.
    Link,
    /// Format of the experts, or a GGUF mix of all tensors.
    Format,
    /// Format of keys and values.
    Kv,
    /// Tokens of context.
    Context,
    /// Sequences at once.
    Users,
    /// Tokens drafted a step.
    Speculate,
    /// Tensor-parallel accelerators.
    Tp,
    /// Expert-parallel accelerators.
    Ep,
    /// The machine, by name.
    Machine,
    /// The model, by name or file.
    Model,
}

const KNOBS: [(&str, Knob); 12] = [
    ("gpu-memory", Knob::GpuMemory),
    ("host-memory", Knob::HostMemory),
    ("link", Knob::Link),
    ("format", Knob::Format),
    ("kv", Knob::Kv),
    ("context", Knob::Context),
    ("users", Knob::Users),
    ("speculate", Knob::Speculate),
    ("tp", Knob::Tp),
    ("ep", Knob::Ep),
    ("machine", Knob::Machine),
    ("model", Knob::Model),
];

impl Knob {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        KNOBS.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }

    fn is_whole(self) -> bool {
        matches!(self, Self::Context | Self::Users | Self::Speculate | Self::Tp | Self::Ep)
    }
}

/// The most points of a what-if, over all axes together.
pub const MOST_POINTS: usize = 10_000;

impl std::str::FromStr for Axis {
    type Err = PlanError;

    /// `gpu-memory=24,32,48`, `users=1..32`, `context=8192..65536:8192`.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let wrong = |why: String| PlanError::Vary { text: text.to_owned(), why };
        let known = || KNOBS.map(|known| known.0).join(", ");
        let Some((name, list)) = text.split_once('=') else {
            return Err(wrong(format!("is not NAME=VALUE,VALUE; names: {}", known())));
        };
        let Some(&(_, knob)) = KNOBS.iter().find(|known| known.0 == name.trim()) else {
            return Err(wrong(format!("'{name}' cannot be varied; names: {}", known())));
        };
        let mut values = Vec::new();
        for piece in list.split(',').map(str::trim) {
            if piece.is_empty() {
                return Err(wrong("has an empty value".to_owned()));
            }
            match piece.split_once("..") {
                Some((first, rest)) if knob.is_whole() => {
                    let numbers = range(first, rest).ok_or_else(|| {
                        wrong(format!(
                            "'{piece}' is not a range FIRST..LAST or FIRST..LAST:STEP of at most \
                             {MOST_POINTS} whole numbers"
                        ))
                    })?;
                    values.extend(numbers.map(|number| number.to_string()));
                }
                _ => values.push(piece.to_owned()),
            }
        }
        Ok(Self { knob, values })
    }
}

fn range(first: &str, rest: &str) -> Option<impl Iterator<Item = u64> + use<>> {
    let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let step: usize = step.parse().ok().filter(|step| *step > 0)?;
    let count = last.checked_sub(first)? / step as u64;
    (count < MOST_POINTS as u64).then(|| (first..=last).step_by(step))
}

/// Refuses axes that vary the same, or make too many points.
pub(crate) fn check(axes: &[Axis]) -> Result<(), PlanError> {
    let wrong = |axis: &Axis, why: &str| PlanError::Vary {
        text: format!("{}={}", axis.knob.name(), axis.values.join(",")),
        why: why.to_owned(),
    };
    let mut points = 1usize;
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|before| before.knob == axis.knob) {
            return Err(wrong(axis, "varies what another `WhatIf::axes` varies"));
        }
        points = points.saturating_mul(axis.values.len());
        if points > MOST_POINTS {
            return Err(wrong(axis, &format!("makes more than {MOST_POINTS} points")));
        }
    }
    Ok(())
}

/// No memory is larger: 1024 TiB.
const MOST_MEMORY: u64 = 1 << 50;

/// A memory's bytes: a size with its unit, or a plain number, which is in GiB.
fn memory(value: &str) -> Option<u64> {
    let plain = value.trim().parse::<f64>().is_ok();
    let size = if plain { format!("{}GiB", value.trim()) } else { value.to_owned() };
    let bytes = size.parse::<ByteSize>().ok()?.bytes();
    (1..=MOST_MEMORY).contains(&bytes).then_some(bytes)
}

/// The request with one value of each axis. A model and a machine come first, whatever the axes' order:
/// the others change something about them.
pub(crate) fn with_values(
    request: &Request,
    axes: &[Axis],
    values: &[String],
) -> Result<Request, PlanError> {
    let mut pairs: Vec<(Knob, &String)> = axes.iter().map(|axis| axis.knob).zip(values).collect();
    pairs.sort_by_key(|(knob, _)| !matches!(knob, Knob::Model | Knob::Machine));
    let first = request.clone();
    pairs.iter().try_fold(first, |request, (knob, value)| applied(&request, *knob, value))
}

/// The request with one setting changed.
fn applied(request: &Request, knob: Knob, value: &str) -> Result<Request, PlanError> {
    let wrong = |why: String| PlanError::Vary { text: format!("{}={value}", knob.name()), why };
    let whole = || -> Result<u32, PlanError> {
        value.parse().map_err(|_| wrong(format!("'{value}' is not a whole number")))
    };
    let mut new = request.clone();
    match knob {
        Knob::GpuMemory | Knob::HostMemory => {
            let bytes = memory(value).ok_or_else(|| {
                wrong(format!(
                    "'{value}' is not a number of GiB, nor a size, as in 24, 24GiB or 25.7GB"
                ))
            })?;
            let both = new.machine.unified;
            if knob == Knob::GpuMemory || both {
                new.machine.memory.value = bytes;
            }
            if knob == Knob::HostMemory || both {
                new.machine.host_memory.value = bytes;
            }
        }
        Knob::Link => {
            new.link = Some(find_link(value).map_err(|error| wrong(error.to_string()))?);
        }
        Knob::Format => match (value.parse::<WeightFormat>(), Mix::parse(value)) {
            (Ok(format), _) => new.storage.format = Some(format),
            (Err(_), Ok(mix)) if new.storage.rest_format.is_none() => {
                new.storage.format = None;
                new.model = new.model.quantised(&mix);
            }
            (Err(_), Ok(_)) => {
                return Err(wrong(
                    "a mix gives all tensors their formats: leave `Storage::rest_format` out"
                        .to_owned(),
                ));
            }
            (Err(error), Err(_)) => {
                return Err(wrong(format!(
                    "{error}; or a GGUF mix (Q4_K_M, IQ3_XXS, UD-Q4_K_XL, ...)"
                )));
            }
        },
        Knob::Kv => {
            let known = KvFormat::from_name(value);
            new.storage.kv = known.ok_or_else(|| {
                wrong("formats of keys and values: bf16, fp8, q8_0, q4_0".to_owned())
            })?;
        }
        Knob::Context => {
            new.context =
                value.parse().map_err(|_| wrong(format!("'{value}' is not a whole number")))?;
        }
        Knob::Users => new.users = whole()?,
        Knob::Speculate => new.speculation.drafts = whole()?,
        Knob::Tp => {
            new.parallel.tensor = whole()?;
            new.machine = enough(&new);
        }
        Knob::Ep => {
            new.parallel.expert = whole()?;
            new.machine = enough(&new);
        }
        Knob::Machine => {
            let whole = new.parallel.tensor == new.machine.accelerators;
            new.machine = find_hardware(value).map_err(|error| wrong(error.to_string()))?;
            if whole {
                new.parallel.tensor = new.machine.accelerators;
            }
        }
        Knob::Model => new.model = Model::open(value)?,
    }
    Ok(new)
}

/// The machine with as many accelerators as the ranks need.
fn enough(request: &Request) -> Hardware {
    let machine = &request.machine;
    if request.ranks() <= machine.accelerators {
        return machine.clone();
    }
    let mut more = machine.with_accelerators(request.ranks());
    more.name.clone_from(&machine.name);
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_gib_or_sizes() {
        assert_eq!(memory("24"), Some(24 << 30));
        assert_eq!(memory("0.5"), Some(1 << 29));
        assert_eq!(memory("24GiB"), Some(24 << 30));
        assert_eq!(memory("24 GB"), Some(24_000_000_000));
        for wrong in ["0", "-1", "nan", "x", "1e9", "2000000GiB"] {
            assert_eq!(memory(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_machine_and_a_model_do_not_undo_what_other_axes_say() {
        let machine = find_hardware("rtx-4090").unwrap();
        let request = Request::new(Model::builtin("OLMoE-1B-7B").unwrap(), machine);
        let axes = ["gpu-memory=7", "format=Q4_K_M", "machine=rtx-3090", "model=gpt-oss-20b"]
            .map(|axis| axis.parse::<Axis>().unwrap());
        let values: Vec<String> = axes.iter().map(|axis| axis.values[0].clone()).collect();
        let all = with_values(&request, &axes, &values).unwrap();
        assert_eq!((all.machine.memory.value, all.model.name.as_str()), (7 << 30, "gpt-oss-20b"));
        assert_eq!(all.machine.name, "rtx-3090");
        let stored = all.model.stored.map(|stored| stored.source);
        assert_eq!(stored.as_deref(), Some("tensor types of Q4_K_M"));
        let told = with_values(&request, &axes[1..2], &["Q4_K_Q".to_owned()]).unwrap_err();
        assert!(told.to_string().contains("or a GGUF mix"), "{told}");
    }

    #[test]
    fn axes_as_people_write_them() {
        let axis: Axis = "users=1..4,8".parse().unwrap();
        assert_eq!((axis.knob, axis.values.join(" ")), (Knob::Users, "1 2 3 4 8".to_owned()));
        let axis: Axis = "context=8192..32768:8192".parse().unwrap();
        assert_eq!(axis.values.len(), 4);
        let axis: Axis = "gpu-memory=24,32.5".parse().unwrap();
        assert_eq!(axis.values, ["24", "32.5"]);
        for (text, why) in [
            ("users", "is not NAME=VALUE"),
            ("batch=1", "cannot be varied; names: gpu-memory"),
            ("users=4..1", "is not a range"),
            ("users=1..9:0", "is not a range"),
            ("users=0..1000000000000", "is not a range"),
            ("users=1,,2", "empty value"),
        ] {
            let error = text.parse::<Axis>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
