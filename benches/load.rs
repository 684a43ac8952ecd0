//! Opening and checking an `.hst` file of 200 million accesses, beside a plain read of the same
//! file and one checksum pass over the same bytes in memory.

mod support;

use std::hint::black_box;
use std::io::Read;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use hotset::traces::{Codec, Trace, write_hst};
use support::large_trace;
use xxhash_rust::xxh3::xxh3_64;

fn loads(criterion: &mut Criterion) {
    let testing = std::env::args().any(|argument| argument == "--test");
    let folder = tempfile::tempdir().expect("there is room for a temporary file");
    let path = folder.path().join("large.hst");
    write_hst(&large_trace(if testing { 200 } else { support::TOKENS }), &path, Codec::Raw)
        .expect("the file can be written");
    let bytes = std::fs::read(&path).expect("the file was just written");

    let mut group = criterion.benchmark_group("load");
    group.throughput(Throughput::BytesDecimal(bytes.len() as u64));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.bench_function("open-and-check", |bencher| {
        bencher.iter(|| Trace::open(&path).expect("the file is valid"));
    });
    group.bench_function("limit-read", |bencher| {
        let mut buffer = vec![0; 1 << 20];
        bencher.iter(|| {
            let mut file = std::fs::File::open(&path).expect("the file is there");
            while file.read(&mut buffer).expect("the file can be read") > 0 {
                black_box(&buffer);
            }
        });
    });
    group.bench_function("limit-checksum", |bencher| bencher.iter(|| xxh3_64(&bytes)));
    group.finish();
}

criterion_group!(benches, loads);
criterion_main!(benches);
