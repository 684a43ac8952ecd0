//! MoE-Infinity's activation matrices: one `.npy` of counts `[sequence, layer, expert]`,
//! f64 or f32.

use super::info::{ExpertCounts, HistogramInfo, experts_fit, whole};
use crate::error::Result;
use crate::import::array::{Array, Dtype, Place};
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::sniff::{Contents, Sniff};
use crate::import::tables;

pub(super) const INFO: HistogramInfo = HistogramInfo {
    name: "moe-infinity",
    description: "MoE-Infinity's activation matrices: f64 or f32 counts [sequence, layer, expert]",
    recognise,
    fuzz: FuzzTarget::Npy,
    reader: read,
};

fn recognise(sniff: &Sniff<'_>) -> Result<Claim> {
    let Contents::Npy { dtype, shape } = &sniff.contents else { return Ok(Claim::No) };
    let cube = shape.len() == 3 && *dtype == Dtype::F64;
    Claim::Likely.when(cube && !tables::may_be_ids(sniff))
}

fn read(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut sums: Vec<Vec<u64>> = Vec::new();
    for input in inputs {
        let place = Place { path: input.path(), name: "counts" };
        let (stream, length) = input.sized()?;
        let mut array = Array::open(stream, length, place)?;
        let extent = match (&array.shape[..], array.dtype) {
            // Without a sequence there would be sums as large as the header pleases.
            (&[1..=usize::MAX, layers @ 1..=65_536, experts], Dtype::F64 | Dtype::F32) => {
                (layers, experts)
            }
            (shape, dtype) => {
                let found = format!("{shape:?} of {}", dtype.name());
                let expected = "expected [sequences, layers, experts] of f64 or f32, none 0";
                return Err(place.error(format!("{expected}, found {found}")));
            }
        };
        let (layers, experts) = extent;
        let row = layers.checked_mul(experts).filter(|&row| row <= super::info::MOST);
        let Some(row) = row.filter(|&row| row > 0 && experts_fit(experts)) else {
            return Err(place.error(format!("{layers} layers of {experts} experts")));
        };
        if sums.is_empty() {
            sums = vec![vec![0; experts]; layers];
        }
        if sums.len() != layers || sums[0].len() != experts {
            let (l, e) = (sums.len(), sums[0].len());
            let problem = format!("{layers} layers of {experts} experts, {l} of {e} before it");
            return Err(place.error(problem));
        }
        let mut at = 0;
        let mut add = |count: f64| {
            let count = whole(count)
                .ok_or_else(|| place.error(format!("entry {at} is {count}, no whole count")))?;
            let cell = &mut sums[at % row / experts][at % experts];
            *cell = cell.saturating_add(count);
            at += 1;
            Ok(())
        };
        if array.dtype == Dtype::F64 {
            array.blocks::<f64>(place, 1, |block| block.iter().try_for_each(|&n| add(n)))?;
        } else {
            let mut each = |block: &[f32]| block.iter().try_for_each(|&n| add(n.into()));
            array.blocks::<f32>(place, 1, &mut each)?;
        }
    }
    Ok(ExpertCounts::of_hidden(sums))
}
