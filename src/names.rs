//! What a mistyped name may have meant: one rule for every kind of name.

use hotset::policies::nearest;

/// `; did you mean 'lru'?`, or nothing where no known name is like this one or it is one itself.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) if !known.contains(&name) => format!("; did you mean '{near}'?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn what_was_meant() {
        let known = ["lru", "lru-k", "s3-fifo", "fifo"];
        assert_eq!(suggestion("lruu", &known), "; did you mean 'lru'?");
        assert_eq!(suggestion("lru", &known), "");
        assert_eq!(suggestion("oracle", &known), "");
    }
}
