//! What a Parquet file declares, held against its length before the Parquet library, which
//! allocates what is declared, reads it: nesting and size of the footer, sizes of pages, and how
//! many values are in one list.
//!
//! Source: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use std::fs::File;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};

use super::thrift::{Compact, LIST, STRUCT};

/// Groups in groups of a schema: the library walks them by recursion.
const DEEPEST: usize = 16;
/// What the library keeps in memory for a column of a row group, or of the schema, at most.
const COLUMN: u64 = 1 << 10;
/// A page's header, at most; some carry the least and the largest value.
const HEADER: u64 = 1 << 16;
/// Experts of one token and layer, at most.
pub(super) const LONGEST_LIST: u32 = 1 << 12;

fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// Checks the footer. `allowed`: bytes of memory that reading it may take.
pub(super) fn check_footer(file: &File, allowed: u64) -> Result<()> {
    let len = file.len();
    let end = len.checked_sub(8).ok_or_else(|| damaged("shorter than its footer"))?;
    let tail = file.get_bytes(end, 8)?;
    if tail[4..] != *b"PAR1" {
        return Err(damaged("does not end in PAR1"));
    }
    let size = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    let start = end.checked_sub(size.into()).ok_or_else(|| damaged("shorter than its footer"))?;
    let footer = file.get_bytes(start, size as usize)?;
    let (leaves, groups) =
        footer_counts(&footer).ok_or_else(|| damaged("its footer makes no sense"))?;
    if leaves.saturating_mul(groups.saturating_add(1)).saturating_mul(COLUMN) > allowed {
        let problem = format!(
            "its footer of {size} bytes names {leaves} columns in {groups} row groups: more than \
             fits in {} MiB of memory; write it with larger row groups",
            allowed >> 20
        );
        return Err(damaged(problem));
    }
    Ok(())
}

/// Elements of the schema and row groups; nothing where the schema nests too deep.
fn footer_counts(footer: &[u8]) -> Option<(u64, u64)> {
    let (mut elements, mut groups) = (0, 0);
    Compact::new(footer).fields(|compact, number, kind| match (number, kind) {
        (2, LIST) => {
            elements = schema(compact)?;
            Some(true)
        }
        (4, LIST) => {
            let mut ahead = Compact::new(&footer[compact.position()..]);
            groups = ahead.list()?.0;
            Some(false)
        }
        _ => Some(false),
    })?;
    Some((elements, groups))
}

