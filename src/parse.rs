//! Raw flags to validated settings.

use hotset::cost_models::{
    ExpertShape, Hardware, Link, MachineProfile, WeightFormat, find_hardware, find_link,
    find_machine,
};
use hotset::planning::{Checkpoint, MeasuredStep};
use hotset::policies::{AdmissionSpec, PolicySpec};
use hotset::sim::{Capacity, Prefetch, predictors};

use crate::fault::{Fault, nearest};

/// `lru,lru-k:k=2,history=kept,lfu`: a piece with `=` but no `:` goes on with the parameters of
/// the policy before it.
pub fn policies(texts: &[String]) -> Result<Vec<(String, PolicySpec)>, Fault> {
    let parsed =
        with_parameters(texts).into_iter().map(|text| text.parse().map(|spec| (text, spec)));
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Names with their parameters, out of what a list's commas have cut apart.
fn with_parameters(texts: &[String]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for piece in texts.iter().map(|text| text.trim()) {
        match named.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => named.push(piece.to_owned()),
        }
    }
    named
}

/// Admissions; a piece with `=` but no `:` goes on with the parameters of the one before it.
pub fn admissions(texts: &[String]) -> Result<Vec<AdmissionSpec>, Fault> {
    let parsed = with_parameters(texts).into_iter().map(|text| text.parse());
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Every policy behind every admission; bounds decide by themselves and stay as they are.
pub fn admitted(
    policies: Vec<(String, PolicySpec)>,
    admissions: &[AdmissionSpec],
) -> Result<Vec<(String, PolicySpec)>, Fault> {
    let mut all = Vec::new();
    for (text, policy) in policies {
        if !policy.is_online() {
            all.push((text, policy));
            continue;
        }
        for &admission in admissions {
            if admission == AdmissionSpec::Always {
                all.push((text.clone(), policy.clone()));
            } else if policy.admission() == AdmissionSpec::Always {
                let guarded = policy.clone().with_admission(admission)?;
                all.push((format!("{text}+{admission}"), guarded));
            } else {
                return Err(Fault::Usage(format!(
                    "policy '{text}' has an admission already: leave out --admit {admission}"
                )));
            }
        }
    }
    Ok(all)
}

/// Capacities with the text that gave each; `5%..50%:5%` stands for ten of them.
pub fn capacities(texts: &[String]) -> Result<Vec<(String, Capacity)>, Fault> {
    let mut all: Vec<(String, Capacity)> = Vec::new();
    for text in texts.iter().map(|text| text.trim()) {
        let Some((first, rest)) = text.split_once("..") else {
            all.push((text.to_owned(), text.parse()?));
            continue;
        };
        let wrong = || {
            Fault::Usage(format!(
                "capacities '{text}' are not a range: give FIRST..LAST:STEP in one unit, \
                 5%..50%:5%, 96..768:96 or 1GiB..8GiB:0.5GiB, of at most {MOST_SIZES} sizes"
            ))
        };
        let (last, step) = rest.split_once(':').ok_or_else(wrong)?;
        let sizes = range(first.parse()?, last.parse()?, step.parse()?).ok_or_else(wrong)?;
        all.extend(sizes.into_iter().map(|size| (size.to_string(), size)));
    }
    Ok(all)
}

/// The most sizes that one range may stand for.
const MOST_SIZES: usize = 10_000;

/// From `first` to at most `last` by `step`, all in one unit.
fn range(first: Capacity, last: Capacity, step: Capacity) -> Option<Vec<Capacity>> {
    let count = |first: f64, last: f64, step: f64| {
        // A share like 0.1% has no exact binary form: a hair beyond the last size is the last.
        let steps = ((last - first) / step + 1e-9).floor();
        (step > 0.0 && steps >= 0.0 && steps < MOST_SIZES as f64).then(|| steps as u32 + 1)
    };
    match (first, last, step) {
        (Capacity::Slots(first), Capacity::Slots(last), Capacity::Slots(step)) => {
            let count = count(first.into(), last.into(), step.into())?;
            Some(
                (0..count)
                    .map(|index| Capacity::Slots(first.saturating_add(index.saturating_mul(step))))
                    .collect(),
            )
        }
        (Capacity::Percent(first), Capacity::Percent(last), Capacity::Percent(step)) => {
            let percent = |index| {
                let exact = first + f64::from(index) * step;
                Capacity::Percent((exact * 1e9).round() / 1e9)
            };
            Some((0..count(first, last, step)?).map(percent).collect())
        }
        (Capacity::Bytes(first), Capacity::Bytes(last), Capacity::Bytes(step)) => {
            let count = count(first as f64, last as f64, step as f64)?;
            Some((0..count).map(|n| Capacity::Bytes(first + u64::from(n) * step)).collect())
        }
        _ => None,
    }
}

/// A stretch of places: `3`, or `0..10`, which leaves 10 out.
pub fn span(text: &str) -> Result<std::ops::Range<usize>, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)),
        None => number(text).map(|place| (place, place.saturating_add(1))),
    };
    match range {
        Some((from, to)) if from < to => Ok(from..to),
        _ => Err(format!("'{text}' is no place and no range: give 3, or 0..10")),
    }
}

