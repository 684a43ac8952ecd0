//! The one trait that every eviction policy implements, and what a policy may ask of its pool.
//!
//! A *pool* is a set of slots that share one policy: the whole cache in global scope, one layer's
//! slots in layer scope. A policy sees dense pool-local keys `0..pool.keys`, keeps its state in
//! arrays indexed by them, and allocates nothing after construction.

use crate::occupancy::Occupancy;

/// A dense pool-local key of an expert, `0..keys`.
pub type Key = u32;

/// What a policy is built for.
///
/// ```
/// use hotset_policies::PoolShape;
///
/// // Layers of two and three experts: keys 0 1 | 2 3 4.
/// let pool = PoolShape { capacity: 2, keys: 5, layer_bases: vec![0, 2], keys_per_token: 2 };
/// assert_eq!((pool.layers(), pool.layer_of_keys()), (2, vec![0, 0, 1, 1, 1]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolShape {
    /// Slots in the pool.
    pub capacity: u32,
    /// Number of experts that can ask for a slot; keys are `0..keys`.
    pub keys: u32,
    /// First key of each layer in the pool, ascending; one entry in layer scope.
    pub layer_bases: Vec<u32>,
    /// Experts that one token uses over all of the pool's layers.
    pub keys_per_token: u32,
}

impl PoolShape {
    /// A pool of one layer, as plain cache traces have.
    #[must_use]
    pub fn flat(capacity: u32, keys: u32) -> Self {
        Self { capacity, keys, layer_bases: vec![0], keys_per_token: 1 }
    }

    /// Number of layers in the pool.
    #[must_use]
    pub fn layers(&self) -> u32 {
        self.layer_bases.len() as u32
    }

    /// Keys of the layer that has most.
    pub(crate) fn widest_layer(&self) -> u32 {
        let ends = self.layer_bases.iter().skip(1).copied().chain([self.keys]);
        self.layer_bases.iter().zip(ends).map(|(&base, end)| end - base).max().unwrap_or(0)
    }

    /// The layer of every key, one entry a key.
    #[must_use]
    pub fn layer_of_keys(&self) -> Vec<u32> {
        let mut layers = vec![0; self.keys as usize];
        for (layer, &base) in self.layer_bases.iter().enumerate() {
            for of_key in &mut layers[base as usize..] {
                *of_key = layer as u32;
            }
        }
        layers
    }
}

/// One layer of one step as an observing policy sees it, before its hits and misses.
///
/// ```
/// use hotset_policies::{Event, Mrs, MrsConfig, Policy as _, PoolShape};
///
/// let mut policy = Mrs::new(&PoolShape::flat(2, 4), &MrsConfig::default());
/// // The router chose expert 1 with a weight of 0.75 and expert 0 with 0.25.
/// policy.begin_event(&Event { layer: 0, keys: &[1, 0], weights: &[0.75, 0.25] });
/// assert!(policy.is_empty());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Layer within the pool, `0..pool.layers()`.
    pub layer: u32,
    /// The distinct keys that the event needs, at least one, in order of first appearance (best
    /// rank first).
    pub keys: &'a [Key],
    /// Router weight of each key, summed over the step's tokens; empty where none were recorded.
    pub weights: &'a [f32],
}

/// The pool's side of an eviction: who may leave, and who left.
///
/// ```
/// use hotset_policies::{Key, Lru, Policy as _, PoolShape, Room};
///
/// /// A pool whose key 0 is in use.
/// struct KeyZeroIsNeeded {
///     evicted: Vec<Key>,
/// }
///
/// impl Room for KeyZeroIsNeeded {
///     fn may_evict(&self, key: Key) -> bool {
///         key != 0
///     }
///     fn evict(&mut self, key: Key) {
///         self.evicted.push(key);
///     }
/// }
///
/// let mut room = KeyZeroIsNeeded { evicted: Vec::new() };
/// let mut lru = Lru::new(&PoolShape::flat(2, 4));
/// for key in [0, 1, 2] {
///     assert!(lru.admit(key, &mut room));
/// }
/// assert_eq!(room.evicted, [1]);
/// ```
pub trait Room {
    /// Whether `key` may leave now: the running events do not need it, its copy is not in flight
    /// and nothing protects it.
    fn may_evict(&self, key: Key) -> bool;
    /// Records that `key` left its slot.
    fn evict(&mut self, key: Key);
}

/// Sequential semantics: one access at a time, so anything may leave and nobody keeps slots.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anyone;

impl Room for Anyone {
    #[inline(always)]
    fn may_evict(&self, _: Key) -> bool {
        true
    }
    #[inline(always)]
    fn evict(&mut self, _: Key) {}
}

