//! What slows down beside what.
//!
//! Copies beside a kernel that reads the accelerator's memory, copies beside host cores that stream the host's, and
//! those cores beside copies. All as per mille of the time alone.

use super::line::theil_sen;
use super::table::Table;
use crate::contention::HostContention;
use crate::link::{HostKernel, Link, TransferCost};
use crate::machine::HbmModel;
use crate::picos::{MIB, mul_div_round};

/// A copy's time beside a kernel that reads memory all the while, per mille of its time alone.
///
/// The slope of bursts beside the kernel over the same bursts alone. What bursts of any size take longer by (the start
/// of the measurement, in the intercept) is no slowdown. `None` where it was not measured; faster than alone counts as
/// equal.
pub(super) fn copy_beside_kernel(table: &Table, measured: &str, link: &Link) -> Option<u32> {
    let beside = table.points(measured, "copy-while-hbm-read")?;
    let pairs: Vec<(f64, f64)> = beside
        .iter()
        .map(|(&(bytes, transfers), &ps)| (link.burst_ps(bytes, transfers) as f64, ps as f64))
        .collect();
    let (slope, _) = theil_sen(&pairs)?;
    Some(((slope * 1000.0).round() as u32).max(1000))
}

/// A kernel's time while copies write to the memory that it reads from, per mille of its time alone: the slope of the
/// `kernel-while-copy` rows over the same kernels in a chain.
///
/// Where there are no such rows, derived: both share the memory's bandwidth, so beside a link that writes at a tenth of
/// what the memory can read, a kernel takes a tenth longer. That is the least it can be.
pub(super) fn kernel_beside_copy(
    table: &Table,
    measured: &str,
    link: &Link,
    hbm: &HbmModel,
) -> u32 {
    if let Some(beside) = table.points(measured, "kernel-while-copy") {
        let pairs: Vec<(f64, f64)> = beside
            .iter()
            .map(|(&(bytes, pieces), &ps)| (hbm.kernel_ps(bytes, pieces) as f64, ps as f64))
            .collect();
        if let Some((slope, _)) = theil_sen(&pairs) {
            return ((slope * 1000.0).round() as u32).max(1000);
        }
    }
    let TransferCost::Curve(curve) = &link.cost else { return 1000 };
    let largest = curve.bytes[curve.bytes.len() - 1];
    let writes = largest as f64 / link.queued_ps(largest).max(1) as f64 * 1e3;
    1000 + (1000.0 * writes / hbm.saturated_gb_s()).round() as u32
}

/// Copies beside host cores and the reverse, for each number of threads that was measured both ways.
pub(super) fn beside_host(
    table: &Table,
    measured: &str,
    mode: &str,
    link: &Link,
    hbm: Option<&HbmModel>,
) -> Vec<HostContention> {
    let mut found: Vec<HostContention> = table
        .modes(measured)
        .filter_map(|(name, points)| {
            let threads = name.strip_prefix(mode)?.strip_prefix("-while-cpu-")?;
            let (&(bytes, transfers), &ps) = points.iter().next()?;
            // Those copies ran back to back for as long as the threads did.
            let alone = link.queued_ps(bytes).saturating_mul(u64::from(transfers));
            let (host, disturbed) = both_ways(table, "expert", threads, host_kernel)
                .or_else(|| both_ways(table, "stream-read", threads, host_stream))?;
            let round = hbm.and_then(|hbm| host_rounds(table, threads, hbm));
            let alone_ps = round.map_or(host.ps_per_mib, |round| round.ps_per_mib);
            Some(HostContention {
                threads: count(threads)?,
                copy_permille: permille(ps, alone),
                host_permille: permille(disturbed.ps_per_mib, host.ps_per_mib),
                host_ps_per_mib: alone_ps,
                more_ps_per_mib: host.more_ps_per_mib,
                handoff_ps: round.map_or(0, |round| round.handoff_ps),
            })
        })
        .collect();
    found.sort_unstable_by_key(|beside| beside.threads);
    found
}

/// What threads take when a layer waits for them.
#[derive(Clone, Copy)]
struct HostRound {
    ps_per_mib: u64,
    handoff_ps: u64,
}

/// Rounds of a kernel, experts on the host's cores, the wait for them, and another kernel: a Theil-Sen line of what
/// they take beyond two kernels over the MiB of the experts. The intercept is the hand-off there and back.
fn host_rounds(table: &Table, threads: &str, hbm: &HbmModel) -> Option<HostRound> {
    let points = table.points("cpu", &format!("expert-round-{threads}"))?;
    let (&(kernel_bytes, _), _) =
        table.points("hbm", "chain")?.iter().find(|(key, _)| key.1 == 0)?;
    let kernels = 2.0 * hbm.kernel_ps(kernel_bytes, 1) as f64;
    let pairs: Vec<(f64, f64)> = points
        .iter()
        .map(|(&(bytes, experts), &ps)| {
            (bytes as f64 * f64::from(experts) / MIB as f64, ps as f64 - kernels)
        })
        .collect();
    let (slope, intercept) = theil_sen(&pairs)?;
    let whole = |ps: f64| ps.max(0.0).round() as u64;
    Some(HostRound { ps_per_mib: whole(slope).max(1), handoff_ps: whole(intercept) })
}

