//! Raw timings to medians.
//!
//! The file is `device,link,mode,bytes,transfers,ms`, one row a repeat. The median of a point's repeats is what the fit
//! sees: a copy that another tenant disturbed moves a mean and not a median.

use std::collections::BTreeMap;
use std::io::Read;

use super::error::FitError;
use crate::picos::{MIB, Picos};

/// Columns that the file must have; others are ignored.
const COLUMNS: [&str; 6] = ["device", "link", "mode", "bytes", "transfers", "ms"];
/// A point that takes longer than a day was not measured in milliseconds.
const LONGEST_MS: f64 = 86_400_000.0;

/// Median time in picoseconds by bytes and transfers.
pub(super) type Points = BTreeMap<(u64, u32), u64>;

/// All points of a file, by link and mode.
#[derive(Debug)]
pub(super) struct Table {
    /// The first device named: the accelerator.
    pub device: String,
    modes: BTreeMap<String, BTreeMap<String, Points>>,
}

impl Table {
    pub(super) fn read(reader: impl Read) -> Result<Self, FitError> {
        let mut csv = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(reader);
        let columns = locate_columns(csv.headers()?)?;
        let mut device = None;
        let mut repeats: BTreeMap<(String, String, u64, u32), Vec<u64>> = BTreeMap::new();
        for record in csv.records() {
            let record = record?;
            let row = Row::parse(&record, &columns)?;
            device.get_or_insert(row.device);
            repeats.entry((row.link, row.mode, row.bytes, row.transfers)).or_default().push(row.ps);
        }
        let mut modes: BTreeMap<String, BTreeMap<String, Points>> = BTreeMap::new();
        for ((link, mode, bytes, transfers), mut times) in repeats {
            let points = modes.entry(link).or_default().entry(mode).or_default();
            points.insert((bytes, transfers), median(&mut times));
        }
        Ok(Self { device: device.ok_or(FitError::NoLinks)?, modes })
    }

    /// The links of the file, without the accelerator's own memory and the host's cores.
    pub(super) fn links(&self) -> impl Iterator<Item = &str> {
        self.modes.keys().map(String::as_str).filter(|link| !matches!(*link, "hbm" | "cpu"))
    }

    /// The modes in which a link was measured.
    pub(super) fn modes(&self, link: &str) -> impl Iterator<Item = (&str, &Points)> {
        let modes = self.modes.get(link).into_iter().flatten();
        modes.map(|(mode, points)| (mode.as_str(), points))
    }

    /// A link's points in one mode.
    pub(super) fn points(&self, link: &str, mode: &str) -> Option<&Points> {
        self.modes.get(link)?.get(mode)
    }
}

struct Row {
    device: String,
    link: String,
    mode: String,
    bytes: u64,
    transfers: u32,
    ps: u64,
}

impl Row {
    fn parse(record: &csv::StringRecord, columns: &[usize; 6]) -> Result<Self, FitError> {
        let line = record.position().map_or(0, csv::Position::line);
        let bad = |why: String| FitError::BadRow { line, why };
        let field = |index: usize| record.get(columns[index]).unwrap_or_default();
        let [device, link, mode] = [0, 1, 2].map(|index| field(index).to_owned());
        for (name, text) in COLUMNS.iter().zip([&device, &link, &mode]) {
            if text.is_empty() {
                return Err(bad(format!("{name} is empty")));
            }
        }
        let bytes: u64 = field(3)
            .parse()
            .ok()
            .filter(|bytes| (1..=1 << 50).contains(bytes))
            .ok_or_else(|| bad(format!("bytes is `{}`, must be 1 to 2^50", field(3))))?;
        // A round of kernels without copies is the zero of the `chain` mode.
        let fewest = u32::from(mode != "chain");
        let transfers: u32 = field(4)
            .parse()
            .ok()
            .filter(|transfers| (fewest..=1 << 20).contains(transfers))
            .ok_or_else(|| bad(format!("transfers is `{}`, must be {fewest} to 2^20", field(4))))?;
        let ms: f64 =
            field(5).parse().ok().filter(|ms| *ms > 0.0 && *ms <= LONGEST_MS).ok_or_else(|| {
                bad(format!("ms is `{}`, must be over 0 and under a day", field(5)))
            })?;
        Ok(Self { device, link, mode, bytes, transfers, ps: Picos::from_ms_f64(ms).0.max(1) })
    }
}

