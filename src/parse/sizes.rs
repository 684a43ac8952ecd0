//! Sizes: of experts, of checkpoints, of what lies in memory.

use hotset::cost_models::format::Recipe;
use hotset::cost_models::{ByteSize, ExpertShape, HostSpec, Mix, WeightFormat};
use hotset::planning::Checkpoint;
use hotset::planning::placement::HostLayers;

use crate::names::suggestion;

/// A size in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>().map(ByteSize::bytes).map_err(|error| error.to_string())
}

/// Host memory, `ddr5-6000x2:96GB`.
pub fn host(text: &str) -> Result<HostSpec, String> {
    text.parse()
}

/// Bytes a second, `7GB/s`.
pub fn bytes_a_second(text: &str) -> Result<u64, String> {
    hotset::cost_models::hardware::host::rate(text)
}

/// Layers whose experts the host computes: a number, `all` or `auto`.
pub fn host_layers(text: &str) -> Result<HostLayers, String> {
    match text {
        "auto" => Ok(HostLayers::Auto),
        "all" => Ok(HostLayers::All),
        number => number
            .parse()
            .map(HostLayers::Layers)
            .map_err(|_| "give a number of layers, all, or auto (the fewest that fit)".to_owned()),
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

/// A format of weights; a name that is none gets the nearest that is.
pub fn weight_format(text: &str) -> Result<WeightFormat, String> {
    let names: Vec<&str> = WeightFormat::ALL.iter().map(|format| format.name()).collect();
    text.parse().map_err(|error| format!("{error}{}", suggestion(text, &names)))
}

/// How experts are stored: a format, or a mix of a whole file.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpertFormat {
    /// The experts' own.
    Format(WeightFormat),
    /// A GGUF file's mix, which gives all else too.
    Mix(Mix),
}

/// A format of experts, or a GGUF mix by its name.
pub fn expert_format(text: &str) -> Result<ExpertFormat, String> {
    match (weight_format(text), Mix::parse(text)) {
        (Ok(format), _) => Ok(ExpertFormat::Format(format)),
        (_, Ok(mix)) => Ok(ExpertFormat::Mix(mix)),
        (Err(error), Err(_)) => {
            Err(format!("{error}; or a GGUF mix (Q4_K_M, IQ3_XXS, UD-Q4_K_XL, ...)"))
        }
    }
}

/// A GGUF mix: a name, or a load log's table of types.
pub fn mix(text: &str) -> Result<Mix, String> {
    Mix::parse(text).map_err(|error| {
        let names: Vec<&str> = Recipe::ALL.iter().map(|recipe| recipe.name()).collect();
        format!("{error}{}", suggestion(text, &names))
    })
}

/// No expert is larger.
const MOST_EXPERT_BYTES: u64 = 1 << 44;

/// An expert's bytes: a size, or dimensions with a format, `2048x512x3:nvfp4` (in/out width x inner
/// width x matrices).
pub fn expert_size(text: &str) -> Result<u64, String> {
    let bytes = match text.split_once(':') {
        Some((dimensions, format)) => of_dimensions(dimensions, format),
        None => size(text).ok(),
    };
    match bytes {
        Some(bytes) if (1..=MOST_EXPERT_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!(
            "'{text}' is not an expert's size: give bytes (13221888), a size with a unit (12.6MiB, \
             0.0017GiB), or width x inner width x matrices with a format (2048x512x3:nvfp4); \
             formats: {}",
            WeightFormat::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(" ")
        )),
    }
}

fn of_dimensions(dimensions: &str, format: &str) -> Option<u64> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_experts() {
        assert_eq!(expert_size("13221888"), Ok(13_221_888));
        assert_eq!(expert_size("1.6875MiB"), Ok(1_769_472));
        // 0.0017 x 1,073,741,824 = 1,825,361.1008.
        assert_eq!(expert_size("0.0017GiB"), Ok(1_825_361));
        assert_eq!(expert_size("20 MB"), Ok(20_000_000));
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
    fn formats_by_name() {
        assert_eq!(weight_format("NVFP4"), Ok(WeightFormat::Nvfp4));
        assert!(weight_format("nvpf4").unwrap_err().ends_with("; did you mean 'nvfp4'?"));
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
    }
}
