//! LRU at every capacity under event semantics, where inclusion does not hold.
//!
//! A cache touches an event's hits first, in rank order, and inserts its misses behind them, in
//! ascending id. So in which order an event's experts leave depends on which of them were hits,
//! and that depends on the capacity: a larger cache may lack an expert that a smaller one has, and
//! a stack of distances would be wrong. What does hold, for every capacity from the widest event
//! on (no event overflows), by induction over events:
//!
//! 1. Residents are ordered by the event that used them last, for hits move to the front before
//!    anything leaves, and the event's own experts never leave. Call those whose latest use was one
//!    event its *group*. A cache of `C` slots holds the newest groups whole, and of the first one
//!    that does not fit as many as fit: with `D` experts in newer groups, `C - D` of it.
//! 2. Of that group it holds those that would leave last: the misses of then, highest id first,
//!    and once these fit, the hits of then, last rank first.
//!
//! So an access to an expert of a group of `g` (as it stands now) misses for sure up to `D` slots,
//! hits for sure from `D + g` on, and for the `g - 1` capacities between, it hits if fewer than
//! `C - D` of the group would leave after it; which of them were hits at each of these capacities
//! was found in the same way at their own latest use. Those answers are kept as a string of bits
//! over capacities ([`Answers`]), and the counting is done for 64 capacities at a time.

use hotset_policies::{ExpertId, Key};

use super::recency::Recency;
use super::tally::Marks;

const NEVER: u32 = u32::MAX;

/// One access, at its place in time.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    key: Key,
    /// First place of its group.
    head: u32,
    /// At a first place: how many places the group has.
    length: u32,
    /// At which capacities it was a hit: not up to `floor`, then as the place's bits in `Answers`
    /// say, then at all.
    floor: u32,
}

/// For each place bits over capacities, from the first above the use's floor on: whether it was a
/// hit. Bits beyond the undecided capacities are set.
#[derive(Debug, Clone)]
struct Answers {
    bits: Vec<u64>,
    /// Words a place: enough for the widest event, and one bit more.
    words: usize,
}

impl Answers {
    fn new(places: u32, widest: u32) -> Self {
        let words = (widest as usize).div_ceil(64).max(1);
        Self { bits: vec![0; places as usize * words], words }
    }

    /// Whether the access at `place` was a hit at each of 64 capacities, `skip` above its floor's
    /// next.
    #[inline(always)]
    fn from(&self, place: u32, skip: i64) -> u64 {
        let bits = &self.bits[place as usize * self.words..][..self.words];
        if skip <= -64 {
            return 0;
        }
        if skip < 0 {
            return bits[0] << -skip;
        }
        if let &[bits] = bits {
            // The top bit is set: there are fewer undecided capacities than experts in an event.
            return (bits.cast_signed() >> skip.min(63)).cast_unsigned();
        }
        let word = |index: usize| bits.get(index).copied().unwrap_or(u64::MAX);
        let (index, shift) = (skip as usize / 64, skip as u32 % 64);
        match shift {
            0 => word(index),
            _ => word(index) >> shift | word(index + 1) << (64 - shift),
        }
    }

    fn copy(&mut self, from: u32, to: u32) {
        let (from, to) = (from as usize * self.words, to as usize * self.words);
        self.bits.copy_within(from..from + self.words, to);
    }
}

/// A group as the running event finds it.
#[derive(Debug, Clone, Copy)]
struct Group {
    head: u32,
    /// Experts in newer groups.
    newer: u32,
    /// Its members, as a range of `members`.
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    place: u32,
    key: Key,
    floor: u32,
    /// Whether its latest access was a hit, at the first 64 capacities that cut its group.
    hit: u64,
}

/// LRU in one pool at every capacity that no event overflows.
#[derive(Debug, Clone)]
pub(super) struct EventStack {
    recency: Recency,
    /// Place of each key's latest use.
    last: Vec<u32>,
    uses: Vec<Use>,
    answers: Answers,
    /// The groups that the running event has met.
    groups: Vec<Group>,
    members: Vec<Member>,
    /// The running event's answers, before they take their places.
    floors: Vec<u32>,
    bits: Vec<u64>,
}

