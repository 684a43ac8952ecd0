//! Files beside routing: pins, hot lists, placements, shares, columns without names. None can be
//! read as a trace; what was found is said, and what would settle it.

use serde_json::Value;

use super::named::{self, Kind};
use super::sniff::{Contents, Sniff};

/// Why a file that no format claims is not read: what was found in it, and what would settle it.
pub(super) fn refusal(sniff: &Sniff<'_>) -> String {
    let known = match &sniff.contents {
        Contents::Text(_) if sniff.is_json() => json(sniff),
        Contents::Text(_) => text(sniff),
        _ => None,
    };
    known.unwrap_or_else(|| unknown(sniff))
}

/// What is in a file that is like nothing known.
fn unknown(sniff: &Sniff<'_>) -> String {
    let fix = "give `import::Format` where you know what it is; docs/recording.md has the files that \
               are read";
    let list = |names: &[String]| {
        let shown: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
        shown.join(", ")
    };
    match &sniff.contents {
        Contents::Text(text) if text.trim().is_empty() => {
            "blank: it has no line of text".to_owned()
        }
        Contents::Text(_) => {
            let line: String = sniff.first_line().chars().take(80).collect();
            format!("its first line is {line:?}: no columns, keys or format that are known; {fix}")
        }
        Contents::Npz(names) => format!(
            "arrays {}: none is called as ids or scores of experts are. Name the one that has them \
             topk_ids or router_logits, or one for each layer layer_0, layer_1, ...",
            list(names)
        ),
        Contents::Folder(names) => format!("a folder of {}: {fix}", list(names)),
        _ if matches!(sniff.start[..], [0x80, 2..=5, ..]) => {
            "a Python pickle: reading it would run code of the file, which is never done; save an \
             array of numbers (numpy.save, torch.save)"
                .to_owned()
        }
        _ => {
            let start: Vec<String> =
                sniff.start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!(
                "binary, beginning with {}: no magic number that is known; {fix}",
                start.join(" ")
            )
        }
    }
}

/// Why a text that is no JSON is not read; nothing where it is like nothing known.
fn text(sniff: &Sniff<'_>) -> Option<String> {
    let line = sniff.first_line();
    if named::kind(sniff) == Some(Kind::Pairs) {
        return Some(format!(
            "columns {line}: a layer and an expert, but no column for the token and none for a \
             count. Name them where they are called otherwise (`ImportOptions::columns` \
             token=NAME, or count=NAME); without either, pairs say neither order nor how often"
        ));
    }
    let columns: Vec<&str> =
        line.split([',', '\t', ';', '|', ' ']).map(str::trim).filter(|c| !c.is_empty()).collect();
    if columns.len() < 2 {
        return None;
    }
    let numbers = columns.iter().filter(|text| text.parse::<f64>().is_ok()).count();
    if numbers == columns.len() {
        return Some(format!(
            "{numbers} numbers a line and no header: they may be layer, expert and count, or \
             token, layer and expert, or layer, token and ids. Write the names of the columns as \
             the first line, as in token,layer,expert or layer,expert,count"
        ));
    }
    if numbers > 0 || columns.len() > 64 {
        return None;
    }
    let looks = ["layer", "expert", "token"];
    let lower = line.to_ascii_lowercase();
    looks.iter().any(|word| lower.contains(word)).then(|| {
        let shown: String = line.chars().take(200).collect();
        format!(
            "columns {shown}: none is known as {}. Name them with `ImportOptions::columns`, as in \
             token=NAME,layer=NAME,experts=NAME",
            "a layer beside experts or a count"
        )
    })
}

/// Numbers in JSON, as far as they tell shares from lists of ids.
#[derive(Default)]
struct Numbers {
    /// Lists or objects of fractions.
    fractions: usize,
    /// Lists of whole numbers, all different.
    distinct: usize,
    /// Those that have every number from 0 on.
    rankings: usize,
    lists: usize,
}