/// An eviction policy over the dense keys of one pool.
///
/// ```
/// use hotset_policies::{Anyone, Lru, Policy as _, PoolShape};
///
/// let mut lru = Lru::new(&PoolShape::flat(2, 4));
/// let mut misses = 0;
/// for key in [0, 1, 0, 2, 1] {
///     if lru.contains(key) {
///         lru.hit(key);
///     } else {
///         misses += 1;
///         lru.admit(key, &mut Anyone);
///     }
/// }
/// assert_eq!(misses, 4);
/// ```
///
/// A policy that evicts its lowest score implements [`Ranking`](crate::Ranking) instead and is had
/// as [`Ranked`](crate::Ranked).
///
/// The caller tells hits from misses: [`hit`](Policy::hit) only for resident keys,
/// [`admit`](Policy::admit) only for absent ones. A policy never evicts a key that
/// [`Room::may_evict`] denies; where it looks for a victim in a list it passes over such keys
/// and leaves their place in the list alone.
pub trait Policy {
    /// Whether the policy wants [`begin_step`](Policy::begin_step) and
    /// [`begin_event`](Policy::begin_event). A constant, so the others pay nothing.
    const OBSERVES: bool = false;

    /// Whether the policy reads [`Event::weights`]; who drives it need not gather them otherwise.
    const READS_WEIGHTS: bool = Self::OBSERVES;

    /// Whether the policy wants [`set_profile`](Policy::set_profile).
    const PROFILED: bool = false;

    /// The pool's slots; the provided methods count them.
    fn slots(&self) -> &Occupancy;

    /// As [`slots`](Policy::slots), to count in.
    fn slots_mut(&mut self) -> &mut Occupancy;

    /// Whether `key` is resident.
    fn contains(&self, key: Key) -> bool;

    /// An absent key takes a free slot.
    fn enter(&mut self, key: Key);

    /// Takes out one key that `may_leave`, by the policy's own rule; `None` if there is none.
    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key>;

    /// Takes out a resident key whose slot was taken from outside; it leaves no history behind.
    fn discard(&mut self, key: Key);

    /// A resident key was used; nothing to a policy that goes by admissions alone.
    #[inline(always)]
    fn hit(&mut self, key: Key) {
        let _ = key;
    }

    /// Checks the structure's invariants; tests call it after every operation. Without one of its own,
    /// a policy is only asked whether it counts more residents than it has slots.
    ///
    /// # Errors
    /// Says which invariant is broken.
    fn validate(&self) -> Result<(), String> {
        self.slots().agree_with(self.slots().taken)
    }

    /// Number of resident keys.
    #[inline(always)]
    fn len(&self) -> u32 {
        self.slots().taken
    }

    /// Whether nothing is resident.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sees to a free slot for an absent key before it [enters](Policy::enter). `false` declines
    /// the key. Policies that learn from misses, or choose the victim by who comes, have their own.
    #[inline(always)]
    fn make_room<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        let _ = key;
        self.free_a_slot(room)
    }

    /// Evicts one key if all slots are taken. `false` if nothing may leave then.
    #[inline(always)]
    fn free_a_slot<R: Room>(&mut self, room: &mut R) -> bool {
        !self.slots().is_full() || self.evict_one(room)
    }

    /// Brings in an absent key, evicting through `room` as needed. Returns `false` and changes no
    /// residency if the pool is full and nothing in it may leave.
    #[inline(always)]
    fn admit<R: Room>(&mut self, key: Key, room: &mut R) -> bool {
        if !self.make_room(key, room) {
            return false;
        }
        self.enter(key);
        self.slots_mut().taken += 1;
        true
    }

    /// Evicts one key by the policy's own rule (the pool shrinks). `false` if nothing may leave.
    #[inline(always)]
    fn evict_one<R: Room>(&mut self, room: &mut R) -> bool {
        let Some(victim) = self.pop(|key| room.may_evict(key)) else {
            return false;
        };
        self.slots_mut().taken -= 1;
        room.evict(victim);
        true
    }

    /// Drops a resident key whose slot was taken from outside.
    #[inline(always)]
    fn remove(&mut self, key: Key) {
        self.discard(key);
        self.slots_mut().taken -= 1;
    }

    /// Sets the number of slots; called when at most that many keys are resident.
    fn set_capacity(&mut self, capacity: u32) {
        self.slots_mut().capacity = capacity;
    }

    /// A step of `tokens` tokens begins. Only called if [`OBSERVES`](Policy::OBSERVES).
    fn begin_step(&mut self, tokens: u32) {
        let _ = tokens;
    }

    /// An event begins; its hits and admissions follow. Only called if
    /// [`OBSERVES`](Policy::OBSERVES).
    fn begin_event(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// What the running conversations are expected to use from now on: uses a token of each key
    /// of the pool. Only called if [`PROFILED`](Policy::PROFILED).
    fn set_profile(&mut self, profile: &[f32]) {
        let _ = profile;
    }
}
