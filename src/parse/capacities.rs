//! Capacities of the cache, one by one or in ranges.

use hotset::sim::{Capacity, Named, Schedule, SimError};

use crate::fault::Fault;

/// Capacities with the text that gave each; `5%..50%:5%` stands for ten of them.
pub fn capacities(texts: &[String]) -> Result<Vec<Named<Capacity>>, Fault> {
    let mut all: Vec<Named<Capacity>> = Vec::new();
    for text in texts.iter().map(|text| text.trim()) {
        let Some((first, rest)) = text.split_once("..") else {
            all.push(Named::new(text, text.parse()?));
            continue;
        };
        let wrong = || {
            Fault::Usage(format!(
                "capacities '{text}' are not a range: give FIRST..LAST:STEP in one unit, \
                 5%..50%:5%, 96..768:96 or 1GiB..8GiB:0.5GiB, of at most {MOST_SIZES} sizes"
            ))
        };
        let (last, step) = rest.split_once(':').ok_or_else(wrong)?;
        let sizes = range(first.parse()?, last.parse()?, step.parse()?).ok_or_else(wrong)?;
        all.extend(sizes.into_iter().map(|size| Named::new(size.to_string(), size)));
    }
    Ok(all)
}

/// Capacities from given tokens on; nothing at all is no schedule.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    if text.split(',').all(|part| part.trim().is_empty()) {
        return Err(
            "no change is given: give TOKENS:CAPACITY, as in 1000:25%, or leave the schedule out"
                .to_owned(),
        );
    }
    text.parse().map_err(|error: SimError| error.to_string())
}

/// The most sizes that one range may stand for.
const MOST_SIZES: usize = 10_000;

/// From `first` to at most `last` by `step`, all in one unit.
fn range(first: Capacity, last: Capacity, step: Capacity) -> Option<Vec<Capacity>> {
    let count = |first: f64, last: f64, step: f64| {
        // A share like 0.1% has no exact binary form: a hair beyond the last size is the last.
        let steps = ((last - first) / step + 1e-9).floor();
        (step > 0.0 && steps >= 0.0 && steps < MOST_SIZES as f64).then(|| steps as u32 + 1)
    };
    match (first, last, step) {
        (Capacity::Slots(first), Capacity::Slots(last), Capacity::Slots(step)) => {
            let count = count(first.into(), last.into(), step.into())?;
            Some(
                (0..count)
                    .map(|index| Capacity::Slots(first.saturating_add(index.saturating_mul(step))))
                    .collect(),
            )
        }
        (Capacity::Percent(first), Capacity::Percent(last), Capacity::Percent(step)) => {
            let percent = |index| {
                let exact = first + f64::from(index) * step;
                Capacity::Percent((exact * 1e9).round() / 1e9)
            };
            Some((0..count(first, last, step)?).map(percent).collect())
        }
        (Capacity::Bytes(first), Capacity::Bytes(last), Capacity::Bytes(step)) => {
            let count = count(first as f64, last as f64, step as f64)?;
            Some((0..count).map(|n| Capacity::Bytes(first + u64::from(n) * step)).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_capacities() {
        let read = |text: &str| {
            let texts: Vec<String> = text.split(',').map(str::to_owned).collect();
            capacities(&texts).map(|all| all.into_iter().map(|size| size.text).collect::<Vec<_>>())
        };
        assert_eq!(read("5%..20%:5%").unwrap(), ["5%", "10%", "15%", "20%"]);
        assert_eq!(read("0.1%..0.5%:0.1%").unwrap(), ["0.1%", "0.2%", "0.3%", "0.4%", "0.5%"]);
        assert_eq!(read("96..300:96,25%").unwrap(), ["96", "192", "288", "25%"]);
        assert_eq!(read("1GiB..2GiB:512MiB").unwrap(), ["1GiB", "1.5GiB", "2GiB"]);
        assert_eq!(read("5%..5%:1%").unwrap(), ["5%"]);
        for wrong in ["5%..20%", "5%..20:5%", "5%..20%:0%", "20%..5%:5%", "0%..100%:0.001%"] {
            assert!(read(wrong).unwrap_err().to_string().contains("not a range"), "{wrong}");
        }
        assert!(read("..5%:1%").unwrap_err().to_string().contains("capacity ''"));
    }
}
