//! The copy engines' side of a timeline: when each expert arrives.
//!
//! A layer's copies are one burst, gated on the end of the kernel before which their need was not
//! known: demands first, then prefetches. Copy `k` of a burst arrives when the copies before the
//! burst and `k` more have passed the link, and not before a burst of `k` takes on an idle link.
//!
//! The link has a clock of its own that stands still for as long as something beside it costs the
//! link time: arrivals that are already known move with it, whoever waits for them.

use super::costs::SizeCosts;
use super::model::CopyOrder;
use super::shared_link::SharedLink;

/// An expert's copy: when it arrives on the link's clock, or its mark where queues share the link
/// and its earliest arrival.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ticket {
    pub(super) at: u64,
    earliest: u64,
}

#[derive(Debug)]
pub(super) struct Copies {
    /// What the link's clock is behind.
    delay: u64,
    /// The burst: when it may start, when the link is free for it, what its copies so far take of
    /// the link and on an idle one, and how many they are.
    gate: u64,
    base: u64,
    work: u64,
    alone: u64,
    count: u32,
    /// When the last copy has arrived: in order, or on an idle link.
    free: u64,
    shared: Option<Box<SharedLink>>,
    /// What the running event waits for: a time, a mark, demands.
    until: u64,
    mark: u64,
    demands: bool,
}

impl Copies {
    pub fn new(order: CopyOrder) -> Self {
        let shared = match order {
            CopyOrder::InOrder => None,
            CopyOrder::DemandFirst => Some(Box::new(SharedLink::new(false))),
            CopyOrder::TwoEngines => Some(Box::new(SharedLink::new(true))),
        };
        Self {
            delay: 0,
            gate: 0,
            base: 0,
            work: 0,
            alone: 0,
            count: 0,
            free: 0,
            shared,
            until: 0,
            mark: 0,
            demands: false,
        }
    }

    /// Whether demands and prefetches have queues of their own.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// An event's burst may start now.
    #[inline(always)]
    pub fn begin(&mut self, now: u64) {
        self.gate = now.saturating_sub(self.delay);
        self.base = self.free.max(self.gate);
        (self.work, self.alone, self.count) = (0, 0, 0);
        (self.until, self.mark, self.demands) = (0, 0, false);
        if let Some(link) = &mut self.shared {
            link.advance(self.gate);
        }
    }

    #[inline(always)]
    fn extend(&mut self, size: &SizeCosts, copies: u32) -> u64 {
        let work = size.queued.saturating_mul(u64::from(copies));
        self.work = self.work.saturating_add(work);
        let more = size.demand(self.count + copies) - size.demand(self.count);
        self.alone = self.alone.saturating_add(more);
        self.count += copies;
        work
    }

    /// When the burst's last copy arrives if copies run in order.
    #[inline(always)]
    fn in_order(&mut self) -> u64 {
        let queued = self.base.saturating_add(self.work);
        self.free = queued.max(self.gate.saturating_add(self.alone));
        self.free
    }

    /// Queues copies that the event waits for; returns what they take on an idle link.
    #[inline(always)]
    pub fn demand(&mut self, size: &SizeCosts, copies: u32) -> u64 {
        let work = self.extend(size, copies);
        match &mut self.shared {
            None => {
                let arrival = self.in_order();
                self.until = self.until.max(arrival);
            }
            Some(link) => {
                link.demand(work);
                self.demands = true;
                let earliest = self.gate.saturating_add(self.alone);
                self.free = self.free.max(earliest);
                self.until = self.until.max(earliest);
            }
        }
        self.alone
    }

    /// [`demand`](Self::demand) of one copy that cannot begin before `ready`, on the clock of the
    /// compute stream: what it copies is not in host memory before.
    pub fn demand_once(&mut self, size: &SizeCosts, ready: u64) -> u64 {
        let floor = self.gate_at(size, ready);
        let alone = self.demand(size, 1);
        self.until = self.until.max(floor);
        alone
    }