/// The rate of the most threads that computed experts alone, for a host whose copies nobody measured beside it.
pub(super) fn host_alone(table: &Table) -> Option<HostKernel> {
    let threads = |(mode, _): (&str, _)| {
        let threads = mode.strip_prefix("expert-")?;
        Some((count(threads)?, mode.to_owned()))
    };
    let (_, mode) = table.modes("cpu").filter_map(threads).max()?;
    host_kernel(table, &mode)
}

/// `16t` as 16.
fn count(threads: &str) -> Option<u32> {
    threads.strip_suffix('t')?.parse().ok()
}

/// What threads do alone and beside copies.
fn both_ways(
    table: &Table,
    what: &str,
    threads: &str,
    rate: fn(&Table, &str) -> Option<HostKernel>,
) -> Option<(HostKernel, HostKernel)> {
    let alone = rate(table, &format!("{what}-{threads}"))?;
    let beside = rate(table, &format!("{what}-{threads}-while-h2d"))?;
    Some((alone, beside))
}

/// Threads that stream memory: one size.
fn host_stream(table: &Table, mode: &str) -> Option<HostKernel> {
    let (&(bytes, transfers), &ps) = table.points("cpu", mode)?.iter().next()?;
    let size = bytes.saturating_mul(u64::from(transfers));
    Some(HostKernel { ps_per_mib: mul_div_round(ps, MIB, size.max(1)), more_ps_per_mib: 0 })
}

/// Threads that compute experts, `bytes` each, that `transfers` tokens want: a Theil-Sen line of the time a MiB over
/// the tokens. A further token makes nothing faster, and the first takes time.
fn host_kernel(table: &Table, mode: &str) -> Option<HostKernel> {
    let points = table.points("cpu", mode)?;
    let per_mib = |(&(bytes, tokens), &ps): (&(u64, u32), &u64)| {
        (f64::from(tokens.max(1)), ps as f64 * MIB as f64 / bytes.max(1) as f64)
    };
    let pairs: Vec<(f64, f64)> = points.iter().map(per_mib).collect();
    // Rows of one count of tokens alone say nothing of further ones.
    let more = theil_sen(&pairs).map_or(0.0, |(slope, _)| slope.max(0.0));
    let mut first: Vec<f64> =
        pairs.iter().map(|&(tokens, ps)| ps - more * (tokens - 1.0)).collect();
    first.sort_unstable_by(f64::total_cmp);
    let median = first.get(first.len() / 2)?.round().max(1.0);
    Some(HostKernel { ps_per_mib: median as u64, more_ps_per_mib: more.round() as u64 })
}

