//! Just enough of Thrift's compact protocol to look at a Parquet file's footer and page headers
//! before the Parquet library, which allocates what they declare, is given them.
//!
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// Nesting that no Parquet structure comes near.
const DEEPEST: u32 = 32;

/// Compact types: the wire's numbers.
pub(super) const STRUCT: u8 = 12;
pub(super) const LIST: u8 = 9;

/// A cursor over encoded bytes. Everything answers `None` where they end too early or make no
/// sense; nothing allocates.
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A signed number of any width.
    pub(super) fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The fields of a structure: `read` is given number and type of each, and reads it and
    /// answers `Some(true)`, or leaves it to be skipped with `Some(false)`.
    pub(super) fn fields(
        &mut self,
        mut read: impl FnMut(&mut Self, i16, u8) -> Option<bool>,
    ) -> Option<()> {
        let mut number = 0i16;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            number = match header >> 4 {
                0 => i16::try_from(self.int()?).ok()?,
                delta => number.checked_add(delta.into())?,
            };
            let kind = header & 0x0f;
            if !read(self, number, kind)? {
                self.skip(kind, DEEPEST)?;
            }
        }
    }

    /// The head of a list: how many elements, and of what type.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let count = if header >> 4 == 15 { self.varint()? } else { (header >> 4).into() };
        Some((count, header & 0x0f))
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        self.at = (end <= self.bytes.len()).then_some(end)?;
        Some(())
    }

    /// Over a field of a type. Truths are in their header.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            1 | 2 => Some(()),
            3 => self.bytes(1),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8),
            8 => {
                let count = self.varint()?;
                self.bytes(count)
            }
            9 | 10 => {
                let (count, kind) = self.list()?;
                let below = depth.checked_sub(1)?;
                (0..count).try_for_each(|_| self.element(kind, below))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                let below = depth.checked_sub(1)?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, below)?;
                    self.element(kinds & 0x0f, below)
                })
            }
            STRUCT => {
                let below = depth.checked_sub(1)?;
                loop {
                    let header = self.byte()?;
                    if header == 0 {
                        return Some(());
                    }
                    if header >> 4 == 0 {
                        self.varint()?;
                    }
                    self.skip(header & 0x0f, below)?;
                }
            }
            _ => None,
        }
    }

    /// Over an element of a collection, in which a truth has a byte of its own: none is empty, so
    /// that a count past the end of the bytes ends the walk.
    fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.bytes(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_with_their_numbers_and_others_are_passed_over() {
        // 1: i32 -3; 3: binary "ab"; 4: true; 20 (long form): i32 300; 21: list of two i32.
        let bytes =
            [0x15, 0x05, 0x28, 2, b'a', b'b', 0x11, 0x05, 0x28, 0xd8, 0x04, 0x19, 0x25, 2, 4, 0];
        let mut seen = Vec::new();
        let mut compact = Compact::new(&bytes);
        let whole = compact.fields(|compact, number, kind| {
            if kind != 5 {
                return Some(false);
            }
            seen.push((number, compact.int()?));
            Some(true)
        });
        assert_eq!(whole, Some(()));
        assert_eq!(seen, [(1, -3), (20, 300)]);
        assert_eq!(compact.position(), bytes.len());
    }

    #[test]
    fn what_ends_early_or_nests_without_end_is_nothing() {
        let skips = |bytes: &[u8]| Compact::new(bytes).fields(|_, _, _| Some(false));
        assert_eq!(skips(&[]), None);
        assert_eq!(skips(&[0x15, 0x80]), None);
        // Text of four gigabytes, a list of as many structures, a hundred structures deep.
        assert_eq!(skips(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]), None);
        assert_eq!(skips(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]), None);
        assert_eq!(skips(&[0x1c; 100]), None);
        // A type that there is not; a number of more than 64 bits.
        assert_eq!(skips(&[0x1e, 0]), None);
        assert_eq!(skips(&[0x16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0]), None);
    }
}
