//! Who may come in: admission in front of any eviction policy.
//!
//! [`Admitted`] is a policy around a policy. A miss that its [`Admission`] declines is served
//! without a slot ([`Action::Unplaced`](crate::Action::Unplaced): through the transient buffer, or
//! by the host), and nobody leaves for it. A cache without admission control has no wrapper and
//! pays nothing.

mod bypass;
mod info;
mod spec;
mod tinylfu;
mod upload_cap;

pub use bypass::{Bypass, BypassConfig};
pub use info::AdmissionInfo;
pub use spec::{ADMISSIONS, AdmissionSpec, AnyAdmission};
pub use tinylfu::{TinyLfu, TinyLfuConfig};
pub use upload_cap::{UploadCap, UploadCapConfig};

use crate::{Event, Key, Occupancy, Policy, Room};

/// Decides which misses get a slot.
pub trait Admission {
    /// A step begins.
    fn begin_step(&mut self) {}

    /// An event begins, before its hits and misses.
    fn begin_event(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// Whether the absent `key`, asked for or predicted, may come in; `full`: somebody would have
    /// to leave for it.
    fn wants(&mut self, key: Key, full: bool) -> bool;

    /// Whether `victim` may leave for `key`; asked only when the pool is full.
    fn may_displace(&self, key: Key, victim: Key) -> bool {
        let _ = (key, victim);
        true
    }

    /// `key` came in.
    fn entered(&mut self, key: Key) {
        let _ = key;
    }

    /// `key` left.
    fn left(&mut self, key: Key) {
        let _ = key;
    }

    /// The pool has another number of slots from now on.
    fn set_capacity(&mut self, capacity: u32) {
        let _ = capacity;
    }

    /// Checks the invariants against who is resident.
    ///
    /// # Errors
    /// Says which is broken.
    fn validate(&self, resident: impl Fn(Key) -> bool) -> Result<(), String> {
        let _ = resident;
        Ok(())
    }
}

/// Policy `P` behind admission `A`.
#[derive(Debug, Clone)]
pub struct Admitted<P, A> {
    policy: P,
    admission: A,
}

impl<P: Policy, A: Admission> Admitted<P, A> {
    /// Puts `admission` in front of `policy`; both are of one pool and nothing is resident.
    pub fn new(policy: P, admission: A) -> Self {
        Self { policy, admission }
    }

    /// The policy inside.
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

/// The pool's room with the admission's word on who may leave.
struct Gate<'a, A, R> {
    room: &'a mut R,
    admission: &'a mut A,
    /// For whom somebody has to leave; `None`: the pool has a free slot.
    key: Option<Key>,
}

impl<A: Admission, R: Room> Room for Gate<'_, A, R> {
    #[inline(always)]
    fn may_evict(&self, victim: Key) -> bool {
        self.key.is_none_or(|key| self.admission.may_displace(key, victim))
            && self.room.may_evict(victim)
    }

    #[inline(always)]
    fn evict(&mut self, key: Key) {
        self.admission.left(key);
        self.room.evict(key);
    }
}

impl<P: Policy, A: Admission> Policy for Admitted<P, A> {
    const OBSERVES: bool = true;
    const READS_WEIGHTS: bool = P::READS_WEIGHTS;
    const PROFILED: bool = P::PROFILED;

    fn slots(&self) -> &Occupancy {
        self.policy.slots()
    }

    fn slots_mut(&mut self) -> &mut Occupancy {
        self.policy.slots_mut()
    }

    fn contains(&self, key: Key) -> bool {
        self.policy.contains(key)
    }

    fn hit(&mut self, key: Key) {
        self.policy.hit(key);
    }

    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let full = self.slots().is_full();
        if !self.admission.wants(key, full) {
            return false;
        }
        let mut gate = Gate { room, admission: &mut self.admission, key: full.then_some(key) };
        self.policy.make_room(key, &mut gate)
    }

    fn enter(&mut self, key: Key) {
        self.policy.enter(key);
        self.admission.entered(key);
    }

    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let victim = self.policy.pop(may_leave)?;
        self.admission.left(victim);
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.policy.discard(key);
        self.admission.left(key);
    }

    fn set_capacity(&mut self, capacity: u32) {
        self.policy.set_capacity(capacity);
        self.admission.set_capacity(capacity);
    }

    fn begin_step(&mut self, tokens: u32) {
        if P::OBSERVES {
            self.policy.begin_step(tokens);
        }
        self.admission.begin_step();
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        if P::OBSERVES {
            self.policy.begin_event(event);
        }
        self.admission.begin_event(event);
    }

    fn set_profile(&mut self, profile: &[f32]) {
        if P::PROFILED {
            self.policy.set_profile(profile);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.policy.validate()?;
        self.admission.validate(|key| self.policy.contains(key))
    }
}