    /// [`ahead`](Self::ahead) of one copy that cannot begin before `ready`.
    pub fn ahead_once(&mut self, size: &SizeCosts, ready: u64) -> Ticket {
        let floor = self.gate_at(size, ready);
        let ticket = self.ahead(size, 1);
        match self.shared {
            None => ticket,
            Some(_) => Ticket { earliest: ticket.earliest.max(floor), ..ticket },
        }
    }

    /// Holds the copy that is queued next until `ready`; returns when it is there at the earliest.
    /// In order, those behind it wait too; where queues share the link, they do not.
    fn gate_at(&mut self, size: &SizeCosts, ready: u64) -> u64 {
        let ready = ready.saturating_sub(self.delay);
        if ready <= self.gate {
            return 0;
        }
        let floor = ready.saturating_add(size.demand(1));
        if self.shared.is_none() {
            let work = self.work.saturating_add(size.queued);
            self.base = self.base.max(floor.saturating_sub(work));
        }
        self.free = self.free.max(floor);
        floor
    }

    /// Queues copies that the event does not wait for.
    #[inline]
    pub fn ahead(&mut self, size: &SizeCosts, copies: u32) -> Ticket {
        let work = self.extend(size, copies);
        match &mut self.shared {
            None => Ticket { at: self.in_order(), earliest: 0 },
            Some(link) => {
                let earliest = self.gate.saturating_add(self.alone);
                self.free = self.free.max(earliest);
                Ticket { at: link.prefetch(work), earliest }
            }
        }
    }

    /// The event waits for this copy. Whether it had not arrived when the burst could start.
    #[inline]
    pub fn need(&mut self, ticket: Ticket) -> bool {
        let arrival = self.arrival(ticket);
        match &self.shared {
            None => self.until = self.until.max(ticket.at),
            Some(_) => {
                self.mark = self.mark.max(ticket.at);
                self.until = self.until.max(ticket.earliest);
            }
        }
        arrival > self.gate
    }

    /// The event writes where this copy, if it is still to come, writes first.
    pub fn follow(&mut self, ticket: Ticket) {
        if self.shared.is_some() {
            self.mark = self.mark.max(ticket.at);
        }
    }

    fn arrival(&self, ticket: Ticket) -> u64 {
        match &self.shared {
            None => ticket.at,
            Some(link) => link.mark_end(ticket.at).max(ticket.earliest),
        }
    }

    /// When everything that the event waits for has arrived, seen from now.
    #[inline(always)]
    pub fn arrived(&mut self, now: u64) -> u64 {
        let mut until = self.until;
        if let Some(link) = &mut self.shared {
            link.advance(now.saturating_sub(self.delay));
            if self.demands {
                until = until.max(link.demand_end());
            }
            until = until.max(link.mark_end(self.mark));
        }
        until.saturating_add(self.delay)
    }

    /// How long the link is still busy with what is queued, alone.
    #[inline(always)]
    pub fn left(&mut self, now: u64) -> u64 {
        let now = now.saturating_sub(self.delay);
        match &mut self.shared {
            None => self.free.saturating_sub(now),
            Some(link) => {
                link.advance(now);
                link.end().max(self.free).saturating_sub(now)
            }
        }
    }

    /// Until when the link is busy with what is queued. In order only.
    pub fn busy_until(&self) -> u64 {
        self.free.max(self.gate)
    }

    /// Whether a copy that arrives `at`, `took` after what is queued before it, has not begun when
    /// the running burst may start. In order only.
    pub fn not_begun(&self, at: u64, took: u64) -> bool {
        at.saturating_sub(took) >= self.gate
    }

    /// Copies that took so long behind everything that has begun are taken back. In order only,
    /// and before anything of the running burst is queued.
    pub fn take_back(&mut self, took: u64) {
        self.free = self.free.saturating_sub(took);
        self.base = self.free.max(self.gate);
    }

    /// Something beside the link cost it so much time.
    #[inline(always)]
    pub fn hold(&mut self, time: u64) {
        self.delay = self.delay.saturating_add(time);
    }

    /// The burst's last copy on the clock of the compute stream, as things stand: for the record.
    pub fn last_arrival(&self) -> u64 {
        let end = match &self.shared {
            None => self.free,
            Some(link) => link.end().max(self.free),
        };
        end.saturating_add(self.delay)
    }
}
