//! A policy chosen at run time, as one type: for engines that read its name from a flag, for
//! conformance checks and for admission over any policy. It costs a virtual call a hit and a miss
//! against the policy's own type.

use std::fmt;

use crate::{Bound, Event, Key, Occupancy, Policy, PolicySpec, PoolShape, Room, Visitor};

/// [`Policy`] without generics, so that it can be boxed.
trait Boxed: Send {
    fn slots(&self) -> &Occupancy;
    fn slots_mut(&mut self) -> &mut Occupancy;
    fn contains(&self, key: Key) -> bool;
    fn hit(&mut self, key: Key);
    fn enter(&mut self, key: Key);
    fn pop(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key>;
    fn discard(&mut self, key: Key);
    fn make_room(&mut self, key: Key, room: &mut dyn Room) -> bool;
    fn admit(&mut self, key: Key, room: &mut dyn Room) -> bool;
    fn set_capacity(&mut self, capacity: u32);
    fn begin_step(&mut self, tokens: u32);
    fn begin_event(&mut self, event: &Event<'_>);
    fn set_profile(&mut self, profile: &[f32]);
    fn validate(&self) -> Result<(), String>;
}

/// A room behind a reference: the policies' own calls are generic over a sized one.
struct Lent<'a>(&'a mut dyn Room);

impl Room for Lent<'_> {
    fn may_evict(&self, key: Key) -> bool {
        self.0.may_evict(key)
    }
    fn evict(&mut self, key: Key) {
        self.0.evict(key);
    }
}

impl<P: Policy + Send> Boxed for P {
    fn slots(&self) -> &Occupancy {
        Policy::slots(self)
    }
    fn slots_mut(&mut self) -> &mut Occupancy {
        Policy::slots_mut(self)
    }
    fn contains(&self, key: Key) -> bool {
        Policy::contains(self, key)
    }
    fn hit(&mut self, key: Key) {
        Policy::hit(self, key);
    }
    fn enter(&mut self, key: Key) {
        Policy::enter(self, key);
    }
    fn pop(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        Policy::pop(self, may_leave)
    }
    fn discard(&mut self, key: Key) {
        Policy::discard(self, key);
    }
    fn make_room(&mut self, key: Key, room: &mut dyn Room) -> bool {
        Policy::make_room(self, key, &mut Lent(room))
    }
    fn admit(&mut self, key: Key, room: &mut dyn Room) -> bool {
        Policy::admit(self, key, &mut Lent(room))
    }
    fn set_capacity(&mut self, capacity: u32) {
        Policy::set_capacity(self, capacity);
    }
    fn begin_step(&mut self, tokens: u32) {
        if P::OBSERVES {
            Policy::begin_step(self, tokens);
        }
    }
    fn begin_event(&mut self, event: &Event<'_>) {
        if P::OBSERVES {
            Policy::begin_event(self, event);
        }
    }
    fn set_profile(&mut self, profile: &[f32]) {
        if P::PROFILED {
            Policy::set_profile(self, profile);
        }
    }
    fn validate(&self) -> Result<(), String> {
        Policy::validate(self)
    }
}

/// Any online policy behind one type; see [`PolicySpec::build`].
pub struct AnyPolicy(Box<dyn Boxed>);

impl AnyPolicy {
    /// Boxes a policy.
    #[must_use]
    pub fn new(policy: impl Policy + Send + 'static) -> Self {
        Self(Box::new(policy))
    }
}

impl fmt::Debug for AnyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyPolicy").field("slots", self.0.slots()).finish_non_exhaustive()
    }
}

impl Policy for AnyPolicy {
    const OBSERVES: bool = true;
    const PROFILED: bool = true;

    fn slots(&self) -> &Occupancy {
        self.0.slots()
    }
    fn slots_mut(&mut self) -> &mut Occupancy {
        self.0.slots_mut()
    }
    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }
    fn hit(&mut self, key: Key) {
        self.0.hit(key);
    }
    fn enter(&mut self, key: Key) {
        self.0.enter(key);
    }
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        self.0.pop(&may_leave)
    }
    fn discard(&mut self, key: Key) {
        self.0.discard(key);
    }
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.0.make_room(key, room)
    }
    // One virtual call where the provided one makes two.
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        self.0.admit(key, room)
    }
    fn set_capacity(&mut self, capacity: u32) {
        self.0.set_capacity(capacity);
    }
    fn begin_step(&mut self, tokens: u32) {
        self.0.begin_step(tokens);
    }
    fn begin_event(&mut self, event: &Event<'_>) {
        self.0.begin_event(event);
    }
    fn set_profile(&mut self, profile: &[f32]) {
        self.0.set_profile(profile);
    }
    fn validate(&self) -> Result<(), String> {
        self.0.validate()
    }
}

impl PolicySpec {
    /// The policy of one pool behind one type; `None` for what an engine cannot run from its name
    /// alone, because it needs the future or a training part of a trace.
    #[must_use]
    pub fn build(&self, pool: &PoolShape) -> Option<AnyPolicy> {
        self.visit(Build(pool))
    }
}

struct Build<'a>(&'a PoolShape);

impl Visitor for Build<'_> {
    type Output = Option<AnyPolicy>;

    fn online<P: Policy + Send + 'static>(self, build: impl Fn(&PoolShape) -> P) -> Self::Output {
        Some(AnyPolicy::new(build(self.0)))
    }

    fn offline(self, _: Bound) -> Self::Output {
        None
    }

    fn trained<P: Policy + Send>(self, _: impl Fn(&PoolShape, &[u64]) -> P) -> Self::Output {
        None
    }
}
