//! HybriMoE's schedule: link and host draw from the two ends of one queue.
//!
//! Source: HybriMoE (DAC 2025), hybrid scheduling: the host's cores compute missing experts with the
//! smallest load first, the link brings those with the largest, and a simulation of both clocks says
//! who takes the next.

use std::cmp::Reverse;

use super::absent::Absent;

/// Sorts the missing experts so that the first returned number are fetched, the others left to the
/// host. Loads are tokens; a copy takes `copy`, the host `host` for each token. Whoever would finish
/// the next one of theirs first takes it, the link on a tie.
pub(super) fn fetched(absent: &mut [Absent], copy: u64, host: u64) -> usize {
    absent.sort_unstable_by_key(|of| (Reverse(of.tokens), of.place));
    let (mut link_ends, mut host_ends) = (0u64, 0u64);
    let (mut front, mut back) = (0, absent.len());
    while front < back {
        let by_link = link_ends.saturating_add(copy);
        let load = u64::from(absent[back - 1].tokens);
        let by_host = host_ends.saturating_add(host.saturating_mul(load));
        if by_link <= by_host {
            link_ends = by_link;
            front += 1;
        } else {
            host_ends = by_host;
            back -= 1;
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tokens: &[u32], copy: u64, host: u64) -> (usize, Vec<u32>) {
        let absent = |(place, &tokens): (usize, &u32)| Absent {
            last: 0,
            expert: place as u32,
            place,
            tokens,
            class: 0,
        };
        let mut all: Vec<Absent> = tokens.iter().enumerate().map(absent).collect();
        let fetched = fetched(&mut all, copy, host);
        (fetched, all.iter().map(|of| of.expert).collect())
    }

    #[test]
    fn each_takes_from_its_end_what_it_would_finish_first() {
        // A copy takes 10, the host 4 a token. Loads 1, 5, 2: the host takes the load of 1 (ends at
        // 4), then would end the 2 at 12, the link the 5 at 10: the link. Then the host's 12 against
        // the link's 20: the host.
        assert_eq!(run(&[1, 5, 2], 10, 4), (1, vec![1, 2, 0]));
        // One token each: three to the host (4, 8, then 12 against 10): two, one, one...
        assert_eq!(run(&[1, 1, 1, 1], 10, 4).0, 1);
    }

    #[test]
    fn the_extremes_use_one_side_only() {
        assert_eq!(run(&[1, 9, 3], 0, 1).0, 3, "a link that takes no time");
        assert_eq!(run(&[1, 9, 3], 10, u64::MAX).0, 3, "a host that never ends");
        assert_eq!(run(&[1, 9, 3], u64::MAX, 0).0, 0);
        assert_eq!(run(&[], 1, 1).0, 0);
    }
}
