//! One word of state an expert: its slot with two flags, and when it was last asked for.

/// Expert ids as a trace or an engine holds them.
pub trait ExpertId: Copy {
    /// The id as an index.
    fn index(self) -> u32;
    /// The id with this index, of which the type has one.
    fn of_index(index: u32) -> Self;
}

impl ExpertId for u8 {
    #[inline(always)]
    fn index(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn of_index(index: u32) -> Self {
        index as Self
    }
}

impl ExpertId for u16 {
    #[inline(always)]
    fn index(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn of_index(index: u32) -> Self {
        index as Self
    }
}

impl ExpertId for u32 {
    #[inline(always)]
    fn index(self) -> u32 {
        self
    }

    #[inline(always)]
    fn of_index(index: u32) -> Self {
        index
    }
}

/// Largest number of experts and of slots: the two top bits of a slot word are flags.
pub(crate) const LIMIT: u32 = (1 << 30) - 1;
/// The slot word of an absent expert: no flag, and a slot that no pool has.
pub(super) const ABSENT: u32 = LIMIT;
/// The copy into the slot has not completed.
pub(super) const PENDING: u32 = 1 << 31;
/// Brought in by a prefetch and not asked for since.
pub(super) const PREFETCHED: u32 = 1 << 30;

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Slot and flags, or `ABSENT`.
    pub word: u32,
    /// The event that last asked for the expert; 0 before the first.
    pub stamp: u32,
}

impl Entry {
    pub const EMPTY: Self = Self { word: ABSENT, stamp: 0 };

    #[inline(always)]
    pub fn is_resident(self) -> bool {
        self.word != ABSENT
    }

    #[inline(always)]
    pub fn is_pending(self) -> bool {
        self.word & PENDING != 0
    }

    /// The slot, and whether its copy is under way: what other threads are told.
    #[inline(always)]
    pub fn published(self) -> u32 {
        self.word & !PREFETCHED
    }

    #[inline(always)]
    pub fn slot(self) -> u32 {
        self.word & LIMIT
    }
}