fn locate_columns(headers: &csv::StringRecord) -> Result<[usize; 6], FitError> {
    let position = |name: &str| headers.iter().position(|header| header == name);
    let missing: Vec<String> =
        COLUMNS.into_iter().filter(|name| position(name).is_none()).map(str::to_owned).collect();
    if missing.is_empty() {
        Ok(COLUMNS.map(|name| position(name).unwrap_or_default()))
    } else {
        Err(FitError::MissingColumns { missing, needed: &COLUMNS })
    }
}

/// The middle value; of an even number, the mean of the middle two. `times` is not empty.
pub(super) fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    let middle = times.len() / 2;
    if times.len() % 2 == 1 { times[middle] } else { times[middle - 1].midpoint(times[middle]) }
}

/// The rate in bytes a second of so many transfers that took so long together.
pub(super) fn bytes_per_second(bytes: u64, transfers: u32, ps: u64) -> f64 {
    bytes as f64 * f64::from(transfers) / (ps as f64 * 1e-12)
}

/// A rate for a person.
pub(super) fn show_rate(bytes_per_second: f64) -> String {
    let gib = bytes_per_second / (MIB as f64 * 1024.0);
    if gib >= 0.1 { format!("{gib:.1} GiB/s") } else { format!("{:.3} MiB/s", gib * 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "device,link,mode,bytes,transfers,ms\n";

    fn read(rows: &str) -> Result<Table, FitError> {
        Table::read(format!("{HEADER}{rows}").as_bytes())
    }

    fn refusal(rows: &str) -> String {
        read(rows).unwrap_err().to_string()
    }

    #[test]
    fn repeats_become_their_median() {
        let rows = "D,l,copy,8,1,0.003\nD,l,copy,8,1,9.0\nD,l,copy,8,1,0.002\nD,l,copy,8,2,1\nD,l,copy,8,2,2\n";
        let table = read(rows).unwrap();
        let points = table.points("l", "copy").unwrap();
        assert_eq!(points[&(8, 1)], 3_000_000);
        assert_eq!(points[&(8, 2)], 1_500_000_000);
        assert_eq!(table.device, "D");
        assert_eq!(table.links().collect::<Vec<_>>(), ["l"]);
    }

    #[test]
    fn missing_columns_are_named() {
        let error = Table::read("device,link,bytes,ms\nD,l,1,1\n".as_bytes()).unwrap_err();
        assert!(matches!(error, FitError::MissingColumns { .. }));
        assert_eq!(
            error.to_string(),
            "the links file lacks the columns mode, transfers; it needs \
             device,link,mode,bytes,transfers,ms"
        );
    }

    #[test]
    fn times_must_be_positive_numbers() {
        for ms in ["0", "-1", "NaN", "inf", "fast", "", "1e12"] {
            let error = refusal(&format!("D,l,copy,8,1,1\nD,l,copy,8,1,{ms}\n"));
            assert_eq!(
                error,
                format!("links file, line 3: ms is `{ms}`, must be over 0 and under a day")
            );
        }
    }

    #[test]
    fn sizes_and_counts_must_be_positive() {
        assert!(refusal("D,l,copy,0,1,1\n").contains("line 2: bytes is `0`, must be 1"));
        assert!(refusal("D,l,copy,-5,1,1\n").contains("bytes is `-5`"));
        assert!(refusal("D,l,copy,8,0,1\n").contains("transfers is `0`, must be 1"));
        assert!(read("D,hbm,chain,8,0,1\n").is_ok(), "rounds without copies");
        assert!(refusal("D,,copy,8,1,1\n").contains("link is empty"));
        assert!(refusal("D,l,copy,8,1\n").contains("found record with 5 fields"));
    }

    #[test]
    fn no_rows_is_no_measurement() {
        assert!(matches!(read("").unwrap_err(), FitError::NoLinks));
    }
}
