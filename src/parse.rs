//! Raw flags to validated settings.

use hotset::cost_models::{ExpertShape, Link, WeightFormat, find_link};
use hotset::policies::PolicySpec;
use hotset::sim::Capacity;

use crate::fault::Fault;

/// `lru,lru-k:k=2,history=kept,lfu`: a piece with `=` but no `:` goes on with the parameters of
/// the policy before it.
pub fn policies(texts: &[String]) -> Result<Vec<(String, PolicySpec)>, Fault> {
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
    let parsed = named.into_iter().map(|text| text.parse().map(|spec| (text, spec)));
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Capacities with the text that gave each.
pub fn capacities(texts: &[String]) -> Result<Vec<(String, Capacity)>, Fault> {
    let parsed = texts.iter().map(|text| text.parse().map(|capacity| (text.clone(), capacity)));
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Built-in links by name, others as TOML files.
pub fn links(texts: &[String]) -> Result<Vec<Link>, Fault> {
    let read = |text: &String| {
        if text.ends_with(".toml") {
            Link::from_toml_path(text).map_err(Fault::from)
        } else {
            find_link(text).map_err(Fault::from)
        }
    };
    texts.iter().map(read).collect()
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
