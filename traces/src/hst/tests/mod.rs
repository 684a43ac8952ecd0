//! `.hst` files as they are written and read again; `hostile`: as others may have made them.

mod hostile;

use super::layout::{Header, Kind, PREAMBLE, Stored, preamble};
use super::{Codec, VERSION, write_hst};
use crate::testing::{full_builder, full_trace};
use crate::{Error, Ids, Shape, Trace, TraceBuilder, Weights};

const CONFIG: bincode::config::Configuration = bincode::config::standard();

fn written(trace: &Trace, codec: Codec) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hst");
    write_hst(trace, &path, codec).unwrap();
    std::fs::read(path).unwrap()
}

fn header_len(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize
}

fn header(bytes: &[u8]) -> Header {
    let header = &bytes[PREAMBLE..PREAMBLE + header_len(bytes)];
    bincode::serde::decode_from_slice(header, CONFIG).unwrap().0
}

/// The file with its header changed and every checksum made right again; all offsets move with
/// the header's length, so that `change` is the only fault.
fn forged(bytes: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = header(bytes);
    change(&mut header);
    let mut sections_at = (PREAMBLE + header_len(bytes)).next_multiple_of(64);
    loop {
        let encoded = bincode::serde::encode_to_vec(&header, CONFIG).unwrap();
        let now_at = (PREAMBLE + encoded.len()).next_multiple_of(64);
        if now_at == sections_at {
            return signed(bytes, &encoded);
        }
        // Saturating, so that an absurd forged offset stays absurd, and its encoding as long.
        let by = now_at.abs_diff(sections_at) as u64;
        for section in &mut header.sections {
            section.offset = match now_at > sections_at {
                true => section.offset.saturating_add(by),
                false => section.offset.saturating_sub(by),
            };
        }
        sections_at = now_at;
    }
}

/// The file with these header bytes, its preamble and padding made to fit, the sections moved.
fn signed(bytes: &[u8], header: &[u8]) -> Vec<u8> {
    let sections = (PREAMBLE + header_len(bytes)).next_multiple_of(64);
    let mut out = [&[0; PREAMBLE], header].concat();
    out.resize(out.len().next_multiple_of(64), 0);
    out.extend_from_slice(&bytes[sections..]);
    let preamble = preamble(VERSION, header, out.len() as u64);
    out[..PREAMBLE].copy_from_slice(&preamble);
    out
}

fn refusal(bytes: Vec<u8>) -> Error {
    match Trace::from_bytes(bytes) {
        Err(error) => error,
        Ok(trace) => panic!("accepted: {trace:?}"),
    }
}

fn section(header: &mut Header, kind: Kind) -> &mut super::layout::Section {
    header.sections.iter_mut().find(|section| section.kind == kind).unwrap()
}

/// Every column, large enough that zstd has something to do.
fn larger_trace() -> Trace {
    let shape = Shape::uniform(2, 300, 3).unwrap();
    let ids = (0..600u16).flat_map(|t| [t % 300, (t + 1) % 300, (t + 2) % 300]).collect();
    let weights = (0..1800).map(|n| n as f32 / 8.0).collect();
    TraceBuilder::new("larger", shape, Ids::U16(ids))
        .weights(Weights::F32(weights))
        .build()
        .unwrap()
}

#[test]
fn round_trips_keep_everything() {
    for trace in [full_trace(), larger_trace()] {
        for codec in [Codec::Raw, Codec::Zstd(3), Codec::Zstd(19)] {
            let bytes = written(&trace, codec);
            assert_eq!(written(&trace, codec), bytes, "writing is deterministic");
            let again = Trace::from_bytes(bytes.clone()).unwrap();
            assert!(again == trace, "{codec:?}");
            again.validate().unwrap();
            let leaked: &'static [u8] = Box::leak(bytes.into_boxed_slice());
            assert!(Trace::from_static_bytes(leaked).unwrap() == trace);
        }
    }
}

#[test]
fn a_mapped_file_is_read_in_place_and_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hst");
    write_hst(&larger_trace(), &path, Codec::Raw).unwrap();
    let mapped = Trace::open(&path).unwrap();
    write_hst(&full_trace(), &path, Codec::Zstd(1)).unwrap();
    assert!(mapped == larger_trace(), "the mapped file is untouched by the new one");
    assert!(Trace::open(&path).unwrap() == full_trace());
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "no temporary file is left");
}

#[test]
fn zstd_makes_it_smaller_and_its_sections_say_so() {
    let (raw, packed) =
        (written(&larger_trace(), Codec::Raw), written(&larger_trace(), Codec::Zstd(19)));
    assert!(packed.len() * 2 < raw.len(), "{} against {}", packed.len(), raw.len());
    assert!(header(&packed).sections.iter().any(|section| section.codec == Stored::Zstd));
    assert!(header(&raw).sections.iter().all(|section| section.offset % 64 == 0));
}

