//! Records out of JSON: lines, arrays, pretty printed, one inside another.
//!
//! Objects are cut out of the stream by their brackets, so that neither lines nor the size of an
//! array matter; each is read by the names of its keys straight into a [`Record`].

use std::fmt;
use std::io::BufRead;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::names::{Known, Meaning, Names};
use super::record::{Record, Requests, Scalar, no_id};
use crate::error::Result;
use crate::import::input::{Input, Stream};
use crate::import::lines::at_line;

/// Bytes of one object, at most.
const MAX_OBJECT: usize = 256 << 20;
/// Objects inside objects, at most.
const MAX_DEPTH: usize = 16;

/// Takes records, with the number of the line at which each object begins.
pub(in crate::import) trait Sink {
    /// One record.
    fn record(&mut self, record: &mut Record) -> Result<(), String>;

    /// An object whose records are in lists inside it begins, and is a sequence of its own unless
    /// it names one.
    fn group(&mut self);

    /// An object without any expert: a header, or another event.
    fn other(&mut self, record: &Record, keys: &[String]);
}

/// Cuts objects out of a stream.
struct Objects<'a, 'b> {
    stream: &'b mut Stream<'a>,
    line: u64,
}

impl Objects<'_, '_> {
    /// The next object, and the line where it begins. What stands between objects is passed over:
    /// brackets of lists, commas, comments.
    fn next(&mut self, input: &Input<'_>, object: &mut Vec<u8>) -> Result<Option<u64>> {
        object.clear();
        let (mut depth, mut quoted, mut escaped, mut comment) = (0usize, false, false, false);
        let mut begun = self.line;
        loop {
            let bytes = self.stream.fill_buf().map_err(|e| input.io(e))?;
            if bytes.is_empty() {
                return match depth {
                    0 => Ok(None),
                    _ => Err(at_line(input, begun, "an object that does not end")),
                };
            }
            let (mut start, mut end, mut done) = (if depth > 0 { 0 } else { usize::MAX }, 0, false);
            for (at, &byte) in bytes.iter().enumerate() {
                end = at + 1;
                match byte {
                    b'\n' => {
                        self.line += 1;
                        comment = false;
                    }
                    _ if comment => {}
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' if depth > 0 => quoted = !quoted,
                    _ if quoted => {}
                    b'{' => {
                        if depth == 0 {
                            (start, begun) = (at, self.line);
                        }
                        depth += 1;
                    }
                    b'}' if depth > 0 => {
                        depth -= 1;
                        if depth == 0 {
                            done = true;
                            break;
                        }
                    }
                    b'#' | b'/' if depth == 0 => comment = true,
                    _ => {}
                }
            }
            if start < end {
                object.extend_from_slice(&bytes[start..end]);
            }
            self.stream.consume(end);
            if object.len() > MAX_OBJECT {
                let most = MAX_OBJECT >> 20;
                return Err(at_line(input, begun, format!("an object of over {most} MiB")));
            }
            if done {
                return Ok(Some(begun));
            }
        }
    }
}

/// Reads all objects of a stream.
pub(super) fn read(
    input: &Input<'_>,
    stream: &mut Stream<'_>,
    names: &Names,
    requests: &mut Requests,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut objects = Objects { stream, line: 1 };
    let mut object = Vec::new();
    let mut keys = Keys { names, seen: Vec::new() };
    let mut record = Record::default();
    while let Some(line) = objects.next(input, &mut object)? {
        record.clear();
        let read = one(&object, &mut keys, requests, sink, &mut record);
        let read = match read {
            // Python writes NaN where JSON has no word for it.
            Err(_) if has_nan(&object) => {
                without_nan(&mut object);
                record.clear();
                one(&object, &mut keys, requests, sink, &mut record)
            }
            other => other,
        };
        read.map_err(|problem| at_line(input, line, problem))?;
    }
    Ok(())
}

fn one(
    object: &[u8],
    keys: &mut Keys<'_>,
    requests: &mut Requests,
    sink: &mut dyn Sink,
    record: &mut Record,
) -> Result<(), String> {
    let mut deserializer = serde_json::Deserializer::from_slice(object);
    let seed = Object { keys, requests, sink, record, depth: 0 };
    seed.deserialize(&mut deserializer).map_err(|e| e.to_string())
}