impl EventStack {
    /// `widest`: the most distinct experts that one event of this pool has.
    pub fn new(keys: u32, widest: u32) -> Self {
        let recency = Recency::new(keys.max(widest));
        let places = recency.places() as usize;
        Self {
            last: vec![NEVER; keys as usize],
            uses: vec![Use::default(); places],
            answers: Answers::new(recency.places(), widest),
            groups: Vec::new(),
            members: Vec::new(),
            floors: Vec::new(),
            bits: Vec::new(),
            recency,
        }
    }

    /// Distinct keys used.
    pub fn distinct(&self) -> u32 {
        self.recency.live()
    }

    /// One layer of one step: its distinct experts in rank order, `base` their layer's first key.
    #[inline(always)]
    pub fn event<E: ExpertId>(&mut self, base: Key, experts: &[E], marks: &mut Marks<'_>) {
        if (self.recency.left() as usize) < experts.len() {
            self.compact();
        }
        self.groups.clear();
        self.members.clear();
        self.floors.clear();
        self.bits.clear();
        // All answers first: hits are told before anything moves.
        for expert in experts {
            let last = self.last[(base + expert.index()) as usize];
            if last == NEVER {
                self.floors.push(NEVER);
                self.bits.resize(self.bits.len() + self.answers.words, u64::MAX);
            } else {
                let group = self.group_of(last);
                self.answer(last, group, marks);
            }
        }
        for expert in experts {
            let last = self.last[(base + expert.index()) as usize];
            if last != NEVER {
                self.recency.remove(last);
            }
        }
        let words = self.answers.words;
        let mut head = NEVER;
        for (index, expert) in experts.iter().enumerate() {
            let key = base + expert.index();
            let place = self.recency.push();
            head = head.min(place);
            self.last[key as usize] = place;
            let (length, floor) = (experts.len() as u32, self.floors[index]);
            self.uses[place as usize] = Use { key, head, length, floor };
            let place = place as usize;
            self.answers.bits[place * words..(place + 1) * words]
                .copy_from_slice(&self.bits[index * words..(index + 1) * words]);
        }
    }

    /// The group of a place, looked up once an event.
    #[inline(always)]
    fn group_of(&mut self, place: u32) -> Group {
        let head = self.uses[place as usize].head;
        if let Some(&known) = self.groups.iter().rev().find(|group| group.head == head) {
            return known;
        }
        let length = self.uses[head as usize].length;
        let newer = self.recency.newer(head + length - 1);
        let start = self.members.len() as u32;
        let Self { members, answers, uses, .. } = self;
        self.recency.set_among(head, length, |place| {
            let Use { key, floor, .. } = uses[place as usize];
            let hit = answers.from(place, i64::from(newer) - i64::from(floor));
            members.push(Member { place, key, floor, hit });
        });
        let group = Group { head, newer, start, end: members.len() as u32 };
        self.groups.push(group);
        group
    }

    /// Finds at which capacities the expert last used at `place` is resident, marks its hits and
    /// keeps the answer.
    #[inline(always)]
    fn answer(&mut self, place: u32, group: Group, marks: &mut Marks<'_>) {
        let size = group.end - group.start;
        let undecided = size - 1;
        let first = self.bits.len();
        if undecided == 0 {
            marks.from(group.newer + 1);
            self.floors.push(group.newer);
            self.bits.resize(first + self.answers.words, u64::MAX);
            return;
        }
        if self.answers.words == 1 {
            let members = &self.members[group.start as usize..group.end as usize];
            self.bits.push(resident(members, place, 0) | u64::MAX << undecided);
        } else {
            self.answer_wide(place, group);
        }
        let mut floor = group.newer;
        if let [bits] = &mut self.bits[first..] {
            let misses = bits.trailing_zeros();
            floor += misses;
            *bits = (bits.cast_signed() >> misses).cast_unsigned();
        }
        self.floors.push(floor);
        mark(floor + 1, &self.bits[first..], marks);
    }

    /// [`resident`] in blocks of 64 capacities, for pools with events of more than 64 experts.
    fn answer_wide(&mut self, place: u32, group: Group) {
        let undecided = group.end - group.start - 1;
        for block in 0..self.answers.words as u32 {
            let decided = undecided.saturating_sub(64 * block);
            if decided == 0 {
                self.bits.push(u64::MAX);
                continue;
            }
            let members = &mut self.members[group.start as usize..group.end as usize];
            for member in members.iter_mut() {
                let first = i64::from(group.newer + 64 * block);
                member.hit = self.answers.from(member.place, first - i64::from(member.floor));
            }
            let bits = resident(members, place, block);
            self.bits.push(if decided < 64 { bits | u64::MAX << decided } else { bits });
        }
    }

