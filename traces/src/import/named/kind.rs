//! What a file is by the names of its columns or keys: routes, counts, or neither.

use super::names::{Meaning, Names};
use super::text::{Header, find_header};
use crate::import::sniff::Sniff;

/// What the names of a file's columns say that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum Kind {
    /// A layer, experts, and what orders them.
    Routes,
    /// A layer, an expert and a count, and no token.
    Counts,
    /// A layer and an expert alone: pairs without order or count.
    Pairs,
}

/// What the beginning of a text says by its names, and by those that the caller gave.
pub(in crate::import) fn kind(sniff: &Sniff<'_>) -> Option<Kind> {
    let text = sniff.text();
    if text.is_empty() {
        return None;
    }
    let names = &Names::new(&sniff.options.columns).ok()?;
    if !sniff.is_json() {
        let header = find_header(text.lines(), names)?;
        let has = |meaning| header.has(meaning);
        let token = has(Meaning::Token) || has(Meaning::Position) || has(Meaning::TokenId);
        let lists = header
            .known
            .iter()
            .flatten()
            .any(|known| known.meaning == Meaning::Experts && known.number.is_some());
        let step = has(Meaning::Step);
        let one = has(Meaning::Experts) && !lists && !has_lists(text, &header);
        return Some(match () {
            () if has(Meaning::Count) && one && !token && !(step && has(Meaning::Rank)) => {
                Kind::Counts
            }
            () if token || step => Kind::Routes,
            () if lists && is_matrix(text, &header) => Kind::Counts,
            () if lists => Kind::Routes,
            () if has_lists(text, &header) => Kind::Routes,
            () => Kind::Pairs,
        });
    }
    json_kind(sniff, names)
}

/// Whether the experts of a text's first rows are lists.
fn has_lists(text: &str, header: &Header) -> bool {
    let place = header
        .known
        .iter()
        .position(|known| known.is_some_and(|known| known.meaning == Meaning::Experts));
    let Some(place) = place else { return false };
    let from = header.line + usize::from(!header.is_row);
    let mut rows = text.lines().skip(from).filter(|line| !line.trim().is_empty());
    let Some(row) = rows.find(|line| !line.starts_with('#')) else { return false };
    if header.delimiter == b' ' {
        return row.split_whitespace().count() > header.columns.len();
    }
    let mut fields = row.split(char::from(header.delimiter)).skip(place);
    let field = fields.next().unwrap_or_default().trim().trim_matches('"');
    field.parse::<f64>().is_err() || fields.count() + place + 1 > header.columns.len()
}

/// Whether a table without tokens has one row a layer, and a column for each expert: counts. Rows of
/// chosen experts without a token have each layer again and again.
fn is_matrix(text: &str, header: &Header) -> bool {
    let meaning = |wanted: Meaning| {
        header.known.iter().position(|known| known.is_some_and(|known| known.meaning == wanted))
    };
    let Some(place) = meaning(Meaning::Layer) else { return false };
    let beside = [Meaning::Sequence, Meaning::Weights, Meaning::Rank, Meaning::Phase];
    if beside.into_iter().any(|wanted| meaning(wanted).is_some()) {
        return false;
    }
    let from = header.line + usize::from(!header.is_row);
    let rows = text.lines().skip(from).filter(|line| !line.trim().is_empty());
    let mut layers: Vec<String> = Vec::new();
    for row in rows.filter(|line| !line.starts_with('#')) {
        let fields = super::text::split(row, header.delimiter);
        // The last line may be cut.
        if fields.len() < header.columns.len() {
            break;
        }
        let layer = fields[place].clone();
        if layers.contains(&layer) {
            return false;
        }
        layers.push(layer);
    }
    layers.len() > 1
}

/// What the first objects of a JSON text are by their keys.
fn json_kind(sniff: &Sniff<'_>, names: &Names) -> Option<Kind> {
    let mut found = Keys::default();
    found.read(sniff.text(), names);
    match () {
        () if found.layer && found.experts && (found.order || found.list) => Some(Kind::Routes),
        () if found.layer && found.experts && found.count => Some(Kind::Counts),
        () if found.layer && found.experts => Some(Kind::Pairs),
        () => None,
    }
}

/// Meanings that stand together in one object, and what objects around it say.
#[derive(Debug, Default, Clone, Copy)]
struct Keys {
    layer: bool,
    experts: bool,
    /// The experts are a list.
    list: bool,
    order: bool,
    count: bool,
}

impl Keys {
    /// Looks at the objects of a text, which may be cut, for one with a layer and experts.
    fn read(&mut self, text: &str, names: &Names) {
        let bytes = text.as_bytes();
        let mut open: Vec<Keys> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'{' => open.push(Keys::default()),
                b'}' => {
                    let Some(done) = open.pop() else { return };
                    let done = done.among(&open);
                    if done.layer && done.experts {
                        *self = done;
                        // How many layers and experts there are stands in headers, too.
                        if done.order || done.list || done.count {
                            return;
                        }
                    }
                }
                b'"' => {
                    let Some(end) = end_of_text(bytes, at) else { break };
                    let rest = bytes[end..].trim_ascii_start();
                    let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
                    if let (Some(value), Some(object)) = (value, open.last_mut())
                        && let Ok(key) = std::str::from_utf8(&bytes[at + 1..end - 1])
                    {
                        object.key(names.find(key).map(|known| known.meaning), value);
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        // The last object may be cut.
        if let Some(cut) = open.iter().rev().find(|keys| keys.layer && keys.experts) {
            *self = *cut;
        }
    }

    /// With the layer and the order that the objects around it have.
    fn among(self, around: &[Self]) -> Self {
        Self {
            layer: self.layer || around.iter().any(|keys| keys.layer),
            order: self.order || around.iter().any(|keys| keys.order),
            ..self
        }
    }

    fn key(&mut self, meaning: Option<Meaning>, value: &[u8]) {
        let first = value.first().copied().unwrap_or(b' ');
        match meaning {
            Some(Meaning::Layer) => self.layer |= first != b'{' && first != b'[',
            Some(Meaning::Experts) if first == b'[' => {
                let inner = value[1..].trim_ascii_start().first().copied().unwrap_or(b' ');
                let numbers = inner.is_ascii_digit() || matches!(inner, b'-' | b'[' | b'"');
                self.experts |= numbers;
                self.list |= numbers;
            }
            Some(Meaning::Experts) => self.experts |= first.is_ascii_digit() || first == b'"',
            Some(Meaning::Token | Meaning::Position | Meaning::TokenId | Meaning::Step) => {
                self.order = true;
            }
            Some(Meaning::Count) => self.count = true,
            _ => {}
        }
    }
}

/// Behind the closing quote of the text that begins at `at`.
fn end_of_text(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'"' => return Some(end + 1),
            _ => end += 1,
        }
    }
    None
}