const NANS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

fn has_nan(object: &[u8]) -> bool {
    NANS.iter().any(|nan| object.windows(nan.len()).any(|part| part == *nan))
}

/// Writes `null` for what is no number, outside of texts.
fn without_nan(object: &mut Vec<u8>) {
    let mut out = Vec::with_capacity(object.len());
    let (mut at, mut quoted) = (0, false);
    while at < object.len() {
        let rest = &object[at..];
        if !quoted && let Some(nan) = NANS.iter().find(|nan| rest.starts_with(nan)) {
            out.extend_from_slice(b"null");
            at += nan.len();
            continue;
        }
        if quoted && rest[0] == b'\\' && rest.len() > 1 {
            out.extend_from_slice(&rest[..2]);
            at += 2;
            continue;
        }
        quoted ^= rest[0] == b'"';
        out.push(rest[0]);
        at += 1;
    }
    *object = out;
}

/// What keys mean: objects of a file have the same in the same order, so the last answers are
/// looked at first.
struct Keys<'a> {
    names: &'a Names,
    seen: Vec<(String, Option<Known>)>,
}

/// Keys that are remembered.
const MAX_SEEN: usize = 256;

impl Keys<'_> {
    fn find(&mut self, at: usize, key: &str) -> Option<Known> {
        match self.seen.get(at) {
            Some((seen, known)) if seen == key => *known,
            _ => {
                let known = self.names.find(key);
                if at < self.seen.len() {
                    self.seen[at] = (key.to_owned(), known);
                } else if at == self.seen.len() && at < MAX_SEEN {
                    self.seen.push((key.to_owned(), known));
                }
                known
            }
        }
    }
}

/// An object that is read into a record.
struct Object<'a, 'n> {
    keys: &'a mut Keys<'n>,
    requests: &'a mut Requests,
    sink: &'a mut dyn Sink,
    record: &'a mut Record,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.depth > MAX_DEPTH {
            return Err(A::Error::custom(format!("objects inside {MAX_DEPTH} objects")));
        }
        let mut inside = false;
        let mut at = 0;
        let mut unknown = Vec::new();
        while let Some(KeyOf { known, name }) =
            map.next_key_seed(KeySeed { keys: self.keys, at })?
        {
            at += 1;
            if known.is_none() && unknown.len() < MAX_DEPTH {
                unknown.extend(name);
            }
            inside |= map.next_value_seed(Field {
                keys: self.keys,
                requests: self.requests,
                sink: self.sink,
                record: self.record,
                depth: self.depth,
                known,
            })?;
        }
        if inside {
            return Ok(());
        }
        if self.record.ids.values.is_empty() && self.record.ids.rows.is_empty() {
            self.sink.other(self.record, &unknown);
            return Ok(());
        }
        self.sink.record(self.record).map_err(A::Error::custom)
    }
}

struct KeyOf {
    known: Option<Known>,
    /// The name, where it is not known.
    name: Option<String>,
}

struct KeySeed<'a, 'n> {
    keys: &'a mut Keys<'n>,
    at: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = KeyOf;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyOf, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = KeyOf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<KeyOf, E> {
        let known = self.keys.find(self.at, key);
        // Names of small headers are wanted for messages; those of many lines are not.
        let name = (known.is_none() && self.at < MAX_DEPTH).then(|| key.to_owned());
        Ok(KeyOf { known, name })
    }
}

/// The value of a key; true where it holds records of its own.
struct Field<'a, 'n> {
    keys: &'a mut Keys<'n>,
    requests: &'a mut Requests,
    sink: &'a mut dyn Sink,
    record: &'a mut Record,
    depth: usize,
    known: Option<Known>,
}

impl Field<'_, '_> {
    fn set<E: serde::de::Error>(self, value: Scalar<'_>) -> Result<bool, E> {
        if let Some(known) = self.known {
            self.record.set(known, value, self.requests).map_err(E::custom)?;
        }
        Ok(false)
    }
}

