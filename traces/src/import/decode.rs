//! What lies around a file's contents: gzip, zstd, a byte order mark, UTF-16.
//!
//! All of it is undone while the file streams, before any format looks. No declared size is
//! believed: what unpacks to more than a packed file of its size explains is refused.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Bytes that any packed file may unpack to.
const FREE: u64 = 1 << 30;
/// How many times its size a larger file may unpack to: a log of alike rows shrinks to a 200th.
const RATIO: u64 = 256;
/// The largest window of a zstd stream, as a power of two: what its own tool accepts.
const WINDOW_LOG: u32 = 27;

/// Bytes that a packed file of so many bytes may unpack to.
pub(super) fn most_unpacked(size: u64) -> u64 {
    size.saturating_mul(RATIO).max(FREE)
}

/// Compression of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// By the magic number at the beginning.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// What a packed file holds.
pub(super) struct Unpacked<R: Read> {
    decoder: Decoder<R>,
    /// Bytes that may still come.
    left: u64,
    most: u64,
}

enum Decoder<R: Read> {
    Gzip(Box<MultiGzDecoder<BufReader<R>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<R>>>),
}

impl<R: Read> Unpacked<R> {
    /// Unpacks `reader` to `most` bytes.
    pub(super) fn new(packing: Packing, reader: R, most: u64) -> io::Result<Self> {
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(BufReader::new(reader)))),
            Packing::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(BufReader::new(reader))?;
                decoder.window_log_max(WINDOW_LOG)?;
                Decoder::Zstd(Box::new(decoder))
            }
        };
        Ok(Self { decoder, left: most, most })
    }

    /// What the packed bytes are read from.
    pub(super) fn into_inner(self) -> R {
        match self.decoder {
            Decoder::Gzip(decoder) => decoder.into_inner().into_inner(),
            Decoder::Zstd(decoder) => decoder.finish().into_inner(),
        }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(buffer),
            Decoder::Zstd(decoder) => decoder.read(buffer),
        }?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let most = self.most >> 20;
            io::Error::other(format!(
                "unpacks to over {most} MiB: unpack it first if that is meant"
            ))
        })?;
        Ok(read)
    }
}

/// How characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf16Le,
    Utf16Be,
}

/// The length of the byte order mark that `start` begins with, and the encoding where it is not
/// UTF-8.
pub(super) fn byte_order_mark(start: &[u8]) -> (usize, Option<Encoding>) {
    match start {
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        [0xff, 0xfe, ..] => (2, Some(Encoding::Utf16Le)),
        [0xfe, 0xff, ..] => (2, Some(Encoding::Utf16Be)),
        _ => (0, None),
    }
}

/// UTF-16 on its way to UTF-8.
#[derive(Debug)]
pub(super) struct Transcoder {
    encoding: Encoding,
    /// A byte whose other half is still to come.
    odd: Option<u8>,
    /// The first half of a surrogate pair.
    high: Option<u16>,
}

impl Transcoder {
    pub(super) fn new(encoding: Encoding) -> Self {
        Self { encoding, odd: None, high: None }
    }

    /// Appends `bytes` as UTF-8; halves of pairs that have no other half become U+FFFD.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            let Some(first) = self.odd.take() else {
                self.odd = Some(byte);
                continue;
            };
            let unit = match self.encoding {
                Encoding::Utf16Le => u16::from_le_bytes([first, byte]),
                Encoding::Utf16Be => u16::from_be_bytes([first, byte]),
            };
            let before = self.high.take();
            if !matches!(unit, 0xd800..=0xdbff) {
                append(char::decode_utf16(before.into_iter().chain([unit])), out);
                continue;
            }
            append(char::decode_utf16(before), out);
            self.high = Some(unit);
        }
    }
}

fn append(
    chars: impl Iterator<Item = Result<char, std::char::DecodeUtf16Error>>,
    out: &mut Vec<u8>,
) {
    for c in chars {
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn utf16_of_both_orders_in_pieces_of_any_size() {
        let text = "layer,expert\r\n\u{1f600}\u{e9},3\n";
        for (encoding, big) in [(Encoding::Utf16Le, false), (Encoding::Utf16Be, true)] {
            let units = text.encode_utf16();
            let bytes: Vec<u8> = units
                .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect();
            for size in [1, 2, 3, 7, 100] {
                let (mut transcoder, mut out) = (Transcoder::new(encoding), Vec::new());
                bytes.chunks(size).for_each(|piece| transcoder.push(piece, &mut out));
                assert_eq!(String::from_utf8(out).unwrap(), text);
            }
        }
        let (mut transcoder, mut out) = (Transcoder::new(Encoding::Utf16Be), Vec::new());
        transcoder.push(&[0xd8, 0, 0xd8, 0, 0, b'a'], &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\u{fffd}\u{fffd}a");
    }

    #[test]
    fn bombs_end() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&vec![0; 3 << 20]).unwrap();
        let packed = packed.finish().unwrap();
        let mut unpacked = Unpacked::new(Packing::Gzip, packed.as_slice(), 1 << 20).unwrap();
        let end = io::copy(&mut unpacked, &mut io::sink()).unwrap_err().to_string();
        assert_eq!(end, "unpacks to over 1 MiB: unpack it first if that is meant");
        assert_eq!(most_unpacked(1000), 1 << 30);
        assert_eq!(most_unpacked(1 << 30), 256 << 30);
    }
}
