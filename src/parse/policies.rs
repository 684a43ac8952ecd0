//! Policies, admissions and prefetch sources by name, with their parameters.

use hotset::policies::miss::{MissError, MissHandler};
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

/// Values of one flag that takes several, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed<T>(pub Vec<Named<T>>);

impl<T> Listed<T> {
    /// The only one.
    ///
    /// # Errors
    /// What to do instead, from their number and their names.
    pub fn only(&self, refusal: impl FnOnce(&[Named<T>]) -> String) -> Result<&T, Fault> {
        match &self.0[..] {
            [one] => Ok(&one.value),
            several => Err(Fault::Usage(refusal(several))),
        }
    }
}

fn listed<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Listed<T>, String> {
    let pieces: Vec<String> = text.split(',').map(str::to_owned).collect();
    let mut all: Vec<Named<T>> = Vec::new();
    for text in with_parameters(&pieces) {
        let value = one(&text)?;
        if all.iter().any(|known| known.text == text) {
            return Err(format!("'{text}' is there twice"));
        }
        all.push(Named::new(text, value));
    }
    Ok(Listed(all))
}

/// Ways to handle misses; a piece with `=` but no `:` goes on with the parameters of the one before it.
pub fn misses(text: &str) -> Result<Listed<MissHandler>, String> {
    listed(text, |text| {
        text.parse::<MissHandler>().map_err(|error| match error {
            MissError::Unknown { near: None, .. } => {
                format!("{error}; 'hotset policies' lists them all")
            }
            _ => error.to_string(),
        })
    })
}

/// Prefetchers, likewise; a name that is none gets the nearest that is.
pub fn prefetches(text: &str) -> Result<Listed<Prefetch>, String> {
    listed(text, |text| {
        text.parse::<Prefetch>().map_err(|error| format!("{error}{}", prefetch_suggestion(text)))
    })
}

/// What to do instead of replaying one setting with several ways to handle misses.
pub fn several_misses(several: &[Named<MissHandler>]) -> String {
    format!(
        "--miss names {} ways, and a replay has one: give the command once with each, or compare them at \
         once in 'hotset compare'",
        several.len()
    )
}

/// What to do instead of comparing several prefetchers.
pub fn several_prefetches(several: &[Named<Prefetch>]) -> String {
    let (first, last) = (&several[0].text, &several[several.len() - 1].text);
    format!(
        "--prefetch names {} prefetchers, and a replay has one: give the command once with each \
         (--prefetch {first}, then --prefetch {last}), rank them in 'hotset advise', or compare them \
         at once as arms, in 'hotset experiment prefetch --arm lru/{last}'",
        several.len(),
    )
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
        let two = prefetches("none,ahead").unwrap();
        let told = two.only(several_prefetches).unwrap_err().to_string();
        assert!(told.contains("names 2 prefetchers"), "{told}");
        assert!(told.contains("--prefetch none, then --prefetch ahead"), "{told}");
        assert!(told.contains("--arm lru/ahead"), "{told}");
        assert!(
            prefetches("cross-layer:lookahead=1,width=2").unwrap().only(several_prefetches).is_ok()
        );
        assert!(prefetches("ahed").unwrap_err().ends_with("; did you mean 'ahead'?"));
    }

    #[test]
    fn parameters_stay_with_their_handler() {
        let names = |text: &str| -> Vec<String> {
            misses(text).unwrap().0.into_iter().map(|named| named.text).collect()
        };
        assert_eq!(
            names("fetch,fiddler:cpu=1,gpu=9,host"),
            ["fetch", "fiddler:cpu=1,gpu=9", "host"]
        );
        assert_eq!(misses("host,host").unwrap_err(), "'host' is there twice");
        assert!(misses("fetch,hots").unwrap_err().contains("did you mean 'host'?"));
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
