//! An answer in a sentence.

use super::{Answer, BoundBy, Ranked};

/// How many of an answer's rows lead: those that a person is shown first.
#[must_use]
pub fn leading(answer: &Answer, most: usize) -> &[Ranked] {
    &answer.rows[..answer.rows.len().min(most)]
}

/// The whole answer.
pub(super) fn answer(of: &Answer, total_experts: u32) -> String {
    let plain = of.plain.ms_per_token.estimate;
    let place = format!("over {} with {} of {total_experts} slots", of.link, of.capacity_slots);
    let Some(best) = of.best.map(|place| &of.rows[place]) else {
        let tried = of.rows.len();
        return format!(
            "Nothing beats plain LRU beyond noise {place}: {plain:.3} ms a token, bound by {}; {tried} {} tried",
            bound(of.plain.bound_by),
            if tried == 1 { "other setting was" } else { "other settings were" }
        );
    };
    let time = &best.ms_per_token;
    let range = if time.low.is_finite() {
        format!(" ({:.3} to {:.3})", time.low, time.high)
    } else {
        String::new()
    };
    let alike = match of.alike {
        0 => String::new(),
        1 => "; one other is within noise of it".to_owned(),
        more => format!("; {more} others are within noise of it"),
    };
    format!(
        "Best {place}: {} takes {:.3}{range} ms a token, {:.1}% less than plain LRU ({plain:.3}), bound by {}{alike}",
        setting(best),
        time.estimate,
        -best.change.interval.estimate * 100.0,
        bound(best.bound_by),
    )
}

/// A setting in words.
fn setting(of: &Ranked) -> String {
    let mut text = format!("{}, {} scope, misses {}", of.policy, of.scope.name(), of.miss);
    if of.prefetch != "none" {
        text.push_str(&format!(", prefetch {}", of.prefetch));
    }
    text
}

fn bound(by: BoundBy) -> &'static str {
    match by {
        BoundBy::Link => "the link",
        BoundBy::Disk => "the disk",
        BoundBy::Host => "the host's cores",
        BoundBy::Gpu => "the GPU",
        BoundBy::Capacity => "its capacity",
    }
}