impl Numbers {
    fn look(&mut self, value: &Value, depth: usize) {
        if depth > 12 {
            return;
        }
        let children: Vec<&Value> = match value {
            Value::Array(values) => values.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => return,
        };
        let numbers: Vec<f64> = children.iter().filter_map(|value| value.as_f64()).collect();
        if numbers.len() == children.len() && numbers.len() > 1 {
            if numbers.iter().any(|n| n.fract() != 0.0) {
                self.fractions += 1;
            } else if value.is_array() {
                let mut ids: Vec<i64> = numbers.iter().map(|&n| n as i64).collect();
                ids.sort_unstable();
                let distinct = ids.windows(2).all(|pair| pair[0] < pair[1]);
                self.lists += 1;
                self.distinct += usize::from(distinct);
                let whole = ids.first() == Some(&0) && ids.last() == Some(&(ids.len() as i64 - 1));
                self.rankings += usize::from(distinct && whole);
            }
        }
        children.iter().for_each(|child| self.look(child, depth + 1));
    }
}

fn json(sniff: &Sniff<'_>) -> Option<String> {
    let text = sniff.text();
    let mut keys: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = next_key(rest) {
        rest = after;
        let key = key.to_ascii_lowercase();
        if key.parse::<u32>().is_err() && keys.len() < 64 && !keys.contains(&key) {
            keys.push(key);
        }
    }
    let has = |parts: &[&str]| keys.iter().any(|key| parts.iter().any(|part| key.contains(part)));
    let shown = keys.iter().take(16).cloned().collect::<Vec<String>>().join(", ");
    let mut numbers = Numbers::default();
    if let Some(Err(e)) = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()
        && e.is_eof()
        && sniff.is_whole()
    {
        return Some(
            "its first object does not end: the file is cut, or was being written".to_owned(),
        );
    }
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>().take(64) {
        let Ok(document) = document else { break };
        numbers.look(&document, 0);
    }
    let found = if keys.is_empty() { "no keys".to_owned() } else { format!("keys {shown}") };
    let fix = "a trace has the experts of each token in each layer, in order";
    if has(&["device", "placement", "physical", "expert_map", "gpu", "redundant"]) {
        return Some(format!(
            "{found}: a placement, which says on which device the experts of a layer lie; it is no \
             routing and no counts: {fix}"
        ));
    }
    if numbers.fractions > 0 && has(&["score", "share", "prob", "frac", "ratio", "expert", "layer"])
    {
        return Some(format!(
            "{found}: shares or scores, not whole numbers: how many selections they stand for is \
             lost, so that they are no counts and no routing. Record counts of each layer's \
             experts instead"
        ));
    }
    if numbers.lists > 1 && numbers.rankings == numbers.lists {
        return Some(format!(
            "{found}: every expert of each layer once: a ranking (which experts were used most, in \
             order), without counts. Record the counts by which they were ranked"
        ));
    }
    if numbers.lists > 0
        && numbers.distinct == numbers.lists
        && has(&["expert", "layer", "pin", "hot"])
    {
        return Some(format!(
            "{found}: a list of experts for each layer, a selection of experts to pin, train or \
             keep: it has no tokens and no order, so it is not routing, and no counts. Where they \
             are counts, name them: {{\"expert_counts\": ..}}"
        ));
    }
    has(&["expert", "layer", "topk", "top_k", "router", "moe"]).then(|| {
        format!(
            "{found}: none is known as a layer beside experts. Name them with \
             `ImportOptions::columns`, as in token=NAME,layer=NAME,experts=NAME; {fix}"
        )
    })
}

/// The next text before a colon, and what follows it.
fn next_key(text: &str) -> Option<(&str, &str)> {
    let mut rest = text;
    loop {
        let (_, after) = rest.split_once('"')?;
        let (key, after) = after.split_once('"')?;
        if after.trim_start().starts_with(':') {
            return Some((key, after));
        }
        rest = after;
    }
}
