//! What one slot really holds: an engine's padding on top of a checkpoint's bytes.
//!
//! Kernels want widths that are multiples of their tiles and repack what they load, so that a resident expert is
//! larger than a stored one. The padding is an engine's, so it is a setting with an origin, never a constant.

use super::{ExpertShape, WeightFormat};

/// How an engine lays out one expert in its slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotLayout {
    /// The expert's own width is padded to a multiple of this, in elements.
    pub inner_multiple: u32,
    /// The width of input and output is padded to a multiple of this, in elements.
    pub io_multiple: u32,
    /// What else a slot takes, as a factor on the padded bytes; 1.0 is nothing.
    pub multiplier: f64,
}

impl Default for SlotLayout {
    fn default() -> Self {
        Self::CHECKPOINT
    }
}

impl SlotLayout {
    /// As stored: no padding.
    pub const CHECKPOINT: Self = Self { inner_multiple: 1, io_multiple: 1, multiplier: 1.0 };

    /// Padding by a factor alone.
    pub const fn multiplier(multiplier: f64) -> Self {
        Self { multiplier, ..Self::CHECKPOINT }
    }

    /// Bytes of a slot for an expert of this shape and format, rounded up.
    pub fn bytes(&self, shape: ExpertShape, format: WeightFormat) -> u64 {
        let pad = |width: u32, multiple: u32| width.checked_next_multiple_of(multiple.max(1));
        let padded = ExpertShape {
            io_width: pad(shape.io_width, self.io_multiple).unwrap_or(u32::MAX),
            inner_width: pad(shape.inner_width, self.inner_multiple).unwrap_or(u32::MAX),
            ..shape
        };
        self.scale(padded.bytes(format))
    }

    /// Bytes of a slot for an expert of this many stored bytes, where its widths are not known.
    pub fn scale(&self, bytes: u64) -> u64 {
        if self.multiplier == 1.0 {
            return bytes;
        }
        // Floats hold sizes of experts exactly; the product saturates at the ends of u64.
        (bytes as f64 * self.multiplier).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpt_oss_slots_of_the_mxfp4_kernels() {
        let stored = ExpertShape::gated(2880, 2880);
        let share = |inner_multiple, io_multiple| {
            let layout = SlotLayout { inner_multiple, io_multiple, multiplier: 1.0 };
            layout.bytes(stored, WeightFormat::Mxfp4) as f64
                / stored.bytes(WeightFormat::Mxfp4) as f64
        };
        assert!((share(128, 128) - 1.045).abs() < 5e-4);
        assert!((share(128, 256) - 1.090).abs() < 5e-4);
        assert!((share(256, 256) - 1.138).abs() < 5e-4);
        assert_eq!(share(1, 1), 1.0);
        assert_eq!(share(0, 0), 1.0, "no multiple is no padding");
    }

    #[test]
    fn a_factor_rounds_up() {
        assert_eq!(SlotLayout::multiplier(1.5).scale(3), 5);
        assert_eq!(SlotLayout::CHECKPOINT.scale(u64::MAX), u64::MAX);
    }
}
