//! A disk fitted to timings of reads by request size and queue depth.
//!
//! A row is a batch: so many requests of a size, at most `queue_depth` in flight, and the seconds from the first to the
//! last. At depth 1 a request takes latency and transfer; the deepest rows give the transfer; what is left at depth 1 is
//! the latency, the median over sizes.

use std::collections::BTreeMap;
use std::io::Read;

use super::error::FitError;
use super::residuals::Errors;
use super::table::{bytes_per_second, median, show_rate};
use crate::disk::{Disk, PLAUSIBLE, RequestTime};

/// Columns that the file must have; `requests` may follow, others are ignored.
const COLUMNS: [&str; 3] = ["request_bytes", "queue_depth", "seconds"];

/// A disk's profile and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedDisk {
    /// The profile.
    pub disk: Disk,
    /// Distinct sizes and depths that were measured.
    pub points: usize,
    /// Errors of the profile at them.
    pub errors: Errors,
    /// For a person to read before believing the profile.
    pub warnings: Vec<String>,
}

/// Median picoseconds of a batch, and its requests, by size and depth.
type Batches = BTreeMap<(u64, u32), (u64, u64)>;

/// Fits a disk to timings: CSV with columns `request_bytes,queue_depth,seconds`, and `requests` where a batch is not as
/// many as are in flight.
///
/// # Errors
/// [`FitError`] when a column is missing, a value is impossible, or nothing is measured.
pub fn fit_disk(reader: impl Read, name: &str, source: &str) -> Result<FittedDisk, FitError> {
    let batches = read(reader)?;
    let sizes: Vec<u64> = {
        let mut sizes: Vec<u64> = batches.keys().map(|&(bytes, _)| bytes).collect();
        sizes.dedup();
        sizes
    };
    let mut warnings = Vec::new();
    let alone = |bytes| batches.get(&(bytes, 1)).map(|&(ps, requests)| ps / requests);
    let mut transfers: Vec<RequestTime> = Vec::new();
    let mut latencies = Vec::new();
    for &bytes in &sizes {
        let first = alone(bytes);
        let of_size = batches.range((bytes, 0)..=(bytes, u32::MAX));
        let each = of_size.map(|(_, &(ps, requests))| match first {
            Some(first) if requests > 1 && ps > first => (ps - first) / (requests - 1),
            _ => ps / requests,
        });
        let slowest_before = transfers.last().map_or(1, |last| last.ps);
        let ps = each.min().unwrap_or(0).max(slowest_before);
        let rate = bytes_per_second(bytes, 1, ps);
        if !PLAUSIBLE.contains(&rate) {
            return Err(FitError::DiskRate { bytes, rate: show_rate(rate) });
        }
        latencies.extend(first.map(|first| first.saturating_sub(ps)));
        transfers.push(RequestTime { bytes, ps });
    }
    if latencies.is_empty() {
        let told = "nothing was measured at depth 1, so that no latency is known: it is taken as 0";
        warnings.push(told.to_owned());
        latencies.push(0);
    }
    let queue_depth = batches.keys().map(|&(_, depth)| depth).max().unwrap_or(1);
    if queue_depth == 1 {
        let told =
            "everything was measured at depth 1: what more requests in flight give is not known";
        warnings.push(told.to_owned());
    }
    if let [only] = transfers[..] {
        warnings.push(format!("one size alone, {} bytes, is taken as the rate of all", only.bytes));
    }
    let disk = Disk {
        source: source.to_owned(),
        latency_ps: median(&mut latencies),
        queue_depth,
        transfers,
        ..Disk::of_rate(name, 1e9, 0.0)
    };
    let errors = batches
        .iter()
        .map(|(&(bytes, depth), &(ps, requests))| {
            let at = Disk { queue_depth: depth, ..disk.clone() };
            let behind = at.queued_ps(bytes).saturating_mul(requests - 1);
            (at.read_ps(bytes).saturating_add(behind) as f64 / ps as f64 - 1.0).abs()
        })
        .collect();
    let errors = Errors::of(errors);
    warnings.extend(errors.doubt("the disk"));
    Ok(FittedDisk { disk, points: batches.len(), errors, warnings })
}

