//! What settings and notes of a report say, in the words that people and programs use.
//!
//! Words are compared one by one, flags without their dashes: a pattern is a list of them, with `#` for a number and `~`
//! before a beginning.

use crate::engine::Latent;

/// A text in words, lower case.
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let part = |c: char| !(c.is_alphanumeric() || "-_.".contains(c));
        let lower = text.to_lowercase();
        let words = lower.split(part).map(|word| {
            let word = word.trim_end_matches('.');
            let bare = word.trim_start_matches('-');
            // A flag goes by its name, a number keeps its sign.
            let number = bare.starts_with(|first: char| first.is_ascii_digit());
            if number { word.to_owned() } else { bare.to_owned() }
        });
        Self(words.filter(|word| !word.is_empty()).collect())
    }

    /// The numbers of the first place where the pattern stands.
    pub(super) fn numbers(&self, pattern: &[&str]) -> Option<Vec<f64>> {
        self.0.windows(pattern.len()).find_map(|words| {
            let mut numbers = Vec::new();
            for (word, wanted) in words.iter().zip(pattern) {
                match wanted.strip_prefix('~') {
                    Some(beginning) => word.starts_with(beginning).then_some(())?,
                    None if *wanted == "#" => {
                        let number: f64 = word.parse().ok()?;
                        (number.is_finite() && number >= 0.0).then_some(())?;
                        numbers.push(number);
                    }
                    None => (word == wanted).then_some(())?,
                }
            }
            Some(numbers)
        })
    }

    pub(super) fn has(&self, pattern: &[&str]) -> bool {
        self.numbers(pattern).is_some()
    }

    /// The first number behind one of these words.
    pub(super) fn after(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| self.numbers(&[name, "#"])?.first().copied())
    }
}

/// Where the weights of a run are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Placement {
    /// All on accelerators, the embedding perhaps not.
    Accelerator,
    /// All on the host.
    Host,
    /// Experts of so many layers on accelerators.
    ExpertLayersOnAccelerator(f64),
    /// Experts of so many layers on the host.
    ExpertLayersOnHost(f64),
    /// All experts on the host.
    ExpertsOnHost,
    /// The last so many layers on accelerators, of layers and head.
    LayersOnAccelerator(f64),
}

/// What a report's notes and settings say.
pub(super) struct Told {
    pub placement: Option<Placement>,
    /// The placement is a report's own guess.
    pub about: bool,
    pub flash: bool,
    pub latent: Option<Latent>,
    /// MiB that spread keys and values are held to.
    pub most_spread: Option<f64>,
    pub words: Words,
}

impl Told {
    /// Notes before settings: what whoever collected the report says is in fixed words.
    pub(super) fn of(notes: &str, settings: &str) -> Self {
        let notes = Words::of(notes);
        let settings_words = Words::of(settings);
        let words =
            Words([notes.0.clone(), vec![";".to_owned()], settings_words.0.clone()].concat());
        let placement = placement(&notes).or_else(|| placement(&settings_words));
        let placement = placement.or_else(|| overridden(settings));
        let no_flash = ["flash", "fa"].iter().any(|name| words.has(&["no", name]))
            || words.has(&["fa", "off"])
            || words.has(&["fa", "0"]);
        Self {
            placement,
            about: words.has(&["or", "so"]) || words.has(&["about", "#", "expert", "layers"]),
            flash: !no_flash,
            latent: latent(&words),
            most_spread: words.after(&["amb", "attention-max-batch"]),
            words,
        }
    }

    pub(super) fn has(&self, pattern: &[&str]) -> bool {
        self.words.has(pattern)
    }
}