/// A share of the sequences, in percent: `50%` or `50`.
pub fn training_share(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').parse() {
        Ok(percent) if 0.0 < percent && percent < 100.0 => Ok(percent),
        _ => Err("give a share of the sequences between 0% and 100%".to_owned()),
    }
}

/// A prefetcher; a name that is none gets the nearest that is.
pub fn prefetch(text: &str) -> Result<Prefetch, String> {
    text.parse::<Prefetch>().map_err(|error| format!("{error}{}", meant(text)))
}

/// What a mistyped prefetcher may have meant; nothing for one that there is.
pub fn meant(text: &str) -> String {
    let name = text.split_once(':').map_or(text, |(name, _)| name).trim();
    let names = || predictors().map(|info| info.name).chain(["none"]);
    match nearest(name, names()) {
        Some(near) if names().all(|known| known != name) => format!("; did you mean '{near}'?"),
        _ => String::new(),
    }
}

/// `25%` as 0.25: a share, 0% and 100% with it.
pub fn share(text: &str) -> Result<f64, String> {
    match text.trim().strip_suffix('%').map(str::parse::<f64>) {
        Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give a share from 0% to 100%".to_owned()),
    }
}

/// Links by name, of `machine` or built in; others as TOML files, a machine's giving all its links.
pub fn links(texts: &[String], machine: Option<&MachineProfile>) -> Result<Vec<Link>, Fault> {
    let mut links = Vec::new();
    for text in texts {
        if let Some(link) = machine.and_then(|machine| machine.link(text)) {
            links.push(link.clone());
        } else if !text.ends_with(".toml") {
            links.push(find_link(text)?);
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

/// Reads a profile: a machine's has a list of links.
pub fn profile(path: &str) -> Result<Profile, Fault> {
    let text = std::fs::read_to_string(path)
        .map_err(|reason| Fault::Read { path: path.to_owned(), reason })?;
    // Text that is no TOML at all is told of as a link's, with line and column.
    let table = text.parse::<toml::Table>().unwrap_or_default();
    Ok(if table.contains_key("links") {
        Profile::Machine(Box::new(MachineProfile::from_toml_path(path)?))
    } else {
        Profile::Link(Box::new(Link::from_toml_path(path)?))
    })
}

/// A machine by name, or its profile.
pub fn machine(text: &str) -> Result<MachineProfile, Fault> {
    match text.ends_with(".toml") {
        true => Ok(MachineProfile::from_toml_path(text)?),
        false => Ok(find_machine(text)?),
    }
}

/// Bytes, or MiB: `20971520`, `20MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let bytes = match text.strip_suffix("MiB") {
        Some(mib) => mib.trim().parse::<f64>().ok().map(|mib| (mib * f64::from(1 << 20)).round()),
        None => text.parse::<u64>().ok().map(|bytes| bytes as f64),
    };
    match bytes {
        Some(bytes) if (0.0..=(1u64 << 44) as f64).contains(&bytes) => Ok(bytes as u64),
        _ => Err(format!("'{text}' is not a size: give bytes (20971520) or MiB (20MiB)")),
    }
}

/// A size in GiB, MiB, GB or bytes: `307.49GiB`, `433GB`.
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] =
        [("GiB", (1u64 << 30) as f64), ("MiB", (1u64 << 20) as f64), ("GB", 1e9), ("MB", 1e6)];
    let text = text.trim();
    let bytes = UNITS.iter().find_map(|(unit, bytes)| {
        let number = text.strip_suffix(unit)?;
        Some(number.trim().parse::<f64>().ok()? * bytes)
    });
    let bytes = bytes.or_else(|| text.parse::<u64>().ok().map(|bytes| bytes as f64));
    match bytes.map(f64::round) {
        Some(bytes) if (0.0..=(1u64 << 53) as f64).contains(&bytes) => Ok(bytes as u64),
        _ => Err(format!("'{text}' is not a size: give 24GiB, 512MiB, 433GB or bytes")),
    }
}