fn read(reader: impl Read) -> Result<Batches, FitError> {
    let mut csv = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(reader);
    let headers = csv.headers()?.clone();
    let place = |name: &str| headers.iter().position(|header| header == name);
    let missing: Vec<String> =
        COLUMNS.into_iter().filter(|name| place(name).is_none()).map(str::to_owned).collect();
    if !missing.is_empty() {
        return Err(FitError::MissingColumns { missing, needed: &COLUMNS });
    }
    let mut repeats: BTreeMap<(u64, u32), Vec<(u64, u64)>> = BTreeMap::new();
    for record in csv.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let field =
            |name: &str| place(name).and_then(|place| record.get(place)).unwrap_or_default();
        let number = |name: &str, most: u64| {
            let text = field(name);
            text.parse::<u64>().ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| {
                FitError::BadRow { line, why: format!("{name} is `{text}`, must be 1 to {most}") }
            })
        };
        let bytes = number("request_bytes", 1 << 40)?;
        let depth = number("queue_depth", 65_536)?;
        let requests = match field("requests") {
            "" => depth,
            _ => number("requests", 1 << 40)?,
        };
        let text = field("seconds");
        let seconds: f64 =
            text.parse().ok().filter(|s| *s > 0.0 && *s <= 86_400.0).ok_or_else(|| {
                let why = format!("seconds is `{text}`, must be over 0 and at most a day");
                FitError::BadRow { line, why }
            })?;
        let ps = ((seconds * 1e12).round() as u64).max(requests);
        repeats.entry((bytes, depth as u32)).or_default().push((ps, requests));
    }
    let middle = |mut all: Vec<(u64, u64)>| {
        all.sort_by(|a, b| {
            (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
        });
        all[(all.len() - 1) / 2]
    };
    let batches: Batches = repeats.into_iter().map(|(key, all)| (key, middle(all))).collect();
    if batches.is_empty() { Err(FitError::NoReads) } else { Ok(batches) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_comes_back_from_its_own_timings() {
        // 100 us, then 250 us for a MiB and 40 us for 128 KiB.
        let text = "name = \"d\"\nlatency_us = 100\nqueue_depth = 16\n\
                    [[rates]]\nrequest_bytes = 131072\nmb_per_s = 3276.8\n\
                    [[rates]]\nrequest_bytes = 1048576\nmb_per_s = 4194.304\n";
        let disk = Disk::from_toml(text, "d").unwrap();
        let mut csv = "request_bytes,queue_depth,seconds\n".to_owned();
        for bytes in [131_072, 1 << 20] {
            for depth in [1u32, 2, 16] {
                let at = Disk { queue_depth: depth, ..disk.clone() };
                let ps = at.read_ps(bytes) + at.queued_ps(bytes) * u64::from(depth - 1);
                csv.push_str(&format!("{bytes},{depth},{}\n", ps as f64 * 1e-12));
            }
        }
        let fitted = fit_disk(csv.as_bytes(), "d", "").unwrap();
        assert_eq!((fitted.points, fitted.disk), (6, disk));
        assert!(fitted.errors.max < 1e-9 && fitted.warnings.is_empty());
    }

    #[test]
    fn timings_that_no_disk_explains_are_doubted() {
        // A larger request that takes a tenth of the time of a smaller one.
        let rows = "request_bytes,queue_depth,seconds\n4096,1,0.01\n65536,1,0.001\n4096,8,0.09\n65536,8,0.009\n";
        let fitted = fit_disk(rows.as_bytes(), "d", "").unwrap();
        assert!(fitted.errors.max > 0.5, "{:?}", fitted.errors);
        assert!(fitted.warnings.iter().any(|told| told.contains("the disk fits badly")));
        let read = Disk::from_toml(&fitted.disk.to_toml().unwrap(), "d").unwrap();
        assert_eq!(read.transfers.len(), 2, "what is written can be read");
    }

    #[test]
    fn files_that_measure_nothing_are_told() {
        let told = |text: &str| fit_disk(text.as_bytes(), "d", "").unwrap_err().to_string();
        assert!(told("bytes,seconds\n1,1\n").contains("request_bytes, queue_depth"));
        assert!(told("request_bytes,queue_depth,seconds\n").contains("no measurement"));
        let rows = "request_bytes,queue_depth,seconds\n4096,0,1\n";
        assert!(told(rows).contains("line 2: queue_depth is `0`"));
        // Milliseconds for seconds, or a day a read: no profile that could be read back.
        let slow = "request_bytes,queue_depth,seconds\n65536,1,86400\n";
        assert!(told(slow).contains("reads of 65536 bytes") && told(slow).contains("in seconds"));
        let fast = "request_bytes,queue_depth,seconds\n1099511627776,1,0.000001\n";
        assert!(told(fast).contains("a disk gives 0.1 MB/s to 10 TB/s"));
        let one = fit_disk("request_bytes,queue_depth,seconds\n4096,4,0.001\n".as_bytes(), "d", "");
        assert_eq!(one.unwrap().warnings.len(), 2);
    }
}
