//! Storage that experts are read from: a latency, how many requests run at once, and a rate by request size.
//!
//! Requests are served in the order asked. One by itself takes the latency and its transfer. Behind others each takes its
//! transfer, or, where so few run at once that the latency is not hidden, its share of latency and transfer: with `q`
//! requests in flight, `max(t, (latency + t) / q)` (Little's law).

mod file;

use crate::picos::{MIB, mul_div_round};

/// Requests in flight where nobody says how many.
const DEPTH: u32 = 32;
/// Rates outside these, in bytes a second, are a mistake of units.
pub(crate) const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e5..=1e13;

/// A disk.
///
/// ```
/// use hotset_cost_models::{Disk, MIB};
///
/// // 4 GiB/s after 100 us: 1 MiB takes 244.140625 us, alone 344.140625 us.
/// let disk: Disk = "4GiB/s:100us".parse()?;
/// assert_eq!((disk.read_ps(MIB), disk.queued_ps(MIB)), (344_140_625, 244_140_625));
/// # Ok::<(), hotset_cost_models::DiskError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// What it is called.
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// From asking for a request to its first byte.
    pub latency_ps: u64,
    /// Requests in flight at once, at least 1.
    pub queue_depth: u32,
    /// Bytes of a request: larger experts are read in so many; `None`: an expert is one request.
    pub request_bytes: Option<u64>,
    /// Time of a request's transfer with the queue full, by its size: ascending, at least one.
    pub transfers: Vec<RequestTime>,
    /// Whether an expert is copied on while it is read, piece by piece, instead of when it is there.
    pub through: bool,
}

/// What one request takes of a disk's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTime {
    /// Its bytes, over 0.
    pub bytes: u64,
    /// Picoseconds.
    pub ps: u64,
}

/// No disk is called so, and the text is no rate.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{text}' is no disk: give a name ({}), a rate with latency and requests in flight \
     (7GB/s:80us:32), or a file (.toml){}", known.join(", "), near.as_ref().map_or(String::new(), |near| format!("; did you mean '{near}'?"))
)]
pub struct DiskError {
    /// What was given.
    pub text: String,
    /// The known name most like it.
    pub near: Option<String>,
    /// Every known name.
    pub known: Vec<&'static str>,
}

/// Name, bytes a second, latency in microseconds, requests in flight, and what it stands for.
const BUILT_IN: [(&str, f64, f64, u32, &str); 6] = [
    (
        "nvme-gen3",
        3.5e9,
        90.0,
        32,
        "PCIe 3.0 x4 drives as published; 4 KiB reads at depth 1 take 80-100 us",
    ),
    (
        "nvme-gen4",
        7e9,
        70.0,
        32,
        "PCIe 4.0 x4 drives as published; 4 KiB reads at depth 1 take 60-80 us",
    ),
    (
        "nvme-gen5",
        14e9,
        60.0,
        32,
        "PCIe 5.0 x4 drives as published; 4 KiB reads at depth 1 take 50-70 us",
    ),
    ("sata-ssd", 0.55e9, 120.0, 32, "SATA 6 Gb/s as published"),
    ("ufs-4", 2.5e9, 120.0, 32, "a phone's random reads, 2.3-2.7 GB/s reported"),
    ("hard-disk", 0.2e9, 8000.0, 1, "a seek and half a turn at 7200 rpm, one request at a time"),
];

/// The built-in disks.
#[must_use]
pub fn builtin_disks() -> Vec<Disk> {
    let disk = |&(name, rate, us, depth, source): &(&str, f64, f64, u32, &str)| Disk {
        queue_depth: depth,
        source: source.to_owned(),
        ..Disk::of_rate(name, rate, us)
    };
    BUILT_IN.iter().map(disk).collect()
}

