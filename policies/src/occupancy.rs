//! How full a pool is, as every policy keeps it.

/// How many of a pool's slots there are, and how many of them are taken.
///
/// ```
/// use hotset_policies::Occupancy;
///
/// let slots = Occupancy { taken: 2, ..Occupancy::new(2) };
/// assert!(slots.is_full() && slots.agree_with(1).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Slots that hold a key.
    pub taken: u32,
    /// Slots of the pool.
    pub capacity: u32,
}

impl Occupancy {
    /// `capacity` free slots.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self { taken: 0, capacity }
    }

    /// Whether a further key needs the slot of another.
    #[must_use]
    #[inline(always)]
    pub const fn is_full(&self) -> bool {
        self.taken >= self.capacity
    }

    /// Checks them against the `residents` that a policy's own structure holds.
    ///
    /// # Errors
    /// Other keys are counted than are held, or more than there are slots.
    pub fn agree_with(&self, residents: u32) -> Result<(), String> {
        if residents != self.taken || residents > self.capacity {
            let Self { taken, capacity } = self;
            return Err(format!("{residents} resident, {taken} counted, {capacity} slots"));
        }
        Ok(())
    }
}

/// The two accessors of [`Policy`](crate::Policy) for a policy that keeps its [`Occupancy`] in the field named.
macro_rules! counted_in {
    ($($field:ident).+) => {
        #[inline(always)]
        fn slots(&self) -> &$crate::Occupancy {
            &self.$($field).+
        }

        #[inline(always)]
        fn slots_mut(&mut self) -> &mut $crate::Occupancy {
            &mut self.$($field).+
        }
    };
}

pub(crate) use counted_in;