impl<'de> DeserializeSeed<'de> for Field<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Field<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<bool, E> {
        self.set(Scalar::Int(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<bool, E> {
        self.set(i64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Int))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<bool, E> {
        self.set(Scalar::Float(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<bool, E> {
        // In JSON a number has no quotes: this is the token's text.
        if self.known.is_some_and(|known| known.meaning == Meaning::Token) {
            return Ok(false);
        }
        self.set(Scalar::Text(text))
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<bool, E> {
        match self.known.map(|known| known.meaning) {
            Some(Meaning::IsPrefill | Meaning::IsDecode) => self.set(Scalar::Int(flag.into())),
            _ => Ok(false),
        }
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let Field { keys, requests, sink, record, depth, known } = self;
        let meaning = known.map(|known| known.meaning);
        let known = known.filter(|_| matches!(meaning, Some(Meaning::Experts | Meaning::Weights)));
        let begun = match (known, meaning) {
            (Some(known), Some(Meaning::Experts)) => record.ids.begin(known),
            (Some(known), _) => record.weights.begin(known),
            _ => false,
        };
        let target = if begun { meaning } else { None };
        let mut inner = false;
        let mut record_inside = Record::default();
        loop {
            let element = Element {
                keys,
                requests,
                sink,
                outer: record,
                inside: &mut record_inside,
                depth,
                target,
                group: !inner,
            };
            match seq.next_element_seed(element)? {
                None => return Ok(inner),
                Some(found) => inner |= found,
            }
        }
    }
}

/// An element of a list: a number, a row of numbers, or an object with a record; true for those.
struct Element<'a, 'n> {
    keys: &'a mut Keys<'n>,
    requests: &'a mut Requests,
    sink: &'a mut dyn Sink,
    outer: &'a mut Record,
    inside: &'a mut Record,
    depth: usize,
    target: Option<Meaning>,
    /// It is the first object of its list.
    group: bool,
}

impl<'de> DeserializeSeed<'de> for Element<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a list or an object")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<bool, E> {
        match self.target {
            Some(Meaning::Experts) => self.outer.ids.values.push(number),
            Some(_) => self.outer.weights.values.push(number as f32),
            None => {}
        }
        Ok(false)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<bool, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<bool, E> {
        match self.target {
            Some(Meaning::Experts) if number.fract() == 0.0 => {
                self.outer.ids.values.push(number as i64);
            }
            Some(Meaning::Experts) => {
                return Err(E::custom(no_id(&number.to_string())));
            }
            Some(_) => self.outer.weights.values.push(number as f32),
            None => {}
        }
        Ok(false)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<bool, E> {
        if self.target == Some(Meaning::Experts) {
            let id = text.trim().parse().map_err(|_| E::custom("an expert that is no number"))?;
            self.outer.ids.values.push(id);
        }
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        match self.target {
            Some(Meaning::Experts) => self.outer.ids.values.push(-1),
            Some(_) => self.outer.weights.values.push(f32::NAN),
            None => {}
        }
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        match self.target {
            Some(Meaning::Experts) => {
                let before = self.outer.ids.values.len();
                while let Some(id) = seq.next_element::<i64>()? {
                    self.outer.ids.values.push(id);
                }
                self.outer.ids.rows.push(self.outer.ids.values.len() - before);
            }
            Some(_) => {
                let before = self.outer.weights.values.len();
                while let Some(weight) = seq.next_element::<Option<f32>>()? {
                    self.outer.weights.values.push(weight.unwrap_or(f32::NAN));
                }
                self.outer.weights.rows.push(self.outer.weights.values.len() - before);
            }
            None => while seq.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        if self.group && self.outer.is_container() {
            // What the outer object says of the model, and that a list of records begins.
            self.sink.other(self.outer, &[]);
            self.sink.group();
        }
        self.inside.clear();
        self.inside.inherit(self.outer);
        let Element { keys, requests, sink, inside, depth, .. } = self;
        Object { keys, requests, sink, record: inside, depth: depth + 1 }.visit_map(map)?;
        Ok(true)
    }
}