fn schema(compact: &mut Compact<'_>) -> Option<u64> {
    let (count, kind) = compact.list()?;
    // Children that each open group still lacks.
    let mut open: Vec<i64> = Vec::new();
    for _ in 0..count {
        let mut children = 0;
        if kind != STRUCT {
            return None;
        }
        compact.fields(|compact, number, kind| {
            if (number, kind) != (5, 5) {
                return Some(false);
            }
            children = compact.int()?;
            Some(true)
        })?;
        if let Some(last) = open.last_mut() {
            *last -= 1;
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > DEEPEST {
            return None;
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Some(count)
}

/// What a page's header declares.
struct Header {
    uncompressed: u64,
    compressed: u64,
    /// Values of a dictionary.
    dictionary: Option<u64>,
    size: u64,
}

fn header(bytes: &[u8]) -> Option<Header> {
    let (mut uncompressed, mut compressed, mut dictionary) = (None, None, None);
    let mut compact = Compact::new(bytes);
    compact.fields(|compact, number, kind| match (number, kind) {
        (2, 5) => {
            uncompressed = Some(u64::try_from(compact.int()?).ok()?);
            Some(true)
        }
        (3, 5) => {
            compressed = Some(u64::try_from(compact.int()?).ok()?);
            Some(true)
        }
        (7, STRUCT) => {
            compact.fields(|compact, number, kind| {
                if (number, kind) != (1, 5) {
                    return Some(false);
                }
                dictionary = Some(u64::try_from(compact.int()?).ok()?);
                Some(true)
            })?;
            Some(true)
        }
        _ => Some(false),
    })?;
    let (uncompressed, compressed) = (uncompressed?, compressed?);
    Some(Header { uncompressed, compressed, dictionary, size: compact.position() as u64 })
}

/// Checks the pages of some columns of a row group. `allowed`: bytes of memory that the largest
/// pages of all of them may take together.
pub(super) fn check_pages(
    file: &File,
    group: &RowGroupMetaData,
    leaves: impl Iterator<Item = usize>,
    allowed: u64,
) -> Result<()> {
    let mut needed = 0u64;
    for leaf in leaves {
        needed = needed.saturating_add(largest_pages(file, group.column(leaf))?);
    }
    if needed > allowed {
        let problem = format!(
            "its pages take {} MiB of memory unpacked, and {} MiB is the most for a file of its \
             length; write it with smaller pages",
            needed >> 20,
            allowed >> 20
        );
        return Err(damaged(problem));
    }
    Ok(())
}

/// Bytes of a column's largest dictionary and largest page of data, unpacked.
fn largest_pages(file: &File, column: &ColumnChunkMetaData) -> Result<u64> {
    let name = || column.column_path().string();
    let outside = || damaged(format!("column {}: its pages lie outside the file", name()));
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let mut at = u64::try_from(start).map_err(|_| outside())?;
    let size = u64::try_from(column.compressed_size()).map_err(|_| outside())?;
    let end = at.checked_add(size).filter(|&end| end <= file.len()).ok_or_else(outside)?;
    let (mut dictionaries, mut data) = (0, 0);
    while at < end {
        let page = read_header(file, at, end - at)?.ok_or_else(|| {
            damaged(format!("column {}: the page at byte {at} has no sound header", name()))
        })?;
        at = (at + page.size).checked_add(page.compressed).ok_or_else(outside)?;
        match page.dictionary {
            // A value takes a byte of the page at least, and 32 in memory at most.
            Some(values) if values > page.uncompressed => {
                let problem = format!("column {}: a dictionary of {values} values", name());
                return Err(damaged(format!("{problem} in {} bytes", page.uncompressed)));
            }
            Some(values) => dictionaries = page.uncompressed.max(dictionaries).max(32 * values),
            None => data = page.uncompressed.max(data),
        }
    }
    if at > end {
        return Err(outside());
    }
    Ok(dictionaries.saturating_add(data))
}

/// A header is small nearly always: a little is read first.
fn read_header(file: &File, at: u64, left: u64) -> Result<Option<Header>> {
    let little = file.get_bytes(at, left.min(256) as usize)?;
    match header(&little) {
        None if left > 256 => Ok(header(&file.get_bytes(at, left.min(HEADER) as usize)?)),
        header => Ok(header),
    }
}

/// Pages of lists, none of them longer than [`LONGEST_LIST`]: the library reads whole lists, and a
/// few bytes can say one of billions.
pub(super) struct Lists {
    pub(super) pages: Box<dyn PageReader>,
    /// Values so far of the list that is open.
    pub(super) open: u32,
}

impl Lists {
    fn check(&mut self, page: &Page) -> Result<()> {
        let (levels, values) = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage { buf, num_values, rep_level_encoding, .. } => {
                if *rep_level_encoding != Encoding::RLE {
                    return Err(damaged(format!("levels in {rep_level_encoding} are not read")));
                }
                let size = buf.first_chunk().map_or(0, |size| u32::from_le_bytes(*size)) as usize;
                (buf.get(4..).and_then(|rest| rest.get(..size)), *num_values)
            }
            Page::DataPageV2 { buf, num_values, rep_levels_byte_len, .. } => {
                (buf.get(..*rep_levels_byte_len as usize), *num_values)
            }
        };
        let levels = levels.ok_or_else(|| damaged("repetition levels end after their page"))?;
        self.follow(levels, values).ok_or_else(|| {
            damaged(format!(
                "repetition levels are cut off, or a list has over {LONGEST_LIST} values"
            ))
        })
    }

    /// Goes through repetition levels of one bit: runs, or eight to a byte.
    fn follow(&mut self, levels: &[u8], values: u32) -> Option<()> {
        let mut compact = Compact::new(levels);
        let mut left = u64::from(values);
        while left > 0 {
            let head = compact.varint()?;
            if head & 1 == 0 {
                let count = (head >> 1).min(left);
                left -= count;
                self.open = match compact.byte()? {
                    0 => 1,
                    _ => u32::try_from(count).ok()?.checked_add(self.open)?,
                };
            } else {
                for _ in 0..head >> 1 {
                    let byte = compact.byte()?;
                    for bit in 0..left.min(8) {
                        let goes_on = byte >> bit & 1 == 1;
                        self.open = if goes_on { self.open + 1 } else { 1 };
                    }
                    left -= left.min(8);
                    if self.open > LONGEST_LIST {
                        return None;
                    }
                }
            }
            if self.open > LONGEST_LIST {
                return None;
            }
        }
        Some(())
    }
}

impl PageReader for Lists {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Lists {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer of a schema of groups in groups.
    fn nested(depth: usize) -> Vec<u8> {
        let mut footer = vec![0x29, 0xf0 | STRUCT, depth as u8];
        footer.extend((0..depth).flat_map(|_| [0x55, 0x02, 0]));
        footer.push(0);
        footer
    }

    #[test]
    fn a_schema_that_nests_without_end_is_refused() {
        assert_eq!(footer_counts(&nested(16)), Some((16, 0)));
        assert_eq!(footer_counts(&nested(17)), None);
        // A count without elements.
        assert_eq!(footer_counts(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }

    #[test]
    fn a_list_is_followed_over_runs_bits_and_pages() {
        let mut lists = Lists { pages: Box::new(Nothing), open: 0 };
        // Eight bits 0 1 1 1 0 1 1 1, then a run of four ones.
        assert_eq!(lists.follow(&[0x03, 0b1110_1110, 0x08, 1], 12), Some(()));
        assert_eq!(lists.open, 8);
        // The next page goes on with it; bits past the last value count for nothing.
        assert_eq!(lists.follow(&[0x03, 0b1111_0111], 5), Some(()));
        assert_eq!(lists.open, 2);
        // A run of billions in six bytes; levels that are cut off.
        assert_eq!(lists.follow(&[0xfe, 0xff, 0xff, 0xff, 0x0f, 1], u32::MAX), None);
        assert_eq!(lists.follow(&[0x03], 8), None);
        let long = [0x8b, 0x08].into_iter().chain([0xff; 517]).collect::<Vec<u8>>();
        let mut lists = Lists { pages: Box::new(Nothing), open: 0 };
        assert_eq!(lists.follow(&long, 517 * 8), None);
    }

    struct Nothing;

    impl PageReader for Nothing {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(None)
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    impl Iterator for Nothing {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            None
        }
    }
}