/// `time / alone` in per mille, at least 1000: nothing is faster for being disturbed.
fn permille(time: u64, alone: u64) -> u32 {
    u32::try_from(mul_div_round(time, 1000, alone.max(1))).unwrap_or(u32::MAX).max(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::BurstCurve;

    fn table(rows: &str) -> Table {
        let text = format!("device,link,mode,bytes,transfers,ms\n{rows}");
        Table::read(text.as_bytes()).unwrap()
    }

    /// 1 ms a MiB.
    fn link() -> Link {
        Link::affine("l", 0, 1_000_000_000)
    }

    #[test]
    fn a_constant_start_is_no_slowdown() {
        // Alone 2, 4, 8 ms; beside a kernel 0.1 ms to start and a quarter more.
        let rows = "D,l,copy-while-hbm-read,1048576,2,2.6\nD,l,copy-while-hbm-read,2097152,2,5.1
            D,l,copy-while-hbm-read,4194304,2,10.1\n";
        assert_eq!(copy_beside_kernel(&table(rows), "l", &link()), Some(1250));
        let only_start =
            "D,l,copy-while-hbm-read,1048576,2,2.1\nD,l,copy-while-hbm-read,2097152,2,4.1\n";
        assert_eq!(copy_beside_kernel(&table(only_start), "l", &link()), Some(1000));
        assert_eq!(copy_beside_kernel(&table("D,l,copy,8,1,1\n"), "l", &link()), None);
    }

    #[test]
    fn a_kernel_shares_the_memory_with_copies() {
        // Copies write 1 MiB in 10 us, kernels read 2 MiB in 2 us: a tenth.
        let curve =
            |ps: Vec<Vec<u64>>| BurstCurve { bytes: vec![MIB, 3 * MIB], transfers: vec![1], ps };
        let mut link = link();
        link.cost = TransferCost::Curve(curve(vec![vec![10_000_000], vec![30_000_000]]));
        let chain = curve(vec![vec![5_000_000], vec![7_000_000]]);
        let hbm = HbmModel::new(0, chain);
        let none = table("D,l,copy,8,1,1\n");
        assert_eq!(kernel_beside_copy(&none, "l", &link, &hbm), 1100);
        // Measured: 5 us and 7 us alone, 6 and 8.5 beside; the constant is the start of the measurement.
        let rows =
            "D,l,kernel-while-copy,1048576,1,0.006\nD,l,kernel-while-copy,3145728,1,0.0085\n";
        assert_eq!(kernel_beside_copy(&table(rows), "l", &link, &hbm), 1250);
        let one = "D,l,kernel-while-copy,1048576,1,0.006\n";
        assert_eq!(
            kernel_beside_copy(&table(one), "l", &link, &hbm),
            1100,
            "one size has no slope"
        );
    }

    #[test]
    fn copies_and_cores_slow_each_other() {
        let rows =
            "D,l,pinned-h2d-while-cpu-16t,2097152,1,3.0\nD,l,pinned-h2d-while-cpu-4t,2097152,1,2.2
            D,cpu,stream-read-16t,4194304,1,2.0\nD,cpu,stream-read-16t-while-h2d,4194304,1,2.5
            D,cpu,stream-read-4t,4194304,1,8.0\nD,cpu,stream-read-4t-while-h2d,4194304,1,7.0
            D,l,pinned-h2d-while-cpu-8t,2097152,1,3.0\n";
        let found = beside_host(&table(rows), "l", "pinned-h2d", &link(), None);
        let beside = |threads, copy_permille, host_permille, host_ps_per_mib| HostContention {
            threads,
            copy_permille,
            host_permille,
            more_ps_per_mib: 0,
            host_ps_per_mib,
            handoff_ps: 0,
        };
        // 8 threads were not measured alone; 4 threads beside copies were not slower.
        assert_eq!(
            found,
            [beside(4, 1100, 1000, 2_000_000_000), beside(16, 1500, 1250, 500_000_000)]
        );
    }

    #[test]
    fn a_layer_that_waits_for_the_host_pays_a_hand_off() {
        // Kernels of 1 us; a MiB takes 50 us and the hand-off 4: 1, 2 and 4 experts of 1 MiB.
        let rows = "D,hbm,chain,1048576,0,0.002\nD,l,pinned-h2d-while-cpu-8t,2097152,1,2.2
            D,cpu,expert-8t,1048576,1,0.04\nD,cpu,expert-8t-while-h2d,1048576,1,0.06
            D,cpu,expert-round-8t,1048576,1,0.056\nD,cpu,expert-round-8t,1048576,2,0.106
            D,cpu,expert-round-8t,1048576,4,0.206\n";
        let chain = BurstCurve {
            bytes: vec![MIB, 2 * MIB],
            transfers: vec![1],
            ps: vec![vec![1_000_000], vec![2_000_000]],
        };
        let hbm = HbmModel::new(0, chain);
        let found = beside_host(&table(rows), "l", "pinned-h2d", &link(), Some(&hbm));
        assert_eq!((found[0].host_ps_per_mib, found[0].handoff_ps), (50_000_000, 4_000_000));
        assert_eq!(found[0].host_permille, 1500, "as tasks alone and beside copies say");
    }

    #[test]
    fn experts_on_the_host_cost_more_for_each_token_that_wants_them() {
        // 1 MiB: 2 ms for one token, 0.5 more for each further; 2 MiB twice that. Beside copies 2.5 ms.
        let rows = "D,l,pinned-h2d-while-cpu-8t,2097152,1,2.2
            D,cpu,expert-8t,1048576,1,2.0\nD,cpu,expert-8t,1048576,4,3.5\nD,cpu,expert-8t,2097152,8,11.0
            D,cpu,expert-8t-while-h2d,1048576,1,2.5\nD,cpu,expert-2t,1048576,1,9.0
            D,cpu,stream-read-8t,4194304,1,2.0\nD,cpu,stream-read-8t-while-h2d,4194304,1,9.0\n";
        let found = beside_host(&table(rows), "l", "pinned-h2d", &link(), None);
        let expected = HostContention {
            threads: 8,
            copy_permille: 1100,
            host_permille: 1250,
            host_ps_per_mib: 2_000_000_000,
            more_ps_per_mib: 500_000_000,
            handoff_ps: 0,
        };
        assert_eq!(found, [expected], "measured experts go before streams");
        // Where nothing ran beside copies, the most threads say what the cores do alone.
        let alone = "D,cpu,expert-2t,1048576,1,9.0\nD,cpu,expert-16t,1048576,2,3.0\n";
        let kernel = HostKernel { ps_per_mib: 3_000_000_000, more_ps_per_mib: 0 };
        assert_eq!(host_alone(&table(alone)), Some(kernel));
        assert_eq!(host_alone(&table("D,cpu,stream-read-8t,8,1,1\n")), None);
        assert_eq!(kernel.expert_ps(2 * MIB, 3), 6_000_000_000);
        let batch = HostKernel { more_ps_per_mib: 1_000, ..kernel };
        assert_eq!(batch.expert_ps(2 * MIB, 3), 6_000_004_000);
    }
}