impl Disk {
    /// A disk of one rate, in bytes a second, and a latency in microseconds.
    #[must_use]
    pub fn of_rate(name: impl Into<String>, bytes_per_second: f64, latency_us: f64) -> Self {
        let ps = (MIB as f64 / bytes_per_second * 1e12).round() as u64;
        Self {
            name: name.into(),
            source: String::new(),
            latency_ps: (latency_us * 1e6).round() as u64,
            queue_depth: DEPTH,
            request_bytes: None,
            transfers: vec![RequestTime { bytes: MIB, ps }],
            through: false,
        }
    }

    /// Transfer of one request of `bytes`, with the queue full: between two sizes in a straight line, below the
    /// smallest no less, beyond the largest at its rate; one size alone is a rate.
    fn transfer_ps(&self, bytes: u64) -> u64 {
        let rated = |of: &RequestTime| mul_div_round(of.ps, bytes, of.bytes);
        match &self.transfers[..] {
            [] => 0,
            [only] => rated(only),
            all => {
                let above = all.partition_point(|of| of.bytes < bytes);
                match (above.checked_sub(1).map(|below| all[below]), all.get(above)) {
                    (None, Some(smallest)) => smallest.ps,
                    (Some(low), Some(high)) => {
                        let more = high.ps.saturating_sub(low.ps);
                        low.ps + mul_div_round(more, bytes - low.bytes, high.bytes - low.bytes)
                    }
                    (Some(largest), None) => rated(&largest),
                    (None, None) => 0,
                }
            }
        }
    }

    /// Requests that reading `bytes` takes: whole ones, and the bytes of the last.
    fn requests(&self, bytes: u64) -> (u64, u64) {
        match self.request_bytes {
            Some(size) if size > 0 && bytes > size => {
                let whole = (bytes - 1) / size;
                (whole, bytes - whole * size)
            }
            _ => (0, bytes),
        }
    }

    /// What one more request takes behind others.
    fn service_ps(&self, bytes: u64) -> u64 {
        let transfer = self.transfer_ps(bytes);
        let shared = self.latency_ps.saturating_add(transfer) / u64::from(self.queue_depth.max(1));
        transfer.max(shared)
    }

    /// An expert of `bytes` read from an idle disk, in picoseconds; 0 for 0 bytes.
    #[must_use]
    pub fn read_ps(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (whole, last) = self.requests(bytes);
        let first = if whole > 0 { self.request_bytes.unwrap_or(bytes) } else { last };
        let alone = self.latency_ps.saturating_add(self.transfer_ps(first));
        let behind = self.queued_ps(bytes).saturating_sub(self.service_ps(first));
        alone.saturating_add(behind)
    }

    /// An expert of `bytes` read behind others, in picoseconds: never more than [`read_ps`](Self::read_ps).
    #[must_use]
    pub fn queued_ps(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (whole, last) = self.requests(bytes);
        let each = self.request_bytes.map_or(0, |size| self.service_ps(size));
        each.saturating_mul(whole).saturating_add(self.service_ps(last))
    }
}

impl std::str::FromStr for Disk {
    type Err = DiskError;

    /// A built-in name, or `RATE[:LATENCY[:REQUESTS]]` as in `7GB/s:80us:32`; no latency unless given.
    fn from_str(text: &str) -> Result<Self, DiskError> {
        let known: Vec<&'static str> = BUILT_IN.iter().map(|built| built.0).collect();
        let text = text.trim();
        if let Some(disk) = builtin_disks().into_iter().find(|disk| disk.name == text) {
            return Ok(disk);
        }
        read_rate(text).ok_or_else(|| {
            let near = hotset_names::nearest(text, known.iter().copied()).map(str::to_owned);
            DiskError { text: text.to_owned(), near, known }
        })
    }
}

