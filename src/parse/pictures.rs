//! Files of pictures.

use std::path::PathBuf;

/// A file whose ending names a format of pictures.
pub fn plot(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("svg" | "png") => Ok(path),
        _ => Err("the name of a picture ends in .svg or .png".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_names_the_format() {
        assert_eq!(plot("a/b.c.SVG"), Ok(PathBuf::from("a/b.c.SVG")));
        assert!(plot("x.png").is_ok());
        for other in ["x.pdf", "svg", "", "x.svg/"] {
            assert_eq!(plot(other).is_ok(), other == "x.svg/", "{other}");
        }
    }
}
