//! One budget, two uses: slots that save copies, and keys and values that let more users or longer
//! contexts run.
//!
//! Every setting gives keys and values what it asks for and slots the rest, and is priced along the
//! trace's own curve. The best is the one with the most tokens a second; the front holds all that
//! no other setting beats in speed, tokens kept and users together.

use serde::Serialize;

use crate::fit::Fitting;
use crate::pricing::Pricing;
use crate::routing::Routing;
use crate::speed::Speed;
use crate::verdict::{Fit, FitVerdict};
use crate::{PlanError, Request};

/// One way to divide the memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemorySplit {
    /// Sequences that run at once.
    pub users: u32,
    /// Tokens that each may hold.
    pub context: u64,
    /// Tokens that all may hold.
    pub kv_tokens: u64,
    /// Slots, and their share of the experts.
    pub slots: u64,
    /// Share of the experts with a slot, 0 to 1.
    pub slots_share: f64,
    /// How it fits.
    pub verdict: FitVerdict,
    /// Tokens a second of all users, with nothing overlapped.
    pub no_overlap: f64,
    /// The same on the timeline.
    pub timeline: f64,
    /// The same with everything overlapped.
    pub perfect: f64,
}

/// What dividing the memory otherwise gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitFront {
    /// The most tokens a second, on the timeline.
    pub best: MemorySplit,
    /// Settings that no other beats in tokens a second, tokens kept and users together; the
    /// fastest first.
    pub front: Vec<MemorySplit>,
    /// Settings that were tried.
    pub tried: usize,
}

/// Contexts grow by a half of a power of two each time, up to this many times the one asked for.
const MOST_GROWTH: u64 = 256;

/// Numbers of users worth trying: powers of two below the one asked for, and that.
pub(crate) fn ladder(users: u32) -> Vec<u32> {
    let mut all: Vec<u32> = std::iter::successors(Some(1u32), |n| n.checked_mul(2))
        .take_while(|n| *n < users)
        .collect();
    all.push(users);
    all
}

/// Tries users up to those asked for and contexts from the one asked for. `None` where none fits.
pub(crate) fn split(
    request: &Request,
    fitting: &Fitting<'_>,
    pricing: &Pricing<'_>,
    routing: &Routing<'_>,
) -> Result<Option<SplitFront>, PlanError> {
    let mut all = Vec::new();
    for users in ladder(request.users) {
        for context in contexts(request) {
            let fit = fitting.fit(users, context, None);
            if fit.verdict == FitVerdict::DoesNotFit {
                break;
            }
            let speed = pricing.speed(routing, &fit, users, context)?;
            all.push(setting(users, context, &fit, &speed));
        }
    }
    let tried = all.len();
    let faster = |a: &&MemorySplit, b: &&MemorySplit| {
        a.timeline.total_cmp(&b.timeline).then(a.kv_tokens.cmp(&b.kv_tokens))
    };
    let Some(best) = all.iter().max_by(faster).cloned() else { return Ok(None) };
    Ok(Some(SplitFront { best, front: front(&all), tried }))
}

/// The context asked for, then half as much again and twice it in turn, up to the model's own.
fn contexts(request: &Request) -> Vec<u64> {
    let asked = request.context;
    let most = request.model.max_context.unwrap_or(u64::MAX);
    let mut all = vec![asked];
    let mut factor = 1;
    while factor < MOST_GROWTH {
        for context in [asked * factor * 3 / 2, asked * factor * 2] {
            if context < most {
                all.push(context);
            }
        }
        factor *= 2;
    }
    if most > asked && most <= asked.saturating_mul(MOST_GROWTH) {
        all.push(most);
    }
    all
}

pub(crate) fn setting(users: u32, context: u64, fit: &Fit, speed: &Speed) -> MemorySplit {
    MemorySplit {
        users,
        context,
        kv_tokens: u64::from(users) * context,
        slots: fit.slots,
        slots_share: fit.share(),
        verdict: fit.verdict,
        no_overlap: speed.no_overlap.tokens_per_s,
        timeline: speed.timeline.tokens_per_s,
        perfect: speed.perfect.tokens_per_s,
    }
}

/// Those that no other is at least as good as in all three, and better in one.
fn front(all: &[MemorySplit]) -> Vec<MemorySplit> {
    let as_good = |a: &MemorySplit, b: &MemorySplit| {
        a.timeline >= b.timeline && a.kv_tokens >= b.kv_tokens && a.users >= b.users
    };
    let better = |a: &MemorySplit, b: &MemorySplit| as_good(a, b) && !as_good(b, a);
    let mut front: Vec<MemorySplit> =
        all.iter().filter(|one| !all.iter().any(|other| better(other, one))).cloned().collect();
    front.sort_by(|a, b| b.timeline.total_cmp(&a.timeline).then(b.kv_tokens.cmp(&a.kv_tokens)));
    front.dedup();
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(users: u32, kv_tokens: u64, timeline: f64) -> MemorySplit {
        MemorySplit {
            users,
            context: kv_tokens / u64::from(users),
            kv_tokens,
            slots: 0,
            slots_share: 0.0,
            verdict: FitVerdict::Cached,
            no_overlap: timeline,
            timeline,
            perfect: timeline,
        }
    }

    #[test]
    fn the_front_by_hand() {
        let all = [
            point(1, 100, 10.0),
            point(1, 200, 9.0),
            point(1, 150, 8.0),
            point(2, 200, 9.0),
            point(2, 400, 3.0),
        ];
        // (1, 150, 8) is beaten by (1, 200, 9), and that by (2, 200, 9).
        let kept: Vec<(u32, u64)> = front(&all).iter().map(|s| (s.users, s.kv_tokens)).collect();
        assert_eq!(kept, [(1, 100), (2, 200), (2, 400)]);
    }

    #[test]
    fn users_climb_by_powers_of_two() {
        assert_eq!(ladder(1), [1]);
        assert_eq!(ladder(8), [1, 2, 4, 8]);
        assert_eq!(ladder(12), [1, 2, 4, 8, 12]);
        assert_eq!(ladder(u32::MAX).len(), 33);
    }
}
