//! `docs/policies.md` is made of the registry: what a policy is, and a picture of what it keeps.
//!
//! `HOTSET_WRITE_DOCS=1 cargo test --test main policies_page::` writes it.

use std::path::Path;

use crate::common::{hotset, stderr, stdout};
use hotset::policies::miss::MISS_HANDLERS;
use hotset::policies::{ADMISSIONS, Info, Need, PLACEMENTS, POLICIES, PolicyInfo};
use hotset::sim::predictors;
use hotset::traces::{Codec, Ids, LayerShape, Shape, TraceBuilder, Weights, write_hst};
use serde_json::Value;

const EXPERTS: u32 = 8;
const SLOTS: usize = 4;

/// What each token asks for: a topic, experts that come once, the topic again, another topic.
const ASKED: [[u16; 2]; 40] = {
    const ONE: [[u16; 2]; 4] = [[0, 1], [0, 2], [1, 2], [0, 1]];
    const ONCE: [[u16; 2]; 4] = [[3, 4], [5, 6], [7, 3], [4, 5]];
    const OTHER: [[u16; 2]; 4] = [[5, 6], [6, 0], [5, 7], [6, 5]];
    let mut asked = [[0, 1]; 40];
    let mut token = 0;
    while token < 40 {
        asked[token] = match token {
            0..12 | 16..26 => ONE[token % 4],
            12..16 => ONCE[token % 4],
            _ => OTHER[token % 4],
        };
        token += 1;
    }
    asked
};

/// Who is in a slot before each token, and who was asked for and not there.
struct Picture {
    resident: Vec<[bool; EXPERTS as usize]>,
    missed: Vec<[bool; EXPERTS as usize]>,
}

impl Picture {
    /// What `step` says of each token: who was missing; it changes who is resident.
    fn of(mut step: impl FnMut(usize, &mut [bool; EXPERTS as usize]) -> Vec<usize>) -> Self {
        let mut now = [false; EXPERTS as usize];
        let mut picture = Self { resident: Vec::new(), missed: Vec::new() };
        for token in 0..ASKED.len() {
            let missing = step(token, &mut now);
            let mut missed = [false; EXPERTS as usize];
            missing.iter().for_each(|&expert| missed[expert] = true);
            picture.missed.push(missed);
            picture.resident.push(now);
        }
        picture
    }

    /// The decisions of the real cache, from the log that `hotset conform --record` writes.
    fn recorded(log: &str) -> Self {
        let events: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.len(), ASKED.len());
        Self::of(|token, now| {
            let ids = |list: &Value, of: fn(&Value) -> &Value| -> Vec<usize> {
                let list = list.as_array().into_iter().flatten();
                list.filter_map(|one| Some(of(one).as_u64()? as usize)).collect()
            };
            let event = &events[token];
            for out in ids(&event["dropped"], |left| &left["expert"]) {
                now[out] = false;
            }
            for out in ids(&event["fetches"], |fetch| &fetch["evicted"]["expert"]) {
                now[out] = false;
            }
            let fetched = ids(&event["fetches"], |fetch| &fetch["expert"]);
            fetched.iter().for_each(|&expert| now[expert] = true);
            [fetched, ids(&event["unplaced"], |one| one)].concat()
        })
    }

    /// MIN: what is asked for again last leaves, but none that this token needs.
    fn belady() -> Self {
        let next = |expert: usize, after: usize| {
            let asks = |asked: &[u16; 2]| asked.iter().any(|&one| usize::from(one) == expert);
            ASKED[after..].iter().position(asks).unwrap_or(usize::MAX)
        };
        Self::of(|token, now| {
            let needs = ASKED[token].map(usize::from);
            let missing: Vec<usize> = needs.into_iter().filter(|&expert| !now[expert]).collect();
            for &expert in &missing {
                if now.iter().filter(|&&resident| resident).count() == SLOTS {
                    let may = (0..now.len()).filter(|&old| now[old] && !needs.contains(&old));
                    now[may.max_by_key(|&old| next(old, token + 1)).unwrap()] = false;
                }
                now[expert] = true;
            }
            missing
        })
    }

    /// The experts asked for most, from the beginning to the end.
    fn fixed() -> Self {
        let uses = |expert: usize| {
            ASKED.iter().flatten().filter(|&&one| usize::from(one) == expert).count()
        };
        let mut order: Vec<usize> = (0..EXPERTS as usize).collect();
        order.sort_by_key(|&expert| std::cmp::Reverse(uses(expert)));
        Self::of(|token, now| {
            order[..SLOTS].iter().for_each(|&expert| now[expert] = true);
            ASKED[token].map(usize::from).into_iter().filter(|&expert| !now[expert]).collect()
        })
    }

    fn misses(&self) -> usize {
        self.missed.iter().flatten().filter(|&&missed| missed).count()
    }

    /// A line an expert, a column a token.
    fn text(&self) -> String {
        let mut text = String::new();
        for expert in 0..EXPERTS as usize {
            let mark = |token: usize| {
                let asked = ASKED[token].contains(&(expert as u16));
                match (asked, self.missed[token][expert], self.resident[token][expert]) {
                    (true, true, _) => 'o',
                    (true, false, _) => '#',
                    (false, _, true) => '-',
                    (false, _, false) => ' ',
                }
            };
            let line: String = (0..ASKED.len()).map(mark).collect();
            text.push_str(format!("{expert} {line}").trim_end());
            text.push('\n');
        }
        text.push_str(&format!("{} of {} missing\n", self.misses(), 2 * ASKED.len()));
        text
    }
}

