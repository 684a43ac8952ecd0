//! Policies, admissions and prefetch sources by name, with their parameters.

use hotset::policies::miss::{MISS_HANDLERS, MissError, MissHandler};
use hotset::policies::{AdmissionSpec, PolicySpec};
use hotset::sim::{Named, Prefetch, predictors};

use crate::fault::Fault;
use crate::names::suggestion;
use crate::session;

/// `lru,lru-k:k=2,history=kept,lfu`: a piece with `=` but no `:` goes on with the parameters of
/// the policy before it.
pub fn policies(texts: &[String]) -> Result<Vec<Named<PolicySpec>>, Fault> {
    let parsed = with_parameters(texts).into_iter().map(|text| match session::policy(&text) {
        Some(given) => Ok(Named::new(text, PolicySpec::Given(given))),
        None => text.parse().map(|spec| Named::new(text, spec)),
    });
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Names with their parameters, out of what a list's commas have cut apart.
fn with_parameters(texts: &[String]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for piece in texts.iter().map(|text| text.trim()) {
        match named.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => named.push(piece.to_owned()),
        }
    }
    named
}

/// Admissions; a piece with `=` but no `:` goes on with the parameters of the one before it.
pub fn admissions(texts: &[String]) -> Result<Vec<AdmissionSpec>, Fault> {
    let parsed = with_parameters(texts).into_iter().map(|text| text.parse());
    Ok(parsed.collect::<Result<Vec<_>, _>>()?)
}

/// Every policy behind every admission; bounds decide by themselves and stay as they are.
pub fn admitted(
    policies: Vec<Named<PolicySpec>>,
    admissions: &[AdmissionSpec],
) -> Result<Vec<Named<PolicySpec>>, Fault> {
    let mut all = Vec::new();
    for Named { text, value: policy } in policies {
        if !policy.is_online() {
            all.push(Named { text, value: policy });
            continue;
        }
        for &admission in admissions {
            if admission == AdmissionSpec::Always {
                all.push(Named::new(text.clone(), policy.clone()));
            } else if policy.admission() == AdmissionSpec::Always {
                let guarded = policy.clone().with_admission(admission)?;
                all.push(Named::new(format!("{text}+{admission}"), guarded));
            } else {
                return Err(Fault::Usage(format!(
                    "policy '{text}' has an admission already: leave out --admit {admission}"
                )));
            }
        }
    }
    Ok(all)
}

/// What becomes of misses; a list of several is refused with what to do.
pub fn miss(text: &str) -> Result<MissHandler, String> {
    let pieces =
        text.split(',').map(|piece| piece.trim().split_once(':').map_or(piece, |(name, _)| name));
    let named =
        pieces.filter(|name| MISS_HANDLERS.iter().any(|info| info.name == name.trim())).count();
    if named > 1 {
        return Err(format!(
            "'{text}' names {named} ways, and a replay has one: give the command once with each"
        ));
    }
    text.parse::<MissHandler>().map_err(|error| match error {
        MissError::Unknown { near: None, .. } => {
            format!("{error}; 'hotset policies' lists them all")
        }
        _ => error.to_string(),
    })
}

/// A prefetcher; a name that is none gets the nearest that is. A list of several is refused with what
/// compares them.
pub fn prefetch(text: &str) -> Result<Prefetch, String> {
    let known = |name: &str| name == "none" || predictors().any(|info| info.name == name);
    let pieces = text.split(',').map(str::trim);
    let named: Vec<&str> = pieces
        .filter(|piece| known(piece.split_once(':').map_or(*piece, |(name, _)| name)))
        .collect();
    if let [_, .., last] = named[..] {
        return Err(format!(
            "'{text}' names {} prefetchers, and a replay has one: give the command once with each \
             (--prefetch {}, then --prefetch {last}), or compare them at once as arms, in \
             'hotset experiment prefetch --arm lru/{last}'",
            named.len(),
            named[0]
        ));
    }
    text.parse::<Prefetch>().map_err(|error| format!("{error}{}", prefetch_suggestion(text)))
}

/// What a mistyped prefetcher may have meant; nothing for one that there is.
pub fn prefetch_suggestion(text: &str) -> String {
    let name = text.split_once(':').map_or(text, |(name, _)| name).trim();
    let known: Vec<&str> = predictors().map(|info| info.name).chain(["none"]).collect();
    suggestion(name, &known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_prefetcher_a_replay() {
        let told = prefetch("none,ahead").unwrap_err();
        assert!(told.contains("names 2 prefetchers"), "{told}");
        assert!(told.contains("--prefetch none, then --prefetch ahead"), "{told}");
        assert!(told.contains("--arm lru/ahead"), "{told}");
        assert!(prefetch("cross-layer:lookahead=1,width=2").is_ok());
        assert!(prefetch("ahed").unwrap_err().ends_with("; did you mean 'ahead'?"));
    }

    #[test]
    fn parameters_stay_with_their_policy() {
        let texts: Vec<String> = "lru,fifo".split(',').map(str::to_owned).collect();
        let names: Vec<String> =
            policies(&texts).unwrap().into_iter().map(|policy| policy.text).collect();
        assert_eq!(names, ["lru", "fifo"]);
        let texts: Vec<String> = ["lru:k=2", "history=kept"].map(str::to_owned).to_vec();
        let error = policies(&texts).unwrap_err().to_string();
        assert!(error.starts_with("policy 'lru': unknown field `k`"), "{error}");
    }
}