#[test]
fn a_failed_write_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hst");
    std::fs::create_dir(&path).unwrap();
    let error = write_hst(&full_trace(), &path, Codec::Raw).unwrap_err();
    assert!(matches!(error, Error::Io { action: "write", .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let absent = folder.path().join("absent").join("trace.hst");
    assert!(matches!(write_hst(&full_trace(), &absent, Codec::Raw), Err(Error::Io { .. })));
    let level = write_hst(&full_trace(), folder.path().join("x"), Codec::Zstd(23)).unwrap_err();
    assert_eq!(level.to_string(), "column codec: zstd level 23; 1 to 22 are possible");
    assert!(!folder.path().join("x").exists());
}

/// A file that is mapped and then written into, its length or only its bytes.
#[test]
fn a_mapped_file_that_changes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.hst");
    let bytes = written(&full_trace(), Codec::Raw);
    std::fs::write(&path, &bytes).unwrap();
    let trace = super::read::open_mapped_above(&path, 0).unwrap();
    assert!(trace.is_mapped());
    trace.check_unchanged().unwrap();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mut other = bytes.clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    std::fs::write(&path, &other).unwrap();
    // Whoever sets the time back is found out by the checksums.
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let told = trace.check_unchanged().unwrap_err().to_string();
    assert!(told.contains("was changed while it was being read"), "{told}");
    std::fs::write(&path, &bytes[..100]).unwrap();
    assert!(matches!(trace.check_unchanged(), Err(Error::Changed { .. })));
    let read = Trace::from_bytes(bytes).unwrap();
    assert!(!read.is_mapped());
    read.check_unchanged().unwrap();
}

#[test]
fn builders_refuse_what_files_may_not_hold() {
    let message = |builder: TraceBuilder| builder.build().unwrap_err().to_string();
    assert!(message(full_builder().positions(vec![0; 6])).contains("has 6 values, expected 7 (7)"));
    assert!(
        message(full_builder().weights(Weights::F32(vec![f32::NAN; 21]))).contains("weight NaN")
    );
    assert!(message(full_builder().weights(Weights::F32(vec![-0.5; 21]))).contains("weight -0.5"));
    assert!(message(full_builder().steps(vec![0, 2, 0, 2, 1, 1, 3])).contains("step 1 follows 2"));
    assert!(message(full_builder().sequences(vec![])).contains("no sequences"));
    assert!(message(full_builder().provenance("not JSON")).contains("column provenance: not JSON"));
    assert!(
        message(full_builder().embeddings(2, vec![0x7c00; 6], vec![0; 6])).contains("not finite")
    );
    let empty = TraceBuilder::new("empty", Shape::uniform(1, 8, 1).unwrap(), Ids::U8(vec![]));
    assert!(message(empty).contains("sequence 0 has no tokens"));
    let ragged = TraceBuilder::new("ragged", Shape::uniform(2, 8, 2).unwrap(), Ids::U8(vec![0; 6]));
    assert!(message(ragged).contains("6 ids are not a whole number of rows of 4"));
}

#[test]
fn digests_ignore_storage_and_see_contents() {
    let shape = || Shape::uniform(1, 200, 2).unwrap();
    let narrow = TraceBuilder::new("a", shape(), Ids::U8(vec![1, 2, 3, 4])).build().unwrap();
    let wide = TraceBuilder::new("b", shape(), Ids::U16(vec![1, 2, 3, 4])).build().unwrap();
    let more = Shape::uniform(1, 500, 2).unwrap();
    let more = TraceBuilder::new("c", more, Ids::U16(vec![1, 2, 3, 4])).build().unwrap();
    assert_eq!(narrow.digest(), wide.digest());
    assert_eq!(narrow.content_digest(), wide.content_digest());
    assert_eq!(narrow.digest(), more.digest(), "the width of the ids is storage");
    assert_ne!(narrow.content_digest(), more.content_digest(), "the experts are contents");
    let weighed = TraceBuilder::new("a", shape(), Ids::U8(vec![1, 2, 3, 4]))
        .weights(Weights::U8(vec![9; 4]))
        .build()
        .unwrap();
    assert_eq!(weighed.digest(), narrow.digest());
    assert_ne!(weighed.content_digest(), narrow.content_digest());
    // BLAKE3 of "hotset routing/1", 1 layer, top-2, 1 sequence, 2 tokens, ids 1 2 3 4, computed
    // apart from this code.
    assert_eq!(narrow.digest(), "e129ff306c77c376562227498320709d");
}