fn trace(path: &Path) {
    let layer = LayerShape { number: 0, experts: EXPERTS, top_k: 2, expert_bytes: 1 << 20 };
    let shape = Shape::new(vec![layer]).unwrap();
    let ids = Ids::U16(ASKED.into_iter().flatten().collect());
    let weights = [0.7, 0.3].repeat(ASKED.len());
    let trace =
        TraceBuilder::new("picture", shape, ids).weights(Weights::F32(weights)).build().unwrap();
    write_hst(&trace, path, Codec::Raw).unwrap();
}

/// The picture of a policy, or why there is none.
fn picture(policy: &PolicyInfo, folder: &Path) -> Result<Picture, String> {
    match policy.name {
        "belady" => return Ok(Picture::belady()),
        "static" => return Ok(Picture::fixed()),
        _ => {}
    }
    let [trace, log] =
        ["picture.hst", "log.jsonl"].map(|name| folder.join(name).display().to_string());
    let slots = SLOTS.to_string();
    let args = ["conform", &trace, "--policy", policy.name, "--capacity", &slots, "--record", &log];
    let output = hotset(&args);
    match output.status.success() {
        true => Ok(Picture::recorded(&std::fs::read_to_string(&log).unwrap())),
        false => Err(stderr(&output)),
    }
}

const HEAD: &str = "\
# Policies

Made of the registry that `hotset policies` prints; `hotset policies NAME` gives the exact rule of one, and its parameters.

The pictures show the real cache, one layer of 8 experts with 4 slots. A column is a token, which asks for two experts: a topic
(experts 0 to 2), four tokens of experts that come once, the topic again, then another topic. `#` was asked for and there, `o`
was asked for and had to be fetched, `-` was kept unasked. A row that goes on as `-` to the end is a slot held for nothing.

A small trace of one pattern ranks nothing: `hotset compare` on your own does. Parameters are typed behind the name, as in
`lfu-decay:half_life=500`.

";

fn page() -> String {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("picture.hst"));
    let mut page = HEAD.to_owned();
    for policy in POLICIES {
        let needs = match policy.needs {
            Need::Nothing => "",
            Need::Weights => " Needs router weights.",
            Need::Embeddings => " Needs embeddings of conversations, else goes by their routes.",
            Need::Future => " Needs the future: a bound, nothing to run.",
            Need::Training => " Needs a part of the trace to train on.",
        };
        page.push_str(&format!(
            "## `{}`\n\n{}.{needs} *{}.*\n\n",
            policy.name,
            sentence(policy.summary),
            policy.source
        ));
        match picture(policy, folder.path()) {
            Ok(picture) => page.push_str(&format!("```text\n{}```\n\n", picture.text())),
            Err(_) if policy.needs == Need::Embeddings => {
                page.push_str("No picture: this trace has no conversations.\n\n");
            }
            Err(_) => {
                page.push_str("No picture: its misses are counted, and no cache runs it.\n\n");
            }
        }
    }
    table(&mut page, "In front of any policy", "--admit NAME", ADMISSIONS);
    table(&mut page, "Placed before the run", "--policy lru+NAME", PLACEMENTS);
    table(&mut page, "What becomes of misses", "--miss NAME", MISS_HANDLERS);
    table(&mut page, "Prefetchers", "--prefetch NAME", &predictors().collect::<Vec<_>>());
    page.truncate(page.trim_end().len());
    page + "\n"
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn table<N>(page: &mut String, title: &str, flag: &str, infos: &[&Info<N>]) {
    page.push_str(&format!("## {title}\n\n| `{flag}` | what it does | source |\n|---|---|---|\n"));
    for info in infos {
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            info.name,
            cell(info.summary),
            cell(info.source)
        ));
    }
    page.push('\n');
}

#[test]
fn the_page_of_policies_is_that_of_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/policies.md");
    let page = page();
    if std::env::var_os("HOTSET_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let stands = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stands == page, "docs/policies.md is old: HOTSET_WRITE_DOCS=1 writes it anew");
    for policy in POLICIES {
        assert!(page.contains(&format!("## `{}`\n", policy.name)), "{}", policy.name);
    }
}

/// The two pictures that no engine's log gives, against the replay core.
#[test]
fn pictures_of_the_bounds_miss_as_often_as_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.hst");
    trace(&path);
    let slots = SLOTS.to_string();
    let flags = ["--policy", "lru,belady", "--capacity", &slots, "--format", "csv"];
    let csv = stdout(&[&["compare", path.to_str().unwrap()], &flags[..]].concat());
    let misses = |policy: &str| -> usize {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let rows: Vec<std::collections::BTreeMap<String, String>> =
            reader.deserialize().map(Result::unwrap).collect();
        rows.iter()
            .filter(|row| row["policy"] == policy && row["window"] == "all")
            .map(|row| row["misses"].parse::<usize>().unwrap())
            .sum()
    };
    assert_eq!(Picture::belady().misses(), misses("belady"));
    let lru = POLICIES.iter().find(|info| info.name == "lru").unwrap();
    assert_eq!(
        picture(lru, folder.path()).unwrap_or_else(|why| panic!("{why}")).misses(),
        misses("lru")
    );
}
