//! The yardstick of splits: for each event the number of copies with which it would have ended first.
//!
//! Experts of a layer are of one size, so an assignment of misses to link and host is a number of
//! copies, and all of them are tried. Each is judged as the timeline would run it, from what the link
//! still has to do and with what copies and cores cost each other, up to the end of the layer's
//! kernel. Beside the best stands the choice of who knows nothing of that contention, judged with it.

use super::costs::Costs;
use super::overlap::{Job, beside};

/// An event whose misses are to be split.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitEvent {
    pub layer: usize,
    pub tokens: u32,
    /// Distinct experts that it needs.
    pub distinct: u32,
    /// Of those, resident.
    pub resident: u32,
    pub misses: u32,
    /// Tokens that want those, beyond one each; taken to be spread evenly over them.
    pub further: u32,
    /// What the link still has to do before copies of this event.
    pub busy: u64,
}

/// Copies and cores beside each other, per mille of their time alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowdown {
    pub copy: u32,
    pub host: u32,
}

impl Slowdown {
    const NONE: Self = Self { copy: 1000, host: 1000 };
}

/// How long an event takes from its routing to the end of its kernel, by how its misses are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judged {
    pub rule: u64,
    pub best: u64,
    pub uncontended: u64,
    pub fetch_all: u64,
    pub host_all: u64,
}

/// Judges a split of `fetched` copies.
pub(super) fn judge(costs: &Costs, event: &SplitEvent, fetched: u32, slowed: Slowdown) -> Judged {
    let takes = |fetched| takes(costs, event, fetched, slowed);
    // Of equals the one with more copies: what is copied may be hit later.
    let shortest = |slowed: Slowdown| {
        (0..=event.misses)
            .rev()
            .min_by_key(|&fetched| self::takes(costs, event, fetched, slowed))
            .unwrap_or(0)
    };
    Judged {
        rule: takes(fetched),
        best: takes(shortest(slowed)),
        uncontended: takes(shortest(Slowdown::NONE)),
        fetch_all: takes(event.misses),
        host_all: takes(0),
    }
}

fn takes(costs: &Costs, event: &SplitEvent, fetched: u32, slowed: Slowdown) -> u64 {
    let size = costs.size(event.layer);
    let queued = size.queued.saturating_mul(u64::from(fetched)).saturating_add(event.busy);
    let copies = if fetched > 0 { queued.max(size.demand(fetched)) } else { event.busy };
    let served = event.misses - fetched;
    let further = u64::from(event.further) * u64::from(served) / u64::from(event.misses.max(1));
    let work = size
        .host
        .saturating_mul(u64::from(served))
        .saturating_add(size.host_more.saturating_mul(further));
    let (mut host_ends, mut copies_end) = (0, copies);
    if work > 0 {
        let ends = beside(
            Job { alone: work, permille: slowed.host },
            Job { alone: copies, permille: slowed.copy },
        );
        (host_ends, copies_end) = (ends.first, ends.second);
    }
    let arrived = if fetched > 0 { copies_end } else { 0 };
    let on_gpu = event.resident + fetched;
    let kernel = costs.experts(event.layer, event.tokens, on_gpu, event.distinct);
    arrived.max(host_ends).saturating_add(kernel)
}

#[cfg(test)]
mod tests {
    use hotset_cost_models::{Contention, HostContention, HostKernel, Link};
    use hotset_traces::Shape;

    use super::*;
    use crate::Compute;

    /// A copy takes 20, the host 9; beside each other 1.6 and 1.2 times as long.
    fn costs() -> Costs {
        let mut link = Link::affine("l", 20, 0);
        link.contention = Contention {
            host: vec![HostContention {
                threads: 32,
                copy_permille: 1600,
                host_permille: 1200,
                host_ps_per_mib: 9,
                more_ps_per_mib: 0,
                handoff_ps: 0,
            }],
            ..Contention::default()
        };
        let shape = Shape::uniform(1, 8, 4).unwrap().with_expert_bytes(1 << 20);
        Costs::new(&shape, &link, &Compute::None, HostKernel { ps_per_mib: 9, more_ps_per_mib: 3 })
    }

    fn event(misses: u32, busy: u64) -> SplitEvent {
        SplitEvent {
            layer: 0,
            tokens: 1,
            distinct: 4,
            resident: 4 - misses,
            misses,
            further: 0,
            busy,
        }
    }

    #[test]
    fn who_ignores_contention_copies_where_the_host_alone_is_faster() {
        let slowed = Slowdown { copy: 1600, host: 1200 };
        let judged = judge(&costs(), &event(3, 0), 1, slowed);
        // Three by the host take 27. One copied: the host's two take 18 x 1.2 = 21.6 -> 22, the copy
        // has done 22 / 1.6 = 13 of 20 then and ends at 29. Alone it would be 20 against 18.
        assert_eq!((judged.host_all, judged.rule, judged.best), (27, 29, 27));
        assert_eq!((judged.uncontended, judged.fetch_all), (29, 60));
        // Of four, one copied is best for both: the host's three end at 33, the copy at 32.
        let judged = judge(&costs(), &event(4, 0), 0, slowed);
        assert_eq!((judged.best, judged.uncontended, judged.rule), (33, 33, 36));
    }

    #[test]
    fn what_many_tokens_want_takes_the_host_longer() {
        let alone = Slowdown { copy: 1000, host: 1000 };
        let busy = SplitEvent { further: 9, ..event(3, 0) };
        let judged = judge(&costs(), &busy, 0, alone);
        // Three experts of four tokens each: 3 x 9 + 9 x 3 = 54 on the host; one copied leaves 36.
        assert_eq!((judged.rule, judged.best, judged.fetch_all), (54, 36, 60));
        assert_eq!(judge(&costs(), &event(3, 0), 0, alone).rule, 27);
    }

    #[test]
    fn a_link_that_is_busy_gets_less() {
        let slowed = Slowdown { copy: 1000, host: 1000 };
        let judged = judge(&costs(), &event(4, 30), 1, slowed);
        // The copy would end at 50; all four by the host end at 36.
        assert_eq!((judged.rule, judged.best), (50, 36));
    }
}
