//! Hostile `.hst` files: cut, flipped, forged with sound checksums, mutated at random.
//!
//! Each must end in the right error, in words that name the place, and never in a panic.

use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::super::Codec;
use super::super::layout::{Element, Header, Kind, PREAMBLE, preamble};
use super::{forged, header, header_len, larger_trace, refusal, section, signed, written};
use crate::testing::full_trace;
use crate::{Error, Trace};

#[test]
fn every_truncation_is_refused() {
    for codec in [Codec::Raw, Codec::Zstd(3)] {
        let bytes = written(&full_trace(), codec);
        for length in 0..bytes.len() {
            let error = refusal(bytes[..length].to_vec());
            let expected = match length {
                0 => matches!(error, Error::NotHst { .. }),
                _ => matches!(error, Error::Truncated { .. }),
            };
            assert!(expected, "{length} bytes: {error}");
        }
    }
    let bytes = written(&full_trace(), Codec::Raw);
    let weights = *section(&mut header(&bytes), Kind::Weights);
    let error = refusal(bytes[..weights.offset as usize + 3].to_vec());
    assert_eq!(
        error.to_string(),
        format!(
            "bytes in memory: truncated in section weights: needs {} bytes, the file has {}; copy it again",
            bytes.len(),
            weights.offset + 3
        )
    );
    assert!(refusal(bytes[..100].to_vec()).to_string().contains("truncated in header"));
    assert!(refusal(bytes[..63].to_vec()).to_string().contains("truncated in preamble: needs 64"));
}

#[test]
fn every_flipped_bit_is_refused_where_it_is() {
    for codec in [Codec::Raw, Codec::Zstd(19)] {
        let bytes = written(&larger_trace(), codec);
        let header = header(&bytes);
        let header_end = PREAMBLE + header_len(&bytes);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let message = refusal(damaged).to_string();
            let inside = |s: &&super::super::layout::Section| {
                (s.offset as usize..(s.offset + s.stored) as usize).contains(&at)
            };
            let place = match header.sections.iter().find(inside) {
                _ if at < 8 => "not an .hst file".to_owned(),
                _ if at < 12 => "preamble".to_owned(),
                _ if at < PREAMBLE => "preamble: its checksum is wrong".to_owned(),
                _ if at < header_end => "header: its checksum is wrong".to_owned(),
                Some(section) => format!("section {}: its checksum is wrong", section.kind.name()),
                None => "the padding before it is not zero".to_owned(),
            };
            assert!(message.contains(&place), "byte {at}: {message}, expected {place}");
        }
    }
}

#[test]
fn other_files_and_versions_are_told_apart() {
    let message = |bytes: &[u8]| refusal(bytes.to_vec()).to_string();
    assert!(
        message(b"PK\x03\x04 something").contains("not an .hst file (its first bytes are others)")
    );
    assert!(message(b"").contains("not an .hst file (it is empty)"));
    let bytes = written(&full_trace(), Codec::Raw);
    let mut newer = bytes.clone();
    let head = bytes[PREAMBLE..PREAMBLE + header_len(&bytes)].to_vec();
    newer[..PREAMBLE].copy_from_slice(&preamble(7, &head, bytes.len() as u64));
    assert_eq!(
        message(&newer),
        "bytes in memory: written by a newer hotset (version 7, this one reads up to 1); \
         update hotset or export the trace again"
    );
    let mut unsigned = bytes.clone();
    unsigned[8] = 7;
    let message_of = message(&unsigned);
    assert!(message_of.contains("version 7") && message_of.contains("or damaged"), "{message_of}");
    let mut zero = bytes.clone();
    zero[..PREAMBLE].copy_from_slice(&preamble(0, &head, bytes.len() as u64));
    assert!(message(&zero).contains("preamble: version 0"));
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(message(&longer).contains("1 bytes after the file's end"));
}

#[test]
fn forged_headers_are_refused_before_memory_is_asked_for() {
    let bytes = written(&full_trace(), Codec::Raw);
    assert!(Trace::from_bytes(forged(&bytes, |_| ())).unwrap() == full_trace());
    let message = |change: fn(&mut Header)| refusal(forged(&bytes, change)).to_string();
    let has = |change: fn(&mut Header), part: &str| {
        let message = message(change);
        assert!(message.contains(part), "{message}");
    };
    has(|h| h.sequences[2].tokens = 1 << 60, "section ids: states 21 bytes, the shape and");
    has(|h| h.sequences[2].tokens = u64::MAX, "header: the sequences' tokens overflow");
    has(
        |h| h.sequences[2].tokens = 3,
        "section ids: states 21 bytes, the shape and 8 tokens need 24",
    );
    has(|h| h.sequences.clear(), "section ids: states 21 bytes, the shape and 0 tokens need 0");
    has(|h| h.layers.clear(), "header: model shape: no layers");
    has(|h| h.layers[1].top_k = 5, "header: model shape: layer 1 has top-k 5; 1 to its 4 experts");
    has(|h| h.layers[0].experts = 0, "header: model shape: layer 0 has 0 experts");
    has(|h| h.lookaheads = 1 << 63, "section predictions: states 56 bytes");
    has(|h| h.embedding_dim = u64::MAX, "section embeddings in: states 12 bytes");
    has(|h| section(h, Kind::Ids).stored = 20, "section ids: stored raw in another length");
    has(|h| section(h, Kind::Positions).offset += 64, "section positions: begins at");
    has(|h| section(h, Kind::Ids).offset = u64::MAX - 3, "section ids: begins at");
    has(|h| section(h, Kind::Steps).checksum ^= 1, "section steps: its checksum is wrong");
    has(|h| section(h, Kind::Phases).kind = Kind::Ids, "section ids: twice, or out of order");
    has(
        |h| section(h, Kind::Steps).element = Element::F32,
        "section steps: has elements of type F32",
    );
    has(
        |h| section(h, Kind::Weights).element = Element::U16,
        "section weights: has elements of type U16",
    );
    has(|h| h.provenance = "{".to_owned(), "not JSON");
}

