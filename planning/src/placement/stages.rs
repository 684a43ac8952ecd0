//! Layers in turn over accelerators that may be of unequal size.

use hotset_cost_models::Hardware;
use hotset_cost_models::hardware::Basis;

use super::Stage;
use crate::Request;
use crate::memory_line::MemoryLine;

/// What each accelerator needs whole, however few layers it has.
const OWN: [&str; 6] =
    ["activations", "compute buffer", "kernels' pool", "graphs", "process", "slack"];

/// Layers shared out in their order, so that every accelerator is filled to about the same share: those whose experts the
/// host computes are light, and the first accelerator takes more of them. `experts` are the bytes of routed experts
/// that stay of each layer.
pub(super) fn stages(
    request: &Request,
    lines: &[MemoryLine],
    cards: &[&Hardware],
    experts: &[u64],
) -> Vec<Stage> {
    let budgets: Vec<u64> = cards.iter().map(|card| budget(request, card)).collect();
    let sum = |own: bool| {
        let lines = lines.iter().filter(|line| OWN.contains(&line.name) == own);
        lines.fold(0u64, |sum, line| sum.saturating_add(line.bytes))
    };
    let (own, shared) = (sum(true), sum(false));
    let layers = experts.len().max(1);
    let each = shared as f64 / layers as f64;
    let weight: Vec<f64> = experts.iter().map(|routed| each + *routed as f64).collect();
    let room: Vec<f64> = budgets.iter().map(|budget| budget.saturating_sub(own) as f64).collect();
    let counts = share_out(&weight, &room);
    let mut first = 0;
    let stage = |(count, budget): (usize, u64)| {
        let held = &experts[first..first + count];
        first += count;
        let mut lines: Vec<MemoryLine> = lines
            .iter()
            .map(|line| match OWN.contains(&line.name) || cards.len() == 1 {
                true => line.clone(),
                false => MemoryLine { bytes: part(line.bytes, count, layers), ..line.clone() },
            })
            .collect();
        let routed = held.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let source = "routed experts of the layers that stay";
        lines.push(MemoryLine::new("experts", routed, Basis::Calculated, source));
        Stage { layers: u32::try_from(count).unwrap_or(u32::MAX), lines, budget_bytes: budget }
    };
    counts.into_iter().zip(budgets).map(stage).collect()
}

fn budget(request: &Request, card: &Hardware) -> u64 {
    match (request.reserve.free, request.reserve.usable_share) {
        (Some(free), _) => free,
        (None, Some(share)) => (card.memory.value as f64 * share).floor() as u64,
        (None, None) => card.usable_memory(),
    }
}

/// So many of so many layers.
fn part(bytes: u64, count: usize, layers: usize) -> u64 {
    let part = u128::from(bytes) * count as u128 / layers.max(1) as u128;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Layers of each room: the boundary lies where the weight before it comes nearest to the rooms' share.
fn share_out(weight: &[f64], room: &[f64]) -> Vec<usize> {
    let (all, whole): (f64, f64) = (weight.iter().sum(), room.iter().sum());
    let (mut counts, mut taken, mut before, mut share) = (Vec::new(), 0, 0.0, 0.0);
    for room in room {
        share += if whole > 0.0 { room / whole } else { 0.0 };
        let start = taken;
        while let Some(next) =
            weight.get(taken).filter(|next| whole > 0.0 && before + *next / 2.0 <= share * all)
        {
            before += next;
            taken += 1;
        }
        counts.push(taken - start);
    }
    if let Some(last) = counts.last_mut() {
        *last += weight.len() - taken;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_go_where_there_is_room() {
        assert_eq!(share_out(&[1.0; 10], &[1.0]), [10]);
        assert_eq!(share_out(&[1.0; 10], &[3.0, 2.0]), [6, 4]);
        // Ten light layers weigh what one heavy one does.
        let mut weight = vec![0.1; 10];
        weight.extend([1.0; 3]);
        assert_eq!(share_out(&weight, &[1.0, 1.0]), [11, 2]);
        assert_eq!(share_out(&[1.0; 4], &[0.0, 0.0]), [0, 4], "no room anywhere: all on the last");
        assert_eq!(share_out(&[], &[1.0, 1.0]), [0, 0]);
    }
}
