//! The answer of a comparison in sentences: what is best here, by how much, and whether that is
//! more than noise. Every format says it in these words.

use hotset_experiments::{Against, CostUnit, Entrant, Lead, Race};
use hotset_sim::{Report, Row, Scope};

use crate::one_line;
use crate::sheet::thousands;

/// The answer of a report.
pub(crate) fn told(report: &Report, lead: Option<&Lead>) -> String {
    lead.map_or_else(|| of_one(report), |lead| of_lead(lead, report.trace.sequences))
}

/// Which policy, at which size, over which link; and how sure that is.
fn of_lead(lead: &Lead, sequences: usize) -> String {
    let names: Vec<String> = lead.best.iter().map(|of| name(of, &lead.against)).collect();
    let (verb, cost) = if names.len() > 1 { ("are", "each ") } else { ("is", "") };
    format!(
        "{} {verb} best in {} with {} slots ({:.1}%){}: {cost}{:.3} {}{}. {}",
        names.join(" and "),
        lead.phase.name(),
        thousands(lead.capacity_slots.into()),
        lead.capacity_share * 100.0,
        lead.link.as_ref().map_or(String::new(), |link| format!(" over {}", one_line(link))),
        lead.cost,
        lead.unit.name(),
        ahead(lead),
        how_sure(lead, sequences),
    )
}

/// The policy, and what else tells it from those it is held against.
fn name(of: &Entrant, others: &[Against]) -> String {
    let mut name = one_line(&of.policy);
    let other = |differs: fn(&Entrant, &Entrant) -> bool| {
        others.iter().any(|other| differs(of, &other.entrant))
    };
    if of.scope != Scope::Global || other(|one, other| one.scope != other.scope) {
        name.push_str(&format!(", {} scope,", of.scope.name()));
    }
    if let Some(miss) = &of.miss {
        let comma = if name.ends_with(',') { "" } else { "," };
        name.push_str(&format!("{comma} misses {},", one_line(miss)));
    }
    name
}

/// By how much.
fn ahead(lead: &Lead) -> String {
    let Some((next, more)) = lead.against.split_first() else {
        return ", as all others".to_owned();
    };
    let less = |of: &Against| format!("{:.1}% less than", -of.change.estimate * 100.0);
    let rival = |of: &Against| rival(&of.entrant, &lead.best);
    let mut text = format!(", {} {}, the next", less(next), rival(next));
    for of in more {
        text.push_str(&format!(", and {} {}", less(of), rival(of)));
    }
    text
}

/// Another's policy; where that is one of the best too, what differs.
fn rival(of: &Entrant, best: &[Entrant]) -> String {
    let mut told = one_line(&of.policy);
    let Some(same) = best.iter().find(|best| best.policy == of.policy) else { return told };
    if same.scope != of.scope {
        told.push_str(&format!(" with {} scope", of.scope.name()));
    }
    if let Some(miss) = of.miss.as_ref().filter(|_| same.miss != of.miss) {
        told.push_str(&format!(" with misses {}", one_line(miss)));
    }
    told
}

/// Whether the lead is more than noise, and how often the best leads.
fn how_sure(lead: &Lead, sequences: usize) -> String {
    let (leads, races) = (lead.leads, lead.races);
    let often = match races {
        1 => String::new(),
        _ => format!(" It leads at {leads} of {races} sizes and links."),
    };
    if lead.against.is_empty() {
        return format!("Nothing here tells them apart.{often}");
    }
    let Some(units) = lead.units else {
        let timed = match lead.unit {
            CostUnit::Time => "an interval needs the timeline",
            CostUnit::Moved => "an interval needs times: `Compare::expert_bytes` gives them",
        };
        return format!("Whether that is beyond noise is not known: {timed}.{often}");
    };
    let one = match (units, sequences) {
        ("stretches of steps", 1) => "; one sequence tells nothing of others",
        ("stretches of steps", _) => ", which mix sequences",
        _ => "",
    };
    let count = lead.unit_count;
    if lead.resamples.is_none() {
        return format!(
            "Whether that is beyond noise is not known: {count} {units} are too few{one}.{often}"
        );
    }
    let percent = |share: f64| format!("{:+.1}", share * 100.0);
    let range =
        |of: &Against| format!("{} to {}%", percent(of.change.low), percent(of.change.high));
    let ranges: Vec<String> = lead.against.iter().map(range).collect();
    let beyond = |of: &Against| of.beyond_noise == Some(true);
    let noise = match (&lead.against[..], lead.against.iter().filter(|of| beyond(of)).count()) {
        ([_], 0) => "That is within noise",
        ([_], _) => "That is beyond noise",
        (_, 0) => "Both are within noise",
        (_, 2) => "Both are beyond noise",
        ([next, ..], _) if beyond(next) => "The first is beyond noise, the second within it",
        _ => "The first is within noise, the second beyond it",
    };
    format!("{noise}: {} in 95% of resamples of {count} {units}{one}.{often}", ranges.join(" and "),)
}

/// What is told where there is nothing to choose from.
fn of_one(report: &Report) -> String {
    let (unit, races) = (CostUnit::of(report), Race::all(report));
    let middle = races.get(races.len().saturating_sub(1) / 2);
    let ranked = middle.map(|race| race.ranked(unit, 0)).unwrap_or_default();
    let Some(&(row, cost)) = ranked.first() else {
        return "No policy here is one that an engine could run.".to_owned();
    };
    let over =
        row.links.first().map_or(String::new(), |link| format!(" over {}", one_line(&link.link)));
    format!(
        "{} costs {cost:.3} {}{over} in {} with {} slots ({:.1}%, {} scope). The counts are exact, but of one \
         trace of {} sequences.",
        one_line(&row.policy),
        unit.name(),
        row.phase.name(),
        thousands(row.capacity_slots.into()),
        row.capacity_share * 100.0,
        row.scope.name(),
        thousands(report.trace.sequences as u64),
    )
}

/// Places of the best of these rows over the first link; of none where there is no choice.
pub(crate) fn best_of(unit: CostUnit, rows: &[&Row]) -> Vec<usize> {
    let race = Race::among(rows.iter().copied());
    if race.ranked(unit, 0).len() < 2 {
        return Vec::new();
    }
    let best = race.best(unit, 0);
    let is_best = |place: &usize| best.iter().any(|row| std::ptr::eq(*row, rows[*place]));
    (0..rows.len()).filter(is_best).collect()
}
