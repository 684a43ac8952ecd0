//! What kernels gave against what their experts must give.

use std::sync::Arc;

use crate::LiveError;
use crate::gpu::{DeviceMemory, Gpu};
use crate::pool::Layout;
use crate::weights::{Reference, Sums};

/// Experts whose sums are kept before they are compared.
const MOST: usize = 1 << 21;
/// And how many a step may add beyond that.
const SPARE: usize = 1 << 18;

/// Sums of experts, in the order of their kernels.
pub(crate) struct Checks {
    sums: DeviceMemory,
    /// Where dense kernels leave theirs.
    unchecked: DeviceMemory,
    keys: Vec<u32>,
    references: Vec<Reference>,
    layout: Layout,
    checked: u64,
    wrong: u64,
    first: Option<String>,
}

impl Checks {
    pub fn new(
        gpu: &Arc<Gpu>,
        references: &[Reference],
        layout: &Layout,
    ) -> Result<Self, LiveError> {
        Ok(Self {
            sums: DeviceMemory::new(gpu, (MOST + SPARE) * size_of::<Sums>())?,
            unchecked: DeviceMemory::new(gpu, size_of::<Sums>())?,
            keys: Vec::with_capacity(MOST),
            references: references.to_vec(),
            layout: layout.clone(),
            checked: 0,
            wrong: 0,
            first: None,
        })
    }

    pub fn unchecked(&self) -> (&DeviceMemory, usize) {
        (&self.unchecked, 0)
    }

    /// Where the kernel of these experts leaves its sums.
    pub fn expect(&mut self, keys: &[u32]) -> (&DeviceMemory, usize) {
        let first = self.keys.len();
        self.keys.extend_from_slice(keys);
        (&self.sums, first)
    }

    /// Whether there is no room for another step.
    pub fn is_full(&self) -> bool {
        self.keys.len() >= MOST
    }

    /// Compares and forgets what was computed; everything that was queued must be done.
    pub fn compare(&mut self) -> Result<(), LiveError> {
        let mut sums = vec![0f32; 2 * self.keys.len()];
        self.sums.read_floats(&mut sums)?;
        let keys = std::mem::take(&mut self.keys);
        for (&key, pair) in keys.iter().zip(sums.chunks_exact(2)) {
            self.compare_one(key, Sums { on_input: pair[0], plain: pair[1] }, "the GPU");
        }
        self.keys = keys;
        self.keys.clear();
        self.sums.clear()
    }

    /// Compares one expert's sums.
    pub fn compare_one(&mut self, key: u32, sums: Sums, whose: &str) {
        self.checked += 1;
        let reference = &self.references[key as usize];
        if reference.fits(sums) {
            return;
        }
        self.wrong += 1;
        let number = self.checked;
        self.first.get_or_insert_with(|| {
            let layer = self.layout.layer_of(key);
            let expert = key - self.layout.bases[layer];
            let must = reference.sums();
            format!(
                "expert {expert} of layer {layer} on {whose}, the {number}th computed: {} and {} \
                 instead of {} and {}",
                sums.on_input, sums.plain, must.on_input, must.plain
            )
        });
    }

    /// How many were compared, all right.
    pub fn finish(self) -> Result<u64, LiveError> {
        match self.first {
            None => Ok(self.checked),
            Some(first) => {
                Err(LiveError::Wrong { wrong: self.wrong, checked: self.checked, first })
            }
        }
    }
}
