//! What a mistyped name may have meant: one rule for every kind of name.

/// The known name that is most like a mistyped one, if any is like it at all: few edits away, or
/// alike from the start on.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let edits = |candidate: &str| strsim::osa_distance(&name, candidate);
    let alike = |candidate: &str| strsim::jaro_winkler(&name, candidate);
    known
        .filter(|candidate| edits(candidate) <= 1 + name.len() / 4 || alike(candidate) > 0.8)
        .min_by(|a, b| edits(a).cmp(&edits(b)).then(alike(b).total_cmp(&alike(a))))
}

/// `; did you mean 'lru'?`, or nothing where no known name is like this one or it is one itself.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) if !known.contains(&name) => format!("; did you mean '{near}'?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, suggestion};

    #[test]
    fn what_was_meant() {
        let known = ["lru", "lru-k", "s3-fifo", "fifo", "belady-bypass", "npz", "npy"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("LRU"), Some("lru"));
        assert_eq!(near("nzp"), Some("npz"));
        assert_eq!(near("s3fifo"), Some("s3-fifo"));
        assert_eq!(near("belady-bypas"), Some("belady-bypass"));
        assert_eq!(near("oracle"), None);
        assert_eq!(suggestion("lruu", &known), "; did you mean 'lru'?");
        assert_eq!(suggestion("lru", &known), "");
        assert_eq!(suggestion("oracle", &known), "");
    }
}
