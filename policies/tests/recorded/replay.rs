//! The two recorded traces, and replays of them through the real cache in event semantics.

use std::io::{Read, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hotset_policies::{ExpertCache, Future, Key, Policy, PoolShape, Slots};

/// Decode tokens of a trace, one sequence after another.
pub struct Trace {
    pub name: &'static str,
    pub layers: usize,
    pub experts: u32,
    pub top_k: usize,
    /// Expert ids, by token, layer and rank.
    pub ids: Vec<u8>,
    /// The router's weights, likewise.
    pub weights: Vec<f32>,
    /// The first token of the second half of the sequences.
    pub half: usize,
}

/// What of a trace is replayed, cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    All,
    FirstHalf,
    SecondHalf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Global,
    Layer,
}

impl Trace {
    pub fn tokens(&self, part: Part) -> Range<usize> {
        let all = self.ids.len() / (self.layers * self.top_k);
        match part {
            Part::All => 0..all,
            Part::FirstHalf => 0..self.half,
            Part::SecondHalf => self.half..all,
        }
    }

    /// Where an event's ids and weights lie.
    fn event(&self, token: usize, layer: usize) -> Range<usize> {
        let start = (token * self.layers + layer) * self.top_k;
        start..start + self.top_k
    }

    pub fn accesses(&self, part: Part) -> usize {
        self.tokens(part).len() * self.layers * self.top_k
    }

    /// The pools that a scope makes of the layers.
    pub fn pools(&self, scope: Scope) -> Vec<Range<usize>> {
        match scope {
            Scope::Global => std::iter::once(0..self.layers).collect(),
            Scope::Layer => (0..self.layers).map(|layer| layer..layer + 1).collect(),
        }
    }

    /// The accesses of a pool, as keys of the pool.
    pub fn stream(&self, part: Part, pool: &Range<usize>) -> Vec<Key> {
        let mut stream = Vec::new();
        for token in self.tokens(part) {
            for layer in pool.clone() {
                let base = (layer - pool.start) as u32 * self.experts;
                stream.extend(
                    self.ids[self.event(token, layer)].iter().map(|&id| base + u32::from(id)),
                );
            }
        }
        stream
    }

    pub fn future(&self, part: Part, pool: &Range<usize>) -> Arc<Future> {
        let keys = self.experts * pool.len() as u32;
        Arc::new(Future::new(self.stream(part, pool), keys).unwrap())
    }

    /// Uses of each key of a pool.
    pub fn counts(&self, part: Part, pool: &Range<usize>) -> Vec<u64> {
        let mut counts = vec![0; self.experts as usize * pool.len()];
        for key in self.stream(part, pool) {
            counts[key as usize] += 1;
        }
        counts
    }

    fn slots(&self, scope: Scope, slots: u32) -> Slots {
        match scope {
            Scope::Global => Slots::Global(slots),
            Scope::Layer => Slots::Layer(vec![slots; self.layers]),
        }
    }

    /// An empty cache; `policy` is told the pool's number.
    pub fn cache<P: Policy>(
        &self,
        scope: Scope,
        slots: u32,
        policy: impl FnMut(usize, &PoolShape) -> P,
    ) -> ExpertCache<P> {
        let experts = vec![self.experts; self.layers];
        let top_k = vec![self.top_k as u32; self.layers];
        ExpertCache::new(&experts, &top_k, &self.slots(scope, slots), policy).unwrap()
    }

    /// Drives a cache as an engine would and returns its misses.
    pub fn replay<P: Policy>(&self, part: Part, cache: &mut ExpertCache<P>) -> u64 {
        let mut misses = 0;
        for token in self.tokens(part) {
            cache.begin_step(1);
            for layer in 0..self.layers {
                let event = self.event(token, layer);
                let (ids, weights) = (&self.ids[event.clone()], &self.weights[event]);
                let missed = cache.demand_weighted(layer, ids, weights).misses();
                if missed > 0 {
                    misses += u64::from(missed);
                    for &id in ids {
                        cache.complete(layer, u32::from(id));
                    }
                }
                cache.release(layer);
            }
        }
        assert_eq!(cache.validate(), Ok(()));
        misses
    }
}

/// The folder of shared data; `None`, loudly, where this checkout has none beside it.
fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("HOTSET_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    if shared.join("golden/recorded").is_dir() {
        return Some(shared);
    }
    assert!(std::env::var_os("CI").is_none(), "CI has no {}", shared.display());
    // Not eprintln!: the test runner would keep that to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is absent", shared.display());
    None
}