/// A rate in bytes a second: `57GB/s`, `21.5GiB/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 2] = [("GiB/s", (1u64 << 30) as f64), ("GB/s", 1e9)];
    let rate = UNITS.iter().find_map(|(unit, bytes)| {
        Some(text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()? * bytes)
    });
    match rate {
        Some(rate) if (1e3..=1e15).contains(&rate) => Ok(rate),
        _ => Err(format!("'{text}' is not a rate: give 57GB/s or 21.5GiB/s")),
    }
}

/// Experts copied for each one needed.
pub fn copies(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(copies) if (0.0..=1e6).contains(&copies) => Ok(copies),
        _ => Err("give how many experts are copied for each one needed, as 2.0".to_owned()),
    }
}

/// A checkpoint's size, and of it the experts': `433GB`, `433GB:419GB`.
pub fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let (total, experts) = match text.split_once(':') {
        Some((total, experts)) => (size(total)?, Some(size(experts)?)),
        None => (size(text)?, None),
    };
    Ok(Checkpoint { total, experts })
}

/// A measured step: milliseconds of one token and of each further one, `28.67:5.95`.
pub fn measured_step(text: &str) -> Result<MeasuredStep, String> {
    let wrong = || format!("'{text}' is not MS:MS, as in 28.67:5.95");
    let (first, further) = text.split_once(':').ok_or_else(wrong)?;
    Ok(MeasuredStep {
        first_ms: milliseconds(first).map_err(|_| wrong())?,
        further_ms: milliseconds(further).map_err(|_| wrong())?,
    })
}

/// A machine to plan for: a built-in name, several of one, or a file.
pub fn hardware(text: &str) -> Result<Hardware, Fault> {
    match text.ends_with(".toml") {
        true => Hardware::from_toml_path(text).map_err(|error| match profile(text) {
            // What 'link fit' writes goes by the same ending.
            Ok(_) => Fault::Usage(format!(
                "{text} is a profile of links, which says nothing of memory: give it as --link \
                 {text}, and as --machine a built-in name or a file like the one in \
                 docs/metrics.md (A machine of one's own)"
            )),
            Err(_) => error.into(),
        }),
        false => Ok(find_hardware(text)?),
    }
}

/// One link: by name, a link's profile, or of a machine's profile the only one or the one named
/// behind a colon, `mine.toml:mine-pcie`.
pub fn link(text: &str) -> Result<Link, Fault> {
    let (path, name) = match text.split_once(".toml") {
        None => return Ok(find_link(text)?),
        Some((stem, rest)) => (format!("{stem}.toml"), rest.strip_prefix(':')),
    };
    let machine = match profile(&path)? {
        Profile::Link(link) => return Ok(*link),
        Profile::Machine(machine) => machine,
    };
    let found = match (name, &machine.links[..]) {
        (Some(name), _) => machine.link(name).cloned(),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = machine.links.iter().map(|link| link.name.as_str()).collect();
        Fault::Usage(format!("{path} has the links {}: name one, {path}:NAME", names.join(", ")))
    })
}

/// An expert's bytes: `13221888`, `12.6MiB`, or dimensions with a format,
/// `2048x512x3:nvfp4` (in/out width x inner width x matrices).
pub fn expert_size(text: &str) -> Result<u64, String> {
    let size = || -> Option<u64> {
        if let Some(mib) = text.strip_suffix("MiB") {
            let bytes = mib.trim().parse::<f64>().ok()? * f64::from(1 << 20);
            return Some(bytes.round() as u64);
        }
        let Some((dimensions, format)) = text.split_once(':') else {
            return text.parse().ok();
        };
        let format: WeightFormat = format.parse().ok()?;
        let [io_width, inner_width, matrices] = dimensions
            .split('x')
            .map(|number| number.parse().ok())
            .collect::<Option<Vec<u32>>>()?
            .try_into()
            .ok()?;
        // No model comes near these, and products stay far from overflow.
        let plausible = (1..=1 << 20).contains(&io_width)
            && (1..=1 << 20).contains(&inner_width)
            && (1..=8).contains(&matrices);
        let shape = ExpertShape { matrices, io_width, inner_width, biases: false };
        plausible.then(|| shape.bytes(format))
    };
    match size() {
        Some(bytes) if (1..=1 << 44).contains(&bytes) => Ok(bytes),
        _ => Err(format!(
            "'{text}' is not an expert's size: give bytes (13221888), MiB (12.6MiB), or width x \
             inner width x matrices with a format (2048x512x3:nvfp4); formats: {}",
            WeightFormat::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(" ")
        )),
    }
}