#[test]
fn forged_sections_are_refused() {
    // The last section can be dropped or lengthened without moving the others.
    let bytes = written(&full_trace(), Codec::Raw);
    let last = *section(&mut header(&bytes), Kind::EmbeddingsOut);
    let dropped = forged(&bytes[..last.offset as usize - 52], |h| {
        h.sections.pop();
    });
    let message = refusal(dropped).to_string();
    assert!(message.contains("section embeddings out is missing"), "{message}");

    // A zstd section that is really longer than it states, and one that is shorter.
    let packed = written(&larger_trace(), Codec::Zstd(3));
    let weights = *section(&mut header(&packed), Kind::Weights);
    for length in [weights.raw as usize + 4, weights.raw as usize - 4] {
        let bomb = zstd::bulk::compress(&vec![0; length], 3).unwrap();
        let mut bytes = packed[..weights.offset as usize].to_vec();
        bytes.extend_from_slice(&bomb);
        let bytes = forged(&bytes, |h| {
            let section = section(h, Kind::Weights);
            (section.stored, section.checksum) = (bomb.len() as u64, xxh3_64(&bomb));
        });
        let message = refusal(bytes).to_string();
        assert!(
            message.contains("section weights: does not decompress to its 7200 bytes"),
            "{message}"
        );
    }

    // A section of many zeros, beyond what its stored size may become.
    let bytes = forged(&packed, |h| {
        h.sequences[0].tokens = 1 << 30;
        for section in &mut h.sections {
            section.raw = section.raw / 300 * (1 << 30);
        }
    });
    let message = refusal(bytes).to_string();
    assert!(message.contains("section ids: states 12884901888 bytes from"), "{message}");
}

#[test]
fn values_are_checked_behind_sound_checksums() {
    let bytes = written(&full_trace(), Codec::Raw);
    let spoiled = |kind: Kind, at: usize, value: u8| {
        let place = *section(&mut header(&bytes), kind);
        let range = place.offset as usize..(place.offset + place.stored) as usize;
        let mut bytes = bytes.clone();
        bytes[range.start + at] = value;
        let checksum = xxh3_64(&bytes[range]);
        Trace::from_bytes(forged(&bytes, |h| section(h, kind).checksum = checksum))
    };
    let message = |kind, at, value| spoiled(kind, at, value).unwrap_err().to_string();
    assert_eq!(
        message(Kind::Ids, 4, 8),
        "column ids, token 1, layer 0: expert 8; the layer has experts 0 to 7"
    );
    assert_eq!(
        message(Kind::Ids, 3, 2),
        "column ids, token 1, layer 0: expert 2 is chosen twice in one top-2"
    );
    assert!(message(Kind::Phases, 6, 3).starts_with("column phases, token 6: phase 3"));
    assert!(message(Kind::Positions, 4, 0).starts_with("column positions, token 1: position 0"));
    assert!(message(Kind::Weights, 1, 0xfc).starts_with("column weights, token 0, layer 0"));
    assert_eq!(
        message(Kind::Predictions, 2, 4),
        "column predictions, token 0, layer 1: expert 4 predicted 1 layers before; \
         the layer has experts 0 to 3"
    );
    // That a possible value is not what was written, the digest tells.
    let other = message(Kind::Ids, 4, 3);
    assert!(other.starts_with("column digest: the file states "), "{other}");
    assert!(message(Kind::Weights, 0, 9).starts_with("column content_digest:"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Bytes changed at random: refused, or (where nothing changed) the same trace.
    #[test]
    fn mutated_files_never_panic(
        packed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let trace = full_trace();
        let mut bytes = written(&trace, if packed { Codec::Zstd(3) } else { Codec::Raw });
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(opened) = Trace::from_bytes(bytes) {
            prop_assert!(opened == trace);
        }
    }

    /// The header's bytes changed and signed again, so that what is behind the checksums is met.
    #[test]
    fn mutated_and_signed_headers_never_panic(
        packed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let bytes = written(&larger_trace(), if packed { Codec::Zstd(3) } else { Codec::Raw });
        let mut header = bytes[PREAMBLE..PREAMBLE + header_len(&bytes)].to_vec();
        for (at, value) in changes {
            let at = at.index(header.len());
            header[at] = value;
        }
        if let Ok(opened) = Trace::from_bytes(signed(&bytes, &header)) {
            // Names, labels and expert counts may differ; what opened must hold together.
            opened.sequence_column();
            crate::Stats::of(&opened);
        }
    }

    /// The columns' bytes changed and signed again: refused, or a trace that holds together.
    #[test]
    fn mutated_and_signed_columns_never_panic(
        packed in any::<bool>(),
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let trace = if packed { larger_trace() } else { full_trace() };
        let mut bytes = written(&trace, if packed { Codec::Zstd(3) } else { Codec::Raw });
        let sections = header(&bytes).sections;
        let place = sections[which.index(sections.len())];
        let range = place.offset as usize..(place.offset + place.stored) as usize;
        for (at, value) in changes {
            bytes[range.start + at.index(range.len())] = value;
        }
        let checksum = xxh3_64(&bytes[range]);
        let signed = forged(&bytes, |h| section(h, place.kind).checksum = checksum);
        if let Ok(opened) = Trace::from_bytes(signed) {
            crate::Stats::of(&opened);
            opened.select_sequences(&[0]).unwrap();
        }
    }
}