fn placement(words: &Words) -> Option<Placement> {
    let first = |patterns: &[&[&str]]| {
        patterns.iter().find_map(|pattern| words.numbers(pattern)?.first().copied())
    };
    let any = |patterns: &[&[&str]]| patterns.iter().any(|pattern| words.has(pattern));
    if let Some(layers) = first(&[
        &["#", "of", "#", "expert", "layers", "on", "~gpu"],
        &["#", "whole", "expert", "layers", "on", "~gpu"],
        &["#", "or", "so", "expert", "layers", "on", "~gpu"],
        &["#", "expert", "layers", "on", "~gpu"],
        &["#", "ffn", "layers", "on", "~gpu"],
    ]) {
        return Some(Placement::ExpertLayersOnAccelerator(layers));
    }
    if let Some(layers) = first(&[
        &["#", "of", "#", "expert", "layers", "on", "cpu"],
        &["#", "expert", "layers", "on", "cpu"],
        &["ncmoe", "#"],
        &["n-cpu-moe", "#"],
    ]) {
        return Some(Placement::ExpertLayersOnHost(layers));
    }
    if any(&[&["all", "experts", "on", "cpu"], &["experts", "on", "cpu"], &["cmoe"], &["cpu-moe"]])
    {
        return Some(Placement::ExpertsOnHost);
    }
    if let Some(layers) = first(&[
        &["#", "of", "#", "layers", "on", "~gpu"],
        &["#", "of", "#", "layers", "on", "the"],
        &["#", "of", "#", "layers", "offloaded"],
    ]) {
        return Some(Placement::LayersOnAccelerator(layers));
    }
    if any(&[&["all", "on", "cpu"], &["cpu", "only"]]) {
        return Some(Placement::Host);
    }
    let all: [&[&str]; 3] =
        [&["all", "on", "~gpu"], &["all", "on", "#", "~gpu"], &["all", "on", "the", "~gpu"]];
    any(&all).then_some(Placement::Accelerator)
}

/// `-ot` patterns: experts to the host, but for blocks that earlier patterns sent to devices.
fn overridden(settings: &str) -> Option<Placement> {
    let settings = settings.to_lowercase();
    let to_host = settings.split_whitespace().any(|word| {
        word.trim_matches(['"', '\'', ',', ';']).ends_with("=cpu") && word.contains("exp")
    });
    if !to_host {
        return None;
    }
    let kept: usize = settings
        .split_whitespace()
        .filter(|word| word.contains("blk") && !word.ends_with("=cpu") && word.contains('='))
        .map(|word| 1 + word.matches('|').count())
        .sum();
    Some(match kept {
        0 => Placement::ExpertsOnHost,
        layers => Placement::ExpertLayersOnAccelerator(layers as f64),
    })
}

fn latent(words: &Words) -> Option<Latent> {
    if words.has(&["full", "keys"]) || words.has(&["without", "latents"]) {
        return Some(Latent::Full);
    }
    match words.after(&["mla", "mla-use"])? {
        0.0 => Some(Latent::Full),
        1.0 => Some(Latent::Absorbed),
        _ => Some(Latent::Spread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_in_fixed_words_and_in_flags() {
        let placed = |notes, settings| Told::of(notes, settings).placement;
        assert_eq!(placed("x; all on 3 GPUs", ""), Some(Placement::Accelerator));
        assert_eq!(placed("all on GPU", "-ncmoe 3"), Some(Placement::Accelerator));
        assert_eq!(placed("", "CPU only: -fa"), Some(Placement::Host));
        assert_eq!(placed("all experts on CPU", ""), Some(Placement::ExpertsOnHost));
        let six = Some(Placement::ExpertLayersOnAccelerator(6.0));
        assert_eq!(placed("; 6 of 94 expert layers on GPU", ""), six);
        let some = Some(Placement::ExpertLayersOnHost(26.0));
        assert_eq!(placed("", "-ngl 99 -ncmoe 26"), some);
        assert_eq!(placed("", "-ngl 99 -ot exps=CPU"), Some(Placement::ExpertsOnHost));
        let two = Some(Placement::ExpertLayersOnAccelerator(2.0));
        assert_eq!(placed("", "-ot blk.3.ffn=CUDA0 -ot blk.5.ffn=CUDA1 -ot exps=CPU"), two);
        let layers = Some(Placement::LayersOnAccelerator(27.0));
        assert_eq!(placed("27 of 62 layers on GPUs", ""), layers);
        assert_eq!(placed("", "-fa"), None);
    }

    #[test]
    fn attention_as_flags_say() {
        let told = Told::of("", "-mla 3 -fa -amb 512");
        assert_eq!(
            (told.latent, told.most_spread, told.flash),
            (Some(Latent::Spread), Some(512.0), true)
        );
        let told = Told::of("full keys and values", "no flash attention, mla 2");
        assert_eq!((told.latent, told.flash), (Some(Latent::Full), false));
    }
}
