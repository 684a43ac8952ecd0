//! What slows down beside what.
//!
//! Copies and kernels share the accelerator's memory, copies and host cores the host's. Slowdowns are whole per mille, so
//! that applying one is integer arithmetic; whoever builds a timeline decides when they apply.

use serde::{Deserialize, Serialize};

use crate::error::ProfileError;

/// How much slower things get beside others, in per mille of the time alone (1000: not at all).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contention {
    /// A copy while a kernel reads the accelerator's memory.
    pub copy_beside_kernel_permille: u32,
    /// A kernel that reads the accelerator's memory, while a copy writes to it.
    pub kernel_beside_copy_permille: u32,
    /// Copies beside host cores that stream host memory, and the cores beside copies: by number of threads, ascending.
    pub host: Vec<HostContention>,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            copy_beside_kernel_permille: 1000,
            kernel_beside_copy_permille: 1000,
            host: Vec::new(),
        }
    }
}

/// Contention between copies and host cores for the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostContention {
    /// Host threads that stream memory; 0 where the source does not say.
    pub threads: u32,
    /// A copy's time beside them, per mille of its time alone.
    pub copy_permille: u32,
    /// The threads' time beside copies, per mille of their time alone.
    pub host_permille: u32,
    /// What the threads read alone, in picoseconds a MiB, or compute of an expert that one token wants.
    pub host_ps_per_mib: u64,
    /// What each further token that wants an expert adds, in picoseconds a MiB; 0 where nobody measured it.
    #[serde(default, skip_serializing_if = "crate::link::is_zero")]
    pub more_ps_per_mib: u64,
    /// From the routing to the threads' first work and from their last to the kernel that waits for it, in
    /// picoseconds; 0 where nobody measured it.
    #[serde(default, skip_serializing_if = "crate::link::is_zero")]
    pub handoff_ps: u64,
}

impl Contention {
    /// Checks that nothing is faster for being disturbed; `name` is the profile's, for errors.
    pub(crate) fn validate(&self, name: &str) -> Result<(), ProfileError> {
        let host = self.host.iter().flat_map(|host| {
            [("contention.host", host.copy_permille), ("contention.host", host.host_permille)]
        });
        let kernel = [
            ("contention.copy_beside_kernel_permille", self.copy_beside_kernel_permille),
            ("contention.kernel_beside_copy_permille", self.kernel_beside_copy_permille),
        ];
        for (field, permille) in kernel.into_iter().chain(host) {
            if !(1000..=1_000_000).contains(&permille) {
                return Err(ProfileError::invalid(
                    name,
                    field,
                    format!("is {permille} per mille, must be 1000 (no slowdown) to 1000000"),
                ));
            }
        }
        if self.host.iter().any(|host| host.host_ps_per_mib == 0) {
            return Err(ProfileError::invalid(name, "contention.host", "host_ps_per_mib is zero"));
        }
        if self.host.windows(2).any(|pair| pair[0].threads >= pair[1].threads) {
            return Err(ProfileError::invalid(
                name,
                "contention.host",
                "threads must ascend strictly",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(threads: u32) -> HostContention {
        HostContention {
            threads,
            copy_permille: 1100,
            host_permille: 1200,
            host_ps_per_mib: 9,
            more_ps_per_mib: 0,
            handoff_ps: 0,
        }
    }

    fn refusal(contention: Contention) -> String {
        contention.validate("l").unwrap_err().to_string()
    }

    #[test]
    fn the_default_slows_nothing() {
        let none = Contention::default();
        assert_eq!(
            (none.copy_beside_kernel_permille, none.kernel_beside_copy_permille),
            (1000, 1000)
        );
        none.validate("l").unwrap();
    }

    #[test]
    fn impossible_slowdowns_are_refused_with_field_and_reason() {
        assert_eq!(
            refusal(Contention { copy_beside_kernel_permille: 900, ..Default::default() }),
            "profile l: contention.copy_beside_kernel_permille is 900 per mille, must be 1000 (no \
             slowdown) to 1000000"
        );
        let fast = HostContention { host_permille: 1, ..host(4) };
        assert!(
            refusal(Contention { host: vec![fast], ..Default::default() })
                .contains("contention.host is 1 per mille")
        );
        let idle = HostContention { host_ps_per_mib: 0, ..host(4) };
        assert!(
            refusal(Contention { host: vec![idle], ..Default::default() })
                .contains("host_ps_per_mib is zero")
        );
        assert!(
            refusal(Contention { host: vec![host(8), host(4)], ..Default::default() })
                .contains("threads must ascend strictly")
        );
    }
}
