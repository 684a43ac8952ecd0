//! Counts as text of a form of their own: colibri's `.coli_usage`, and moeprof.

use super::columns::Sum;
use super::info::{ExpertCounts, HistogramInfo};
use crate::error::Result;
use crate::import::info::{Claim, FuzzTarget};
use crate::import::input::Input;
use crate::import::lines::{at_line, each_line, utf8};
use crate::import::sniff::Sniff;

pub(super) const COLI: HistogramInfo = HistogramInfo {
    name: "coli-usage",
    description: "colibri's .coli_usage: lines of layer, expert, count behind two records of \
                  negative layers",
    recognise: is_coli,
    fuzz: FuzzTarget::Lines,
    reader: coli,
};

pub(super) const MOEPROF: HistogramInfo = HistogramInfo {
    name: "moeprof",
    description: "moeprof v1: a line of counts for each phase and layer",
    recognise: is_moeprof,
    fuzz: FuzzTarget::Lines,
    reader: moeprof,
};

fn numbers(line: &str) -> Option<Vec<i64>> {
    line.split_whitespace().map(|part| part.parse().ok()).collect()
}

fn is_coli(sniff: &Sniff<'_>) -> Result<Claim> {
    let line = sniff.first_line();
    let Some([layer, _, _]) = numbers(line).and_then(|n| <[i64; 3]>::try_from(n).ok()) else {
        return Ok(Claim::No);
    };
    // Older files have no records: then only the name tells.
    Claim::Sure.when(!line.contains(',') && (layer == -1 || sniff.name().contains("coli_usage")))
}

fn coli(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut sum = Sum::default();
    for input in inputs {
        each_line(input, |line, text| {
            let fault = |problem: String| at_line(input, line, problem);
            let numbers = numbers(utf8(input, line, text)?);
            match numbers.as_deref() {
                Some(&[-1, _, experts]) => sum.state(experts),
                Some(&[layer, ..]) if layer < 0 => {}
                Some(&[layer, expert, count]) => {
                    sum.add(layer, expert, count as f64).map_err(fault)?;
                }
                _ => return Err(fault("expected layer, expert and count".to_owned())),
            }
            Ok(())
        })?;
    }
    Ok(sum.finish())
}

fn is_moeprof(sniff: &Sniff<'_>) -> Result<Claim> {
    Claim::Sure.when(sniff.first_line().starts_with("moeprof v1"))
}

fn moeprof(inputs: &[Input<'_>]) -> Result<ExpertCounts> {
    let mut sum = Sum::default();
    let (mut tokens, mut unions) = (0u64, false);
    for input in inputs {
        each_line(input, |line, text| {
            let fault = |problem: String| at_line(input, line, problem);
            let text = utf8(input, line, text)?.trim();
            let (section, rest) = text.split_once(' ').unwrap_or((text, ""));
            if section == "moeprof" {
                let fact = |name: &str| {
                    rest.split_whitespace()
                        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                        .and_then(|value| value.parse::<u64>().ok())
                };
                tokens = tokens.saturating_add(fact("tokens").unwrap_or(0));
                sum.state(fact("n_expert").and_then(|n| i64::try_from(n).ok()).unwrap_or(0));
                return Ok(());
            }
            if !section.ends_with("_tokens") {
                // Steps in which an expert ran, not selections.
                unions |= section.ends_with("_union");
                return Ok(());
            }
            let numbers = numbers(rest).filter(|numbers| numbers.len() > 1);
            let numbers = numbers.ok_or_else(|| fault("expected a layer and counts".to_owned()))?;
            for (expert, &count) in (0..).zip(&numbers[1..]) {
                sum.add(numbers[0], expert, count as f64).map_err(fault)?;
            }
            Ok(())
        })?;
    }
    let mut counts = sum.finish();
    counts.tokens = (tokens > 0).then_some(tokens);
    counts.notes = vec!["counts of prompts and of generated tokens are added up".to_owned()];
    if unions {
        counts.notes.push("unions (steps in which an expert ran) are left out".to_owned());
    }
    Ok(counts)
}
