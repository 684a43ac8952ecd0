//! Texts as markup shows them.

use crate::clean::{one_line, visible};

/// In one line, nothing of it markup.
pub(crate) fn escape(text: &str) -> String {
    marked(&one_line(text))
}

/// With its line breaks.
pub(super) fn lines(text: &str) -> String {
    marked(&visible(text))
}

fn marked(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => marked.push_str("&amp;"),
            '<' => marked.push_str("&lt;"),
            '>' => marked.push_str("&gt;"),
            '"' => marked.push_str("&quot;"),
            '\'' => marked.push_str("&#39;"),
            c => marked.push(c),
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        let planted = "<script>alert('1')</script>\"&\u{1b}\u{202e}\n";
        let expected = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;\u{fffd}\u{fffd}";
        assert_eq!(escape(planted), format!("{expected} "));
        assert_eq!(lines(planted), format!("{expected}\n"));
    }
}
