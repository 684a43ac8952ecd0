//! Tensors of mixers that keep a fixed state.

use super::List;
use crate::format::Role;
use crate::model::layer::{GatedDelta, KimiDelta, Lightning, Mamba1, Mamba2, ShortConv};

impl List {
    pub(super) fn gated_delta(&mut self, delta: &GatedDelta) {
        let hidden = self.hidden;
        let keys = delta.key_heads * delta.key_width;
        let values = delta.value_heads * delta.value_width;
        self.dense(Role::Fused, 2 * keys + values, hidden);
        self.dense(Role::Other, values, hidden);
        self.dense(Role::Other, delta.value_heads, hidden);
        self.dense(Role::Other, delta.value_heads, hidden);
        self.dense(Role::Other, hidden, values);
        let convolution = (2 * keys + values) * delta.kernel;
        self.vectors(&[convolution, delta.value_heads, delta.value_heads, delta.value_width]);
    }

    pub(super) fn kimi_delta(&mut self, delta: &KimiDelta) {
        let (hidden, wide) = (self.hidden, delta.heads * delta.width);
        for role in [Role::Query, Role::Key, Role::Value] {
            self.dense(role, wide, hidden);
            self.vectors(&[wide * delta.kernel]);
        }
        for _ in 0..2 {
            if delta.whole_gates {
                self.dense(Role::Other, wide, hidden);
            } else {
                self.dense(Role::Other, delta.width, hidden);
                self.dense(Role::Other, wide, delta.width);
            }
        }
        self.dense(Role::Other, delta.heads, hidden);
        self.dense(Role::Output, hidden, wide);
        self.vectors(&[delta.heads, wide, delta.width]);
    }

    pub(super) fn mamba1(&mut self, mamba: &Mamba1) {
        let (hidden, inner) = (self.hidden, mamba.inner);
        self.dense(Role::Other, 2 * inner, hidden);
        self.dense(Role::Other, mamba.rank + 2 * mamba.state, inner);
        self.dense(Role::Other, inner, mamba.rank);
        self.dense(Role::Other, hidden, inner);
        self.vectors(&[inner * mamba.kernel, inner, inner, inner * mamba.state]);
        self.vectors(&[mamba.rank, mamba.state, mamba.state]);
        if mamba.conv_bias {
            self.vectors(&[inner]);
        }
    }

    pub(super) fn mamba2(&mut self, mamba: &Mamba2) {
        let hidden = self.hidden;
        let inner = mamba.heads * mamba.width;
        let convolved = inner + 2 * mamba.groups * mamba.state;
        self.dense(Role::Other, inner + convolved + mamba.heads, hidden);
        self.dense(Role::Other, hidden, inner);
        self.vectors(&[convolved * mamba.kernel, mamba.heads, mamba.heads, mamba.heads, inner]);
        if mamba.conv_bias {
            self.vectors(&[convolved]);
        }
    }

    pub(super) fn lightning(&mut self, lightning: &Lightning) {
        let wide = lightning.heads * lightning.width;
        self.dense(Role::Fused, 3 * wide, self.hidden);
        self.dense(Role::Other, wide, self.hidden);
        self.dense(Role::Output, self.hidden, wide);
        self.vectors(&[wide, lightning.width, lightning.width]);
    }

    pub(super) fn short_conv(&mut self, conv: &ShortConv) {
        self.dense(Role::Other, 3 * conv.width, self.hidden);
        self.dense(Role::Other, self.hidden, conv.width);
        self.vectors(&[conv.width * conv.kernel]);
    }
}
