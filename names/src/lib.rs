//! What a mistyped name may have meant: one rule for policies, links, machines, models and formats.

/// The known name that is most like a mistyped one, if any is like it at all: few edits away, or
/// alike from the start on.
///
/// ```
/// let known = ["lru", "lru-k", "s3-fifo"];
/// assert_eq!(hotset_names::nearest("LRU", known), Some("lru"));
/// assert_eq!(hotset_names::nearest("oracle", known), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let edits = |candidate: &str| strsim::osa_distance(&name, &candidate.to_lowercase());
    let alike = |candidate: &str| strsim::jaro_winkler(&name, &candidate.to_lowercase());
    known
        .into_iter()
        .filter(|candidate| edits(candidate) <= 1 + name.len() / 4 || alike(candidate) > 0.75)
        .min_by(|a, b| edits(a).cmp(&edits(b)).then(alike(b).total_cmp(&alike(a))))
}

/// `; did you mean 'lru'?`, or nothing where no name is near: the end of an error about a name.
#[must_use]
pub fn suggestion(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let known = ["lru", "lru-k", "s3-fifo", "fifo", "belady-bypass", "npz", "npy"];
        let near = |name| nearest(name, known);
        assert_eq!(near("LRU"), Some("lru"));
        assert_eq!(near("nzp"), Some("npz"));
        assert_eq!(near("s3fifo"), Some("s3-fifo"));
        assert_eq!(near("belady-bypas"), Some("belady-bypass"));
        assert_eq!(near("oracle"), None);
        assert_eq!(nearest("qwn", ["Kimi-K2", "Qwen3-30B-A3B"]), Some("Qwen3-30B-A3B"));
        assert_eq!(suggestion(near("LRU")), "; did you mean 'lru'?");
        assert_eq!(suggestion(None), "");
    }
}