/// Both traces, read once.
pub fn traces() -> Option<&'static [Trace; 2]> {
    static TRACES: OnceLock<Option<[Trace; 2]>> = OnceLock::new();
    TRACES
        .get_or_init(|| {
            let data = shared()?.join("data");
            Some([gpt_oss(&data.join("gpt-oss-20b")), h200_moe(&data.join("h200-moe/routes.npz"))])
        })
        .as_ref()
}

fn gpt_oss(folder: &Path) -> Trace {
    let open = |name| std::io::BufReader::new(std::fs::File::open(folder.join(name)).unwrap());
    let weights = array(open("weights_bf16.npy"), u16::from_le_bytes);
    let sequences = std::fs::read_to_string(folder.join("sequences.csv")).unwrap();
    let rows: Vec<&str> = sequences.lines().skip(1).collect();
    let half = rows[rows.len() / 2].split(',').nth(1).unwrap();
    Trace {
        name: "gpt-oss-20b",
        layers: 24,
        experts: 32,
        top_k: 4,
        ids: array(open("experts.npy"), u8::from_le_bytes),
        weights: weights.into_iter().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect(),
        half: half.parse().unwrap(),
    }
}

fn h200_moe(file: &Path) -> Trace {
    const EVENTS: usize = 16 * 8;
    let mut archive = zip::ZipArchive::new(std::fs::File::open(file).unwrap()).unwrap();
    let phase: Vec<u8> = array(archive.by_name("phase.npy").unwrap(), u8::from_le_bytes);
    let sequence: Vec<u32> = array(archive.by_name("sequence.npy").unwrap(), u32::from_le_bytes);
    let all_ids: Vec<u8> = array(archive.by_name("expert_ids.npy").unwrap(), u8::from_le_bytes);
    let all_weights: Vec<u8> =
        array(archive.by_name("expert_weights.npy").unwrap(), u8::from_le_bytes);
    let decoded: Vec<usize> = (0..phase.len()).filter(|&token| phase[token] == 1).collect();
    let sequences = sequence.iter().max().unwrap() + 1;
    let of_decoded = |all: &[u8]| -> Vec<u8> {
        decoded.iter().flat_map(|token| all[token * EVENTS..][..EVENTS].to_vec()).collect()
    };
    Trace {
        name: "h200-moe",
        layers: 16,
        experts: 64,
        top_k: 8,
        ids: of_decoded(&all_ids),
        weights: of_decoded(&all_weights).into_iter().map(|w| f32::from(w) / 255.0).collect(),
        half: decoded.iter().filter(|&&token| sequence[token] < sequences / 2).count(),
    }
}

/// An `.npy` of unsigned integers of `N` bytes, as this project writes them.
fn array<T, const N: usize>(mut file: impl Read, value: fn([u8; N]) -> T) -> Vec<T> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..start]);
    assert!(header.contains(&format!("u{N}', 'fortran_order': False")), "{header}");
    let (values, rest) = bytes[start..].as_chunks::<N>();
    assert!(rest.is_empty(), "{} bytes too many", rest.len());
    values.iter().map(|&bytes| value(bytes)).collect()
}

/// One row of the golden tables.
pub struct Row {
    pub scope: Scope,
    pub percent: String,
    pub slots: u32,
    pub accesses: u64,
    pub misses: u64,
}

/// The golden rows of a trace with this name, in both scopes.
pub fn rows(trace: &Trace, name: &str) -> Vec<Row> {
    let folder = shared().unwrap().join("golden/recorded");
    let mut rows = Vec::new();
    for (scope, suffix) in [(Scope::Global, "global"), (Scope::Layer, "layer")] {
        let file = folder.join(format!("{}_{suffix}.csv", trace.name));
        let table = std::fs::read_to_string(file).unwrap();
        for fields in table.lines().map(|line| line.split(',').collect::<Vec<_>>()) {
            if fields[0] == name {
                rows.push(Row {
                    scope,
                    percent: fields[1].to_owned(),
                    slots: fields[2].parse().unwrap(),
                    accesses: fields[3].parse().unwrap(),
                    misses: fields[5].parse().unwrap(),
                });
            }
        }
    }
    rows
}