    /// Puts what is still the latest use together, so that places are free again.
    #[cold]
    fn compact(&mut self) {
        let Self { recency, last, uses, answers, .. } = self;
        let mut group = (NEVER, NEVER);
        recency.compact(|from, to| {
            let was = uses[from as usize];
            last[was.key as usize] = to;
            answers.copy(from, to);
            if was.head != group.0 {
                group = (was.head, to);
            }
            uses[to as usize] = Use { head: group.1, length: 0, ..was };
            uses[group.1 as usize].length += 1;
        });
    }
}

/// Whether the group's member at `place` is resident, at the 64 capacities that leave
/// `64 * block + 1` slots and up for the group.
#[inline(always)]
fn resident(members: &[Member], place: u32, block: u32) -> u64 {
    // As many binary digits as the number of other members needs.
    match members.len() {
        ..=8 => resident_of::<3>(members, place, block),
        17..=64 => resident_of::<6>(members, place, block),
        _ => resident_of::<17>(members, place, block),
    }
}

#[inline(always)]
fn resident_of<const DIGITS: usize>(members: &[Member], place: u32, block: u32) -> u64 {
    let own = members.iter().find(|member| member.place == place);
    let (own, key) = own.map_or((0, 0), |own| (own.hit, own.key));
    // How many others leave after it: for each capacity a number, a digit of all numbers a word.
    let mut count = [0u64; DIGITS];
    for member in members {
        let hit = member.hit;
        let later = mask(member.place > place);
        let above = mask(member.key > key);
        // Among hits the later touched leaves later, misses leave after hits, and among misses
        // the higher id leaves later.
        let mut carry = (!hit & (own | above) | hit & own & later) & mask(member.place != place);
        for digit in &mut count {
            let sum = *digit ^ carry;
            carry &= *digit;
            *digit = sum;
        }
    }
    let (mut fewer, mut equal) = (0, u64::MAX);
    for (index, &digit) in count.iter().enumerate().rev() {
        let slots = slots_digit(block, index as u32);
        fewer |= equal & !digit & slots;
        equal &= !(digit ^ slots);
    }
    fewer
}

/// Marks the hits of an access: at the capacities from `least` on for which the bits are set, and
/// at all beyond them.
#[inline(always)]
fn mark(mut least: u32, bits: &[u64], marks: &mut Marks<'_>) {
    // A run of hits that began in an earlier word.
    let mut open = None;
    for (index, &word) in bits.iter().enumerate() {
        let is_last = index + 1 == bits.len();
        let (mut rest, mut left) = (word, 64);
        while left > 0 {
            let (misses, hits) = (rest.trailing_zeros().min(left), rest.trailing_ones());
            if misses > 0 {
                if let Some(start) = open.take() {
                    marks.between(start, least);
                }
                least += misses;
                left -= misses;
                rest = rest.unbounded_shr(misses);
            } else {
                open = open.or(Some(least));
                if is_last && hits >= left {
                    break;
                }
                let hits = hits.min(left);
                least += hits;
                left -= hits;
                rest = rest.unbounded_shr(hits);
            }
        }
    }
    // The bits beyond the undecided capacities are set, so the last run is open.
    if let Some(start) = open {
        marks.from(start);
    }
}

#[inline(always)]
fn mask(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}

/// Binary digit `bit` of the numbers `64 * block + 1 ..= 64 * block + 64`, one number a bit.
#[inline(always)]
fn slots_digit(block: u32, bit: u32) -> u64 {
    const LOW: [u64; 6] = {
        let mut digits = [0; 6];
        let mut number = 1;
        while number <= 64 {
            let mut bit = 0;
            while bit < 6 {
                if number >> bit & 1 == 1 {
                    digits[bit] |= 1 << (number - 1);
                }
                bit += 1;
            }
            number += 1;
        }
        digits
    };
    if bit < 6 {
        return LOW[bit as usize];
    }
    // Only the last number has carried over into the next 64.
    let high = |number: u32| u64::from(number >> (bit - 6) & 1);
    high(block).wrapping_neg() & (u64::MAX >> 1) | high(block + 1) << 63
}
