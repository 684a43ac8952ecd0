//! Files beside routing: pins, hot lists, placements, shares, columns without names. None can be
//! read as a trace; what was found is said, and what would settle it.

use serde_json::Value;

use super::named::{self, Kind};
use super::sniff::Sniff;

/// Why a text that no format claims is not read; nothing where it is like nothing known.
pub(super) fn refusal(sniff: &Sniff<'_>) -> Option<String> {
    if sniff.is_json() {
        return json(sniff);
    }
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
             keep: it has no tokens and no order, so it is not routing, and no counts"
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
