//! Parameters of mixers that keep a fixed state.

use super::Count;
use crate::model::layer::{GatedDelta, KimiDelta, Lightning, Mamba1, Mamba2, ShortConv};

impl GatedDelta {
    pub(super) fn count(&self, hidden: u64) -> Count {
        let keys = self.key_heads * self.key_width;
        let values = self.value_heads * self.value_width;
        let convolution = (2 * keys + values) * self.kernel;
        // Queries, keys, values and gate; two scalars a head; decay and time step; output.
        let projections = hidden * (2 * keys + 2 * values + 2 * self.value_heads) + values * hidden;
        let all = convolution + projections + 2 * self.value_heads + self.value_width;
        Count { all, copied: self.value_width }
    }
}

impl KimiDelta {
    pub(super) fn count(&self, hidden: u64) -> Count {
        let wide = self.heads * self.width;
        // Two low-rank gates: forget and output.
        let (gates_down, gates_up) = if self.whole_gates {
            (0, 2 * hidden * wide)
        } else {
            (2 * hidden * self.width, 2 * self.width * wide)
        };
        let all = 3 * hidden * wide
            + 3 * wide * self.kernel
            + gates_down
            + gates_up
            + wide
            + self.heads
            + hidden * self.heads
            + self.width
            + wide * hidden;
        Count { all, copied: gates_down + self.width }
    }
}

impl Mamba2 {
    pub(super) fn count(&self, hidden: u64) -> Count {
        let inner = self.heads * self.width;
        let convolved = inner + 2 * self.groups * self.state;
        let bias = u64::from(self.conv_bias);
        let all = hidden * (inner + convolved + self.heads)
            + convolved * (self.kernel + bias)
            + 3 * self.heads
            + inner
            + inner * hidden;
        Count { all, copied: 0 }
    }
}

impl Mamba1 {
    /// Time step and both projections of the state have norms, as in Jamba.
    pub(super) fn count(&self, hidden: u64) -> Count {
        let bias = u64::from(self.conv_bias);
        let wide = self.rank + 2 * self.state;
        let all = 3 * hidden * self.inner
            + self.inner * (self.kernel + bias)
            + self.inner * wide
            + self.rank * self.inner
            + 2 * self.inner
            + self.inner * self.state
            + wide;
        Count { all, copied: wide }
    }
}

impl Lightning {
    pub(super) fn count(&self, hidden: u64) -> Count {
        let wide = self.heads * self.width;
        Count { all: 5 * hidden * wide + wide + 2 * self.width, copied: 2 * self.width }
    }
}

impl ShortConv {
    pub(super) fn count(&self, hidden: u64) -> Count {
        Count { all: 4 * hidden * self.width + self.width * self.kernel, copied: 0 }
    }
}