/// `7GB/s:80us:32`.
fn read_rate(text: &str) -> Option<Disk> {
    let mut pieces = text.split(':');
    const UNITS: [(&str, f64); 4] =
        [("GiB/s", 1_073_741_824.0), ("MiB/s", 1_048_576.0), ("GB/s", 1e9), ("MB/s", 1e6)];
    let measured = |text: &str, units: &[(&str, f64)]| {
        let of = |&(unit, scale): &(&str, f64)| {
            Some(text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()? * scale)
        };
        units.iter().find_map(of)
    };
    let rate = measured(pieces.next()?, &UNITS).filter(|rate| PLAUSIBLE.contains(rate))?;
    let latency = match pieces.next() {
        Some(text) => measured(text, &[("us", 1.0), ("µs", 1.0), ("ms", 1000.0)])?,
        None => 0.0,
    };
    let queue_depth = match pieces.next() {
        Some(text) => text.trim().parse().ok().filter(|depth| (1..=65_536).contains(depth))?,
        None => DEPTH,
    };
    let sound = (0.0..=1e7).contains(&latency) && pieces.next().is_none();
    sound.then(|| Disk { queue_depth, ..Disk::of_rate(text, rate, latency) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_by_hand() {
        // 10 us of latency, 1 us for each byte; two requests in flight.
        let disk = Disk {
            queue_depth: 2,
            transfers: vec![RequestTime { bytes: 1, ps: 1_000_000 }],
            ..Disk::of_rate("d", 1e6, 10.0)
        };
        // A request of 4 takes 14; behind others 7, for two hide half of it; of 30 the transfer decides.
        assert_eq!((disk.read_ps(4), disk.queued_ps(4)), (14_000_000, 7_000_000));
        assert_eq!((disk.read_ps(30), disk.queued_ps(30)), (40_000_000, 30_000_000));
        // Ten bytes in requests of 4, 4 and 2: 14, then 7 and 6.
        let pieces = Disk { request_bytes: Some(4), ..disk };
        assert_eq!((pieces.read_ps(10), pieces.queued_ps(10)), (27_000_000, 20_000_000));
        assert_eq!((pieces.read_ps(0), pieces.queued_ps(0)), (0, 0));
    }

    #[test]
    fn rates_between_sizes_are_straight_lines_of_time() {
        let text = "name = \"d\"\nlatency_us = 0\n[[rates]]\nrequest_bytes = 1000\nmb_per_s = 1\n\
                    [[rates]]\nrequest_bytes = 3000\nmb_per_s = 2\n";
        let disk = Disk::from_toml(text, "d").unwrap();
        let us = |bytes| disk.read_ps(bytes) / 1_000_000;
        // 1 ms at 1000, 1.5 ms at 3000.
        assert_eq!([500, 1000, 2000, 3000, 6000].map(us), [1000, 1000, 1250, 1500, 3000]);
        assert_eq!(Disk::from_toml(&disk.to_toml().unwrap(), "d").unwrap(), disk);
    }

    #[test]
    fn disks_are_named_or_rated_and_wrong_ones_told() {
        let read = |text: &str| text.parse::<Disk>();
        assert_eq!(read("nvme-gen4").unwrap().latency_ps, 70_000_000);
        let disk = read("500MB/s:1ms:4").unwrap();
        assert_eq!((disk.latency_ps, disk.queue_depth), (1_000_000_000, 4));
        assert_eq!(read("7GB/s").unwrap().latency_ps, 0);
        for wrong in ["7", "7GB", "0GB/s", "7GB/s:80", "7GB/s:-1us", "7GB/s:1us:0", "1GB/s:1us:1:1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let told = read("nvme-gen6").unwrap_err().to_string();
        assert!(
            told.contains("7GB/s:80us:32") && told.contains("did you mean 'nvme-gen"),
            "{told}"
        );
        let faults = Disk::from_toml("name='d'\nqueue_depth=0\nrates=[]\nlatency_us=-1", "d.toml");
        let told = faults.unwrap_err().to_string();
        assert!(told.contains("3 faults") && told.contains("d.toml"), "{told}");
    }
}
