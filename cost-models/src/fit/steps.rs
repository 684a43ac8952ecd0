//! What steps take beside their kernels, from steps without a copy.
//!
//! The mode `step-D+K` is a step of `transfers` layers as an engine runs it, from its first call to the host's learning
//! of its end: a kernel that reads D bytes and one that reads K experts of `bytes` for each. What it takes beyond those
//! kernels in chains is a fixed time and a time a kernel.

use super::line::theil_sen;
use super::table::Table;
use crate::machine::{HbmModel, StepOverhead};

/// A line over the number of kernels; `None` where steps of fewer than two lengths were measured.
pub(super) fn overhead(table: &Table, hbm: &HbmModel) -> Option<StepOverhead> {
    let mut beyond: Vec<(f64, f64)> = Vec::new();
    for (mode, points) in table.modes("hbm") {
        let Some((dense, experts)) = layer_of(mode) else { continue };
        for (&(bytes, layers), &ps) in points {
            let layer = hbm.kernel_ps(dense, 1) as f64 + hbm.kernel_ps(bytes, experts) as f64;
            beyond.push((2.0 * f64::from(layers), ps as f64 - layer * f64::from(layers)));
        }
    }
    let (kernel, fixed) = theil_sen(&beyond)?;
    let whole = |ps: f64| ps.max(0.0).round() as u64;
    Some(StepOverhead { fixed_ps: whole(fixed), kernel_ps: whole(kernel) })
}

/// `step-8388608+8` as 8388608 bytes and 8 experts.
fn layer_of(mode: &str) -> Option<(u64, u32)> {
    let (dense, experts) = mode.strip_prefix("step-")?.split_once('+')?;
    Some((dense.parse().ok()?, experts.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::BurstCurve;

    #[test]
    fn a_step_is_a_fixed_time_and_a_time_a_kernel() {
        // A kernel of 100 bytes takes 5 us, of 2 experts of 100 bytes 7. Steps: 10 us and 0.5 a kernel.
        let chain = BurstCurve {
            bytes: vec![100, 200],
            transfers: vec![1, 2],
            ps: vec![vec![5_000_000, 7_000_000], vec![6_000_000, 9_000_000]],
        };
        let hbm = HbmModel::new(0, chain);
        let rows = "D,hbm,step-100+2,100,8,0.114\nD,hbm,step-100+2,100,16,0.218\n
            D,hbm,step-100+2,100,32,0.426\nD,hbm,step-x+2,100,32,9\n";
        let text = format!("device,link,mode,bytes,transfers,ms\n{rows}");
        let table = Table::read(text.as_bytes()).unwrap();
        let found = overhead(&table, &hbm).unwrap();
        assert_eq!(found, StepOverhead { fixed_ps: 10_000_000, kernel_ps: 500_000 });
        let stepped = HbmModel { step: Some(found), ..hbm };
        assert_eq!(stepped.step_ps(48), 34_000_000);
        let none =
            Table::read("device,link,mode,bytes,transfers,ms\nD,hbm,chain,64,0,1\n".as_bytes());
        assert_eq!(overhead(&none.unwrap(), &stepped), None);
    }
}
