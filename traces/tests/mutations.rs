//! Hostile inputs: every importer gets its own sample, changed at random, over and over. Each
//! answers or refuses; none panics, hangs, or takes more memory than four times its input and
//! 64 MiB. `HOTSET_MUTATIONS=1000000` makes the long run; other seeds by `HOTSET_MUTATION_SEED`.
#![allow(unsafe_code, reason = "counting what is allocated takes an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hotset_traces::testing::inputs::{Contents, Sample, samples};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Random(Pcg64Mcg);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound.max(1) as u128) >> 64) as usize
    }
}

/// What no reading of a few hundred bytes takes, on a slow disk either.
const HANG: Duration = Duration::from_secs(20);

const NUMBERS: [u64; 14] =
    [0, 1, 2, 7, 8, 255, 256, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, !0];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let len = bytes.len();
        let at = random.below(len);
        match random.below(10) {
            0 if len > 0 => bytes[at] ^= 1 << random.below(8),
            1 if len > 0 => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let size = [1, 2, 4, 8][random.below(4)].min(len - at);
                bytes[at..at + size].copy_from_slice(&number[..size]);
            }
            4 => {
                let end = at + random.below(len - at + 1).min(64);
                drop(bytes.drain(at..end));
            }
            5 => {
                let end = at + random.below(len - at + 1).min(64);
                let piece = bytes[at..end].to_vec();
                let to = random.below(len + 1);
                bytes.splice(to..to, piece);
            }
            6 => {
                // Text: a number becomes another.
                let digits = bytes[at..].iter().position(u8::is_ascii_digit);
                if let Some(start) = digits.map(|offset| at + offset) {
                    let number = NUMBERS[random.below(NUMBERS.len())];
                    let sign = if random.below(4) == 0 { "-" } else { "" };
                    bytes.splice(start..start + 1, format!("{sign}{number}").into_bytes());
                }
            }
            7 if len > 0 => bytes[at] = b"[]{},:\"\n-.eE(QRtbu"[random.below(18)],
            8 => {
                let end = at + random.below(len - at + 1).min(16);
                let piece = bytes[at..end].to_vec();
                let many = piece.repeat(random.below(200));
                bytes.splice(at..at, many);
            }
            _ if len > 0 => {
                let other = random.below(len);
                bytes.swap(at, other);
            }
            _ => bytes.push(0),
        }
    }
}

fn mutated(sample: &Sample, random: &mut Random) -> Contents {
    match &sample.contents {
        Contents::Plain(bytes) => {
            let mut bytes = bytes.clone();
            mutate(&mut bytes, random);
            Contents::Plain(bytes)
        }
        // Inside an entry, behind a sound checksum, or the archive itself.
        Contents::Zip(entries) => {
            let mut entries = entries.clone();
            let inside = random.below(8) > 0;
            if inside {
                let entry = if random.below(2) == 0 { 0 } else { random.below(entries.len()) };
                mutate(&mut entries[entry].1, random);
            }
            let mut bytes = Contents::Zip(entries).bytes();
            if !inside {
                mutate(&mut bytes, random);
            }
            Contents::Plain(bytes)
        }
        Contents::Folder(files) => {
            let mut files = files.clone();
            let file = random.below(files.len());
            mutate(&mut files[file].1, random);
            Contents::Folder(files)
        }
    }
}

#[test]
fn every_importer_survives_what_it_is_given() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let runs = number("HOTSET_MUTATIONS").unwrap_or(1500);
    let seed = number("HOTSET_MUTATION_SEED").unwrap_or(0);
    let only = std::env::var("HOTSET_MUTATION_FORMAT").ok();
    for (index, sample) in samples().iter().enumerate() {
        let name = sample.name();
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let whole = sample.read(&sample.contents);
        assert!(whole.is_ok(), "{name}: the sample itself is refused: {:?}", whole.err());
        let mut random = Random(Pcg64Mcg::seed_from_u64(seed ^ (index as u64) << 32));
        let (mut accepted, mut most, mut slowest) = (0u64, 0, Duration::ZERO);
        let start = Instant::now();
        for run in 0..runs {
            let contents = mutated(sample, &mut random);
            let bytes = contents.bytes();
            let before = NOW.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let begun = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| sample.read(&contents).is_ok()));
            let took = begun.elapsed();
            let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
            let limit = 4 * bytes.len() + (64 << 20);
            if result.is_err() || peak > limit || took > HANG {
                let path = std::env::temp_dir().join(format!("hotset-{name}-{run}.bin"));
                std::fs::write(&path, &bytes).unwrap();
                panic!("{name}, run {run}: {peak} bytes, {took:?}: {}", path.display());
            }
            accepted += u64::from(result.unwrap_or(false));
            most = most.max(peak);
            slowest = slowest.max(took);
        }
        println!(
            "{name:<20} {runs} inputs, {accepted} accepted, at most {} KiB and {slowest:.1?}, {:.1?}",
            most >> 10,
            start.elapsed()
        );
    }
}
