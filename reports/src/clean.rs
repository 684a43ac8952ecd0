//! What a text from a file may not do to a reader: steer a terminal, turn the direction of writing,
//! begin a line of its own, or be a formula in a spreadsheet.
//!
//! Every renderer passes its texts through here, whatever they are of.

/// What takes the place of a character that would act instead of being shown.
const SHOWN: char = '\u{fffd}';

/// Whether a character acts: it steers a terminal, turns or hides text, or breaks a line where
/// programs do not expect it.
fn acts(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    let hides = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}');
    c.is_control() || turns || breaks || hides
}

/// The text for people: line breaks stay, what else acts is shown as U+FFFD.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if acts(c) && c != '\n' { SHOWN } else { c }).collect()
}

/// The same in one line, for names: a line break becomes a space.
#[must_use]
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

/// A field for spreadsheets: in one line, and behind an apostrophe where it would be a formula. What
/// begins with a sign and goes on as numbers (`+1.23 +4.56`, `-`) is none.
pub(crate) fn field(text: &str) -> String {
    let text = one_line(text);
    let formula = match text.trim_start().chars().next() {
        Some('=' | '@') => true,
        Some('+' | '-') => text.chars().any(|c| !matches!(c, '0'..='9' | '+' | '-' | '.' | ' ')),
        _ => false,
    };
    if formula { format!("'{text}") } else { text }
}

/// A JSON document in which what acts is escaped; such characters stand in its strings alone.
pub(crate) fn json(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for c in document.chars() {
        match acts(c) && c != '\n' {
            // None of them needs two units.
            true => text.push_str(&format!("\\u{:04x}", c as u32)),
            false => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        assert_eq!(visible("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb\nc");
        assert_eq!(
            visible("gpt\u{202e}cba\u{2066}\u{85}\u{7f}"),
            "gpt\u{fffd}cba\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(one_line("a\r\nb\u{2028}c\u{feff}"), "a\u{fffd} b\u{fffd}c\u{fffd}");
        assert_eq!(visible("Größe · 模型 é 1,000"), "Größe · 模型 é 1,000");
    }

    #[test]
    fn formulas_are_text_and_numbers_numbers() {
        for formula in ["=cmd|' /C calc'!A0", "@SUM(A1)", "+cmd|x", "-2+3+cmd|x", " =1+1"] {
            assert_eq!(field(formula), format!("'{formula}"), "{formula}");
        }
        for plain in ["-", "+1.23", "-0.50 +1.20", "- -", "lru", "a=b", "<0.5ms/GiB", ""] {
            assert_eq!(field(plain), plain);
        }
        // A tab in front hides the sign from a look at the first character alone.
        assert_eq!(field("\t=1+1"), "\u{fffd}=1+1");
    }

    #[test]
    fn json_says_the_same_in_escapes() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{7f}\n\u{1b}" });
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.contains(r"a\u202eb\u007f\n\u001b"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