/// A number of threads that makes sense.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("give 1 to 1024 threads".to_owned()),
    }
}

/// A positive time in milliseconds.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if (0.0..=1e9).contains(&ms) => Ok(ms),
        _ => Err("give milliseconds, 0 to 1,000,000,000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_in_both_units() {
        assert_eq!(rate("57GB/s"), Ok(57e9));
        assert_eq!(rate("0.5 GiB/s"), Ok(536_870_912.0));
        for wrong in ["57", "57GB", "-1GB/s", "nanGB/s", "0GB/s", "1e30GB/s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_of_experts() {
        assert_eq!(expert_size("13221888"), Ok(13_221_888));
        assert_eq!(expert_size("1.6875MiB"), Ok(1_769_472));
        // 3 x 2048 x 512 weights at 4.5 bits, and two f32 scales a matrix.
        assert_eq!(expert_size("2048x512x3:nvfp4"), Ok(1_769_472 + 24));
        for wrong in [
            "0",
            "-1",
            "x",
            "1e99MiB",
            "2048x512:bf16",
            "2048x512x3:fp3",
            "0x1x3:bf16",
            "99999999999x1x1:bf16",
        ] {
            assert!(expert_size(wrong).unwrap_err().contains("nvfp4"), "{wrong}");
        }
    }

    #[test]
    fn sizes_with_units() {
        assert_eq!(size("24GiB"), Ok(24 << 30));
        assert_eq!(size("433GB"), Ok(433_000_000_000));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        assert_eq!(size("17"), Ok(17));
        for wrong in ["", "-1GiB", "nanGB", "1e30GiB", "24 gigs"] {
            assert!(size(wrong).unwrap_err().contains("24GiB"), "{wrong}");
        }
        let both = Checkpoint { total: 433_000_000_000, experts: Some(419_000_000_000) };
        assert_eq!(checkpoint("433GB:419GB"), Ok(both));
        let step = MeasuredStep { first_ms: 28.67, further_ms: 5.95 };
        assert_eq!(measured_step("28.67:5.95"), Ok(step));
        assert!(measured_step("28.67").unwrap_err().contains("28.67:5.95"));
    }

    #[test]
    fn ranges_of_capacities() {
        let read = |text: &str| {
            let texts: Vec<String> = text.split(',').map(str::to_owned).collect();
            capacities(&texts).map(|all| all.into_iter().map(|(text, _)| text).collect::<Vec<_>>())
        };
        assert_eq!(read("5%..20%:5%").unwrap(), ["5%", "10%", "15%", "20%"]);
        assert_eq!(read("0.1%..0.5%:0.1%").unwrap(), ["0.1%", "0.2%", "0.3%", "0.4%", "0.5%"]);
        assert_eq!(read("96..300:96,25%").unwrap(), ["96", "192", "288", "25%"]);
        assert_eq!(read("1GiB..2GiB:512MiB").unwrap(), ["1GiB", "1.5GiB", "2GiB"]);
        assert_eq!(read("5%..5%:1%").unwrap(), ["5%"]);
        for wrong in ["5%..20%", "5%..20:5%", "5%..20%:0%", "20%..5%:5%", "0%..100%:0.001%"] {
            assert!(read(wrong).unwrap_err().to_string().contains("not a range"), "{wrong}");
        }
        assert!(read("..5%:1%").unwrap_err().to_string().contains("capacity ''"));
    }

    #[test]
    fn parameters_stay_with_their_policy() {
        let texts: Vec<String> = "lru,fifo".split(',').map(str::to_owned).collect();
        let names: Vec<String> =
            policies(&texts).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["lru", "fifo"]);
        let texts: Vec<String> = ["lru:k=2", "history=kept"].map(str::to_owned).to_vec();
        let error = policies(&texts).unwrap_err().to_string();
        assert!(error.starts_with("policy 'lru': unknown field `k`"), "{error}");
    }
}
