//! Raw flags to validated settings.

use hotset::cost_models::{
    ExpertShape, Link, MachineProfile, WeightFormat, find_link, find_machine,
};
use hotset::policies::{AdmissionSpec, PolicySpec};
use hotset::sim::Capacity;

use crate::fault::Fault;

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

/// Capacities with the text that gave each.
pub fn capacities(texts: &[String]) -> Result<Vec<(String, Capacity)>, Fault> {
    let parsed = texts.iter().map(|text| text.parse().map(|capacity| (text.clone(), capacity)));
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
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
